import { get, session } from '../../api/client.js'
import { config, explain } from '../../api/transport.js'
import { html, nothing } from '../../core/view.js'
import { formatBytes, formatTime } from '../../ui/format.js'
import { askAboutExisting } from '../change-dialogs.js'
import { announceFilesChanged } from '../content.js'
import { numberedPath, pathFault } from '../paths.js'
import { SpeedMeter } from './speed.js'
import { discard, isResumable, sendFile, sendResumable } from './upload-request.js'

/** @import { PickedFile } from './pick-files.js' @import { Choice } from '../change-dialogs.js' */

/**
 * @typedef {'waiting' | 'sending' | 'paused' | 'done' | 'exists' | 'failed' | 'skipped' | 'cancelled'} UploadState
 * @typedef {{ id: number, file: File, wantedPath: string, path: string, state: UploadState, sent: number,
 *   replace: boolean, isInterrupted?: boolean, error?: unknown, abort?: AbortController }} Upload
 */

// Two of the browser's six connections stay free for listings.
const atOnce = 4
const announceMs = 1500

/** Sends files a few at a time; each can be cancelled and tried again. Dispatches `change`, at most once a frame. */
class UploadQueue extends EventTarget {
  /** @type {Upload[]} */
  items = []
  #nextId = 1
  #running = 0
  #isAsking = false
  /** @type {Choice | undefined} the choice for all further names that exist */
  #choiceForAll
  #speed = new SpeedMeter()
  #isTold = false
  #announcedAt = 0

  /** @param {string} folder @param {PickedFile[]} files */
  add(folder, files) {
    for (const { file, path } of files) {
      const whole = `${folder}${path}`.normalize('NFC')
      const fault = pathFault(whole) ?? sizeFault(file)
      this.items.push({
        id: this.#nextId++,
        file,
        wantedPath: whole,
        path: whole,
        state: fault ? 'failed' : 'waiting',
        sent: 0,
        replace: false,
        error: fault ? new Error(fault) : undefined,
      })
    }
    this.#advance()
  }

  /** @param {Upload} upload */
  cancel(upload) {
    if (!isOpen(upload.state)) return
    Object.assign(upload, { state: 'cancelled', sent: 0 })
    upload.abort?.abort()
    void discard(upload)
    this.#changed()
  }

  /** Keeps what has arrived of a large file, until it is tried again. @param {Upload} upload */
  pause(upload) {
    upload.state = 'paused'
    upload.abort?.abort()
    this.#changed()
  }

  cancelAll() {
    for (const upload of this.items) this.cancel(upload)
  }

  /** @param {Upload} upload */
  retry(upload) {
    Object.assign(upload, { state: 'waiting', error: undefined })
    this.#advance()
  }

  retryFailed() {
    for (const upload of this.items) if (upload.state === 'failed') this.retry(upload)
  }

  /** Removes what has ended from the list. */
  clear() {
    this.items = this.items.filter(({ state }) => isOpen(state))
    this.#speed.reset()
    this.#changed()
  }

  get summary() {
    const of = (/** @type {UploadState} */ state) =>
      this.items.filter((each) => each.state === state)
    const wanted = this.items.filter(({ state }) => state !== 'skipped' && state !== 'cancelled')
    const total = wanted.reduce((sum, { file }) => sum + file.size, 0)
    const sent = wanted.reduce(
      (sum, each) => sum + (each.state === 'done' ? each.file.size : each.sent),
      0,
    )
    const { perSecond } = this.#speed
    const isActive = this.items.some(({ state }) => isOpen(state))
    const secondsLeft = isActive && perSecond > 0 ? (total - sent) / perSecond : undefined
    return {
      count: wanted.length,
      done: of('done').length,
      failed: of('failed').length,
      total,
      sent,
      perSecond,
      secondsLeft,
      isActive,
    }
  }

