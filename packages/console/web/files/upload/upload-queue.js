import { get, session } from '../../api/client.js'
import { config, explain } from '../../api/transport.js'
import { html, nothing } from '../../core/view.js'
import { formatBytes, formatTime } from '../../ui/format.js'
import { askAboutExisting } from '../change-dialogs.js'
import { announceFilesChanged } from '../content.js'
import { nextName } from '../paths.js'
import { SpeedMeter } from './speed.js'
import { discard, isResumable, sendFile, sendResumable } from './upload-request.js'

/** @import { PickedFile } from './pick-files.js' @import { Choice } from '../change-dialogs.js' */

/**
 * @typedef {'waiting' | 'sending' | 'paused' | 'done' | 'exists' | 'failed' | 'skipped' | 'cancelled'} UploadState
 * @typedef {{ id: number, file: File, path: string, state: UploadState, sent: number, choice?: Choice,
 *   isInterrupted?: boolean, error?: unknown, abort?: AbortController }} Upload `choice`: about the name that exists
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
    const { max_upload_bytes: max } = config
    for (const { file, path: below } of files) {
      const path = `${folder}${below}`.normalize('NFC')
      const fault = `${formatBytes(file.size)} is more than the ${formatBytes(max)} that the service takes`
      const error = file.size > max ? new Error(fault) : undefined
      const state = error ? 'failed' : 'waiting'
      this.items.push({ id: this.#nextId++, file, path, state, sent: 0, error })
    }
    this.#advance()
  }

  /** @param {Upload} upload */
  cancel(upload) {
    if (!isOpen(upload)) return
    this.#set(upload, { state: 'cancelled', sent: 0 })
    upload.abort?.abort()
    void discard(upload)
  }

  /** Keeps what has arrived of a large file, until it is tried again. @param {Upload} upload */
  pause(upload) {
    this.#set(upload, { state: 'paused' })
    upload.abort?.abort()
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
    this.items = this.items.filter(isOpen)
    this.#speed = new SpeedMeter()
    this.#changed()
  }

  get summary() {
    const wanted = this.items.filter(({ state }) => state !== 'skipped' && state !== 'cancelled')
    return {
      count: wanted.length,
      done: wanted.filter(({ state }) => state === 'done').length,
      failed: wanted.filter(({ state }) => state === 'failed').length,
      total: wanted.reduce((sum, { file }) => sum + file.size, 0),
      sent: wanted.reduce((sum, each) => sum + each.sent, 0),
      perSecond: this.#speed.perSecond,
      isActive: this.items.some(isOpen),
    }
  }

  #advance() {
    for (const next of this.items.filter(({ state }) => state === 'waiting'))
      if (this.#running < atOnce) void this.#send(next)
    void this.#settleExisting()
    this.#changed()
  }

  /** @param {Upload} upload */
  async #send(upload) {
    this.#running += 1
    const abort = new AbortController()
    const { signal } = abort
    this.#set(upload, { state: 'sending', abort })
    const { file, choice } = upload
    const onProgress = (/** @type {number} */ sent) =>
      this.#set(upload, { sent: Math.min(sent, file.size), isInterrupted: false })
    const onWait = () => this.#set(upload, { isInterrupted: true })
    try {
      const send = isResumable(file) ? sendResumable : sendFile
      await send({ ...upload, signal, onProgress, onWait })
      Object.assign(upload, { state: 'done', sent: file.size })
      this.#announce()
    } catch (error) {
      if (!signal.aborted) {
        const isMet = explain(error).code === 'precondition_failed' && choice !== 'replace'
        if (!isResumable(file)) upload.sent = 0
        Object.assign(upload, isMet ? { state: 'exists' } : { state: 'failed', error })
      }
    }
    this.#running -= 1
    this.#advance()
  }

  // Of those whose names exist one after the other is asked about, until the choice is for all.
  async #settleExisting() {
    const upload = this.items.find(({ state }) => state === 'exists')
    if (!upload || this.#isAsking) return
    this.#isAsking = true
    upload.choice ??= this.#choiceForAll ?? (await this.#ask(upload))
    this.#isAsking = false
    if (upload.choice === 'keep-both') upload.path = nextName(upload.path)
    // It may have been cancelled meanwhile.
    if (upload.state === 'exists') upload.state = upload.choice === 'skip' ? 'skipped' : 'waiting'
    this.#advance()
  }

  /** @param {Upload} upload */
  async #ask(upload) {
    const others = this.items.filter(isOpen).length - 1
    const answer = await askAboutExisting(await compare(upload), others)
    if (answer?.forAll) this.#choiceForAll = answer.choice
    return answer?.choice ?? 'skip'
  }

  #announce() {
    const now = performance.now()
    if (this.items.some(isOpen) && now - this.#announcedAt < announceMs) return
    this.#announcedAt = now
    announceFilesChanged()
  }

  /** @param {Upload} upload @param {Partial<Upload>} changes */
  #set(upload, changes) {
    Object.assign(upload, changes)
    this.#changed()
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

/** @param {Upload} upload */
export const isOpen = ({ state }) => ['waiting', 'sending', 'paused', 'exists'].includes(state)

export const uploads = new UploadQueue()

addEventListener('beforeunload', (event) => {
  if (uploads.items.some(isOpen)) event.preventDefault()
})

// After a logout nothing of that person goes on or stays in sight.
session.addEventListener('change', () => {
  if (!session.isEmpty) return
  uploads.cancelAll()
  uploads.clear()
})
