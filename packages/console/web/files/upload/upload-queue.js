import { get, session } from '../../api/client.js'
import { config, explain } from '../../api/transport.js'
import { html, nothing } from '../../core/view.js'
import { formatBytes, formatTime } from '../../ui/format.js'
import { askAboutExisting } from '../change-dialogs.js'
import { announceFilesChanged } from '../content.js'
import { nextName } from '../paths.js'
import { SpeedMeter } from './speed.js'
import { discard, isResumable, send } from './upload-request.js'

/** @import { PickedFile } from './pick-files.js' @import { Choice } from '../change-dialogs.js' */

/**
 * @typedef {'waiting' | 'sending' | 'paused' | 'done' | 'exists' | 'failed' | 'skipped' | 'cancelled'} UploadState
 * @typedef {{ id: number, file: File, path: string, state: UploadState, sent: number, choice?: Choice,
 *   isAlone: boolean, error?: unknown, abort?: AbortController }} Upload `choice`: about the name that exists; `error`: why it
 *   failed, or while it is sending, why it is tried again
 */

// Two of the browser's six connections stay free for listings.
const atOnce = 4
const groupFiles = 100
// With the heads of the files less than a proxy takes that takes a part.
const groupBytes = () => Math.min(4 * 1024 * 1024, config.upload_part_bytes / 2)
// Some of a group may be refused with these, and the others stored.
const ofSome = [400, 404, 409, 412, 413, 507]
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
      const isAlone = /[%\\]/.test(path) // In a form of several these mean other characters.
      this.items.push({ id: this.#nextId++, file, path, state, sent: 0, error, isAlone })
    }
    this.#advance()
  }

  /** @param {Upload} upload */
  cancel(upload) {
    if (!isOpen(upload)) return
    Object.assign(upload, { state: 'cancelled', sent: 0 })
    upload.abort?.abort()
    void discard(upload)
    this.#changed()
  }

  /** Keeps what has arrived of a large file, until it is tried again. @param {Upload} upload */
  pause(upload) {
    upload.state = 'paused'
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
      cancelled: this.items.filter(({ state }) => state === 'cancelled').length,
      sent: wanted.reduce((sum, each) => sum + each.sent, 0),
      perSecond: this.#speed.perSecond,
      isActive: this.items.some(isOpen),
    }
  }

  #advance() {
    while (this.#running < atOnce) {
      const group = this.#nextGroup()
      if (group.length === 0) break
      void this.#send(group)
    }
    void this.#settleExisting()
    this.#changed()
  }

  /** A large file by itself, or small ones together: the service stores them as one change. */
  #nextGroup() {
    const waiting = this.items.filter(({ state }) => state === 'waiting')
    const kindOf = (/** @type {Upload} */ { id, isAlone, choice }) => (isAlone ? id : choice === 'replace')
    let bytes = 0
    const end = waiting.findIndex((each, at) => {
      bytes += each.file.size
      const isOther = kindOf(each) !== kindOf(waiting[0] ?? each)
      return at === groupFiles || (at > 0 && (isOther || bytes > groupBytes()))
    })
    return end < 0 ? waiting : waiting.slice(0, end)
  }

  /** @param {Upload[]} group */
  async #send(group) {
    this.#running += 1
    const abort = new AbortController()
    const { signal } = abort
    const setAll = (/** @type {(upload: Upload) => Partial<Upload>} */ change) => {
      for (const upload of group) Object.assign(upload, change(upload))
      this.#changed()
    }
    setAll(() => ({ state: 'sending', abort }))
    const onWait = (/** @type {unknown} */ error) => setAll(() => ({ error }))
    const bytes = group.reduce((sum, { file }) => sum + file.size, 0) || 1
    const onProgress = (/** @type {number} */ sent) =>
      setAll(({ file }) => ({ sent: file.size * Math.min(1, sent / bytes), error: undefined }))
    try {
      await send({ files: group, signal, onProgress, onWait })
      setAll(({ file }) => ({ state: 'done', sent: file.size }))
      this.#announce()
    } catch (error) {
      setAll(({ file, sent }) => ({ sent: isResumable(file) ? sent : 0 }))
      const sent = group.filter(({ state }) => state === 'sending')
      if (signal.aborted) for (const upload of sent) upload.state = 'waiting'
      else refuse(sent, error)
    }
    this.#running -= 1
    this.#advance()
  }

  // Of those whose names exist one after the other is asked about, until the choice is for all.
  async #settleExisting() {
    const existing = this.items.filter(({ state }) => state === 'exists')
    if (existing.length === 0 || this.#isAsking) return
    this.#isAsking = true
    // All at once: there may be thousands.
    const found = existing.map((each) => (each.choice ?? this.#choiceForAll) || compare(each))
    for (const [at, upload] of existing.entries()) {
      const known = await found[at]
      const choice = upload.choice ?? (known === 'same' ? known : this.#choiceForAll) ?? (await this.#ask(known))
      if (upload.state !== 'exists') continue // It was cancelled meanwhile.
      if (choice === 'same') Object.assign(upload, { state: 'done', sent: upload.file.size })
      else Object.assign(upload, { choice, state: choice === 'skip' ? 'skipped' : 'waiting' })
      if (choice === 'keep-both') upload.path = nextName(upload.path)
      this.#changed()
    }
    this.#isAsking = false
    this.#advance()
  }

  /** @param {unknown} comparison @returns {Promise<Choice>} */
  async #ask(comparison) {
    const others = this.items.filter(isOpen).length - 1
    const answer = await askAboutExisting(comparison, others)
    if (answer?.forAll) this.#choiceForAll = answer.choice
    return answer?.choice ?? 'skip'
  }

  #announce() {
    const now = performance.now()
    if (this.items.some(isOpen) && now - this.#announcedAt < announceMs) return
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

/**
 * The name of one may exist: the others go again without it. Some may be refused, it is not known which: each goes alone.
 * @param {Upload[]} group
 * @param {unknown} error
 */
function refuse(group, error) {
  const { status, code, body } = explain(error)
  const isOne = group.length === 1
  const met = group.filter(({ path }) => code === 'precondition_failed' && (isOne || body.paths?.includes(path)))
  const isFinal = isOne || !ofSome.includes(status)
  for (const upload of group) {
    if (met.includes(upload)) upload.state = 'exists'
    else if (isFinal) Object.assign(upload, { state: 'failed', error })
    else Object.assign(upload, { state: 'waiting', isAlone: met.length === 0 })
  }
}

/** The file that exists beside the one that was chosen. @param {Upload} upload @returns {Promise<unknown>} `same`: equal, perhaps by this very upload */
async function compare({ path, file }) {
  const params = { path }
  const there = await get('files', '/api/files/{path}', { params }).catch(() => undefined)
  if (there?.size === file.size && !isResumable(file)) {
    const digest = await crypto.subtle?.digest('SHA-256', await file.arrayBuffer()) // Not on plain HTTP.
    if (digest && new Uint8Array(digest).toHex?.() === there.sha256) return 'same'
  }
  return html`
    <p>There is a file at <code>${path}</code> already.</p>
    <dl class="facts">
      ${there ? html`<div><dt>There</dt><dd>${formatBytes(there.size)}, changed ${formatTime(there.updated_at)}</dd></div>` : nothing}
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