  #advance() {
    while (this.#running < atOnce) {
      const next = this.items.find(({ state }) => state === 'waiting')
      if (!next) break
      void this.#send(next)
    }
    void this.#askNext()
    this.#changed()
  }

  /** @param {Upload} upload */
  async #send(upload) {
    this.#running += 1
    upload.state = 'sending'
    upload.abort = new AbortController()
    const { signal } = upload.abort
    const { file, path, replace } = upload
    /** @param {number} sent */
    const onProgress = (sent) => {
      Object.assign(upload, { sent: Math.min(sent, file.size), isInterrupted: false })
      this.#changed()
    }
    const onWait = () => {
      upload.isInterrupted = true
      this.#changed()
    }
    try {
      const send = isResumable(file) ? sendResumable : sendFile
      await send({ file, path, replace, signal, onProgress, onWait })
      upload.state = 'done'
      this.#announce()
    } catch (error) {
      if (!signal.aborted) this.#fail(upload, error)
    }
    this.#running -= 1
    this.#advance()
  }

  /** @param {Upload} upload @param {unknown} error */
  #fail(upload, error) {
    if (!isResumable(upload.file)) upload.sent = 0
    if (explain(error).code === 'precondition_failed' && !upload.replace) this.#meet(upload)
    else Object.assign(upload, { state: 'failed', error })
  }

  // The name exists: the choice for all is taken, or the person is asked.
  /** @param {Upload} upload */
  #meet(upload) {
    upload.state = 'exists'
    if (upload.path !== upload.wantedPath) this.#settle(upload, 'keep-both')
    else if (this.#choiceForAll) this.#settle(upload, this.#choiceForAll)
  }

  async #askNext() {
    const upload = this.items.find(({ state }) => state === 'exists')
    if (!upload || this.#isAsking) return
    this.#isAsking = true
    const others = this.items.filter(({ state }) => isOpen(state)).length - 1
    const answer = await askAboutExisting(await compare(upload), others)
    this.#isAsking = false
    if (answer?.forAll) this.#choiceForAll = answer.choice
    this.#settle(upload, answer?.choice ?? 'skip')
    if (this.#choiceForAll) {
      for (const each of this.items)
        if (each.state === 'exists') this.#settle(each, this.#choiceForAll)
    }
    this.#advance()
  }

  /** @param {Upload} upload @param {Choice} choice */
  #settle(upload, choice) {
    if (choice === 'skip') upload.state = 'skipped'
    else if (choice === 'replace') Object.assign(upload, { state: 'waiting', replace: true })
    else {
      const [, number = '1'] =
        / \((\d+)\)(?:\.[^./]*)?$/.exec(upload.path === upload.wantedPath ? '' : upload.path) ?? []
      upload.path = numberedPath(upload.wantedPath, Number(number) + 1)
      upload.state = 'waiting'
    }
  }

  #announce() {
    const now = performance.now()
    const isLast = !this.items.some(({ state }) => isOpen(state))
    if (!isLast && now - this.#announcedAt < announceMs) return
    this.#announcedAt = now
    announceFilesChanged()
  }

  #changed() {
    if (this.#isTold) return
    this.#isTold = true
    requestAnimationFrame(() => {
      this.#isTold = false
      const { sent, isActive } = this.summary
      if (isActive) this.#speed.add(sent)
      else this.#choiceForAll = undefined
      this.dispatchEvent(new Event('change'))
    })
  }
}

/** The file that exists beside the one that was chosen. @param {Upload} upload */
async function compare({ path, file }) {
  const found = await get('files', '/api/files/{path}', { params: { path } }).catch(() => undefined)
  return html`
    <p>There is a file at <code>${path}</code> already.</p>
    <dl class="facts">
      ${found ? html`<div><dt>There</dt><dd>${formatBytes(found.size)}, changed ${formatTime(found.updated_at)}</dd></div>` : nothing}
      <div><dt>Yours</dt><dd>${formatBytes(file.size)}, changed ${formatTime(new Date(file.lastModified).toISOString())}</dd></div>
    </dl>`
}

/** @param {UploadState} state */
export const isOpen = (state) => ['waiting', 'sending', 'paused', 'exists'].includes(state)

/** Why a file is refused before it is sent. @param {File} file */
const sizeFault = ({ size }) =>
  size > config.max_upload_bytes
    ? `${formatBytes(size)} is more than the ${formatBytes(config.max_upload_bytes)} that the service takes`
    : undefined

export const uploads = new UploadQueue()

addEventListener('beforeunload', (event) => {
  if (uploads.items.some(({ state }) => isOpen(state))) event.preventDefault()
})

// After a logout nothing of that person goes on or stays in sight.
session.addEventListener('change', () => {
  if (!session.isEmpty) return
  uploads.cancelAll()
  uploads.clear()
})
