import { get, mayEdit, send } from '../../api/client.js'
import { explain } from '../../api/transport.js'
import { navigate } from '../../core/router.js'
import { focusOn, html, nothing, Resource } from '../../core/view.js'
import { copy, save } from '../../ui/copy.js'
import { formatBytes, formatNumber, formatTime } from '../../ui/format.js'
import { attempt, icon, iconButton, notice, show, toast } from '../../ui/states.js'
import { age } from '../../ui/table.js'
import { deleteDialog, moveDialog } from '../change-dialogs.js'
import { announceFilesChanged, contentUrl, currentPath, FilesView, getContent, hrefToPath } from '../content.js'
import { nameOf } from '../paths.js'
import { openShareDialog } from '../sharing/share-dialog.js'
import './file-preview.js'

/** One file: preview, what is known of it, what can be done with it, and its history. */
class FileDetails extends FilesView {
  /** Opens the file so many places further in the list. @type {(by: number) => void} */
  step = () => {}
  #file = new Resource(this, (signal) => get('files', '/api/files/{path}', { params: { path: this.address }, signal }))
  #states = new Resource(this, (signal) =>
    get('files', '/api/history', { query: { path: this.address, page_size: 50 }, signal }),
  )

  opened() {
    this.addEventListener('keydown', (event) => this.#press(event), { signal: this.signal })
    super.opened()
  }

  get address() {
    return currentPath().file
  }

  entered() {
    for (const each of this.resources) each.value = undefined
    setTimeout(() => this.#takeFocus())
  }

  // On a small screen it lies above the list.
  #takeFocus() {
    const [aside] = this.children
    if (aside && getComputedStyle(aside).position === 'fixed' && !this.matches(':focus-within')) focusOn(this, 'h2')
  }

  // Without an address it is about to leave the page.
  reload() {
    return this.address ? super.reload() : undefined
  }

  template() {
    return html`
      <aside class="details" aria-label="File">
        <header class="details-header">
          <h2 tabindex="-1">${nameOf(this.address)}</h2>
          <span class="spacer"></span>
          ${iconButton('chevron', 'Previous file', () => this.step(-1), 'turned')}
          ${iconButton('chevron', 'Next file', () => this.step(1))}
          ${iconButton('close', 'Close the file', this.#close)}
        </header>
        ${this.#states.value && explain(this.#file.error).status === 404 ? notice('There is no file here any more. Its earlier states are below.', 'warn') : show(this.#file, (file) => this.#details(file), 5)}
        ${
          this.#file.error && this.#states.error && !this.#states.value
            ? nothing
            : html`<h3>History</h3>
              ${show(this.#states, ({ history }) => html`<ol class="plain-list">${history.map(this.#state)}</ol>`, 3)}`
        }
      </aside>`
  }

  /** @param {Api.FileRecord} file */
  #details(file) {
    const url = contentUrl(file.path)
    const isPrivate = file.public === false
    /** @param {import('../../ui/states.js').IconName} name @param {string} words @param {() => unknown} run */
    const button = (name, words, run) => html`<button class="button" @click=${run}>${icon(name)} ${words}</button>`
    const download = isPrivate
      ? button('download', 'Download', () => save(nameOf(file.path), () => getContent(file.path)))
      : html`<a class="button" href=${contentUrl(file.path, { download: true })} download>${icon('download')} Download</a>`
    const changes = () => [
      button('link', 'Share', () => openShareDialog(file.path)),
      button('move', 'Move', () => this.#move(file)),
      button('trash', 'Delete', () => this.#delete(file)),
    ]
    return html`
      <file-preview .file=${file}></file-preview>
      <div class="button-row">
        ${download} ${isPrivate ? nothing : button('copy', 'Copy link', () => copy(url, 'Link'))} ${mayEdit('files') ? changes() : nothing}
      </div>
      <dl class="facts stacked">
        <div><dt>Address</dt><dd>${isPrivate ? url : html`<a href=${url} target="_blank" rel="noopener noreferrer">${url}</a>`}</dd></div>
        ${isPrivate ? html`<div><dt>Access</dt><dd><span class="chip warn">${icon('lock')} private</span></dd></div>` : nothing}
        <div><dt>Type</dt><dd>${file.content_type} <span class="chip">${file.category}</span></dd></div>
        <div><dt>Size</dt><dd>${formatBytes(file.size)}${file.size >= 1000 ? html` <span class="muted">(${formatNumber(file.size)} bytes)</span>` : nothing}</dd></div>
        <div><dt>Changed</dt><dd>${formatTime(file.updated_at)} by ${file.uploaded_by}</dd></div>
        <div><dt>Created</dt><dd>${formatTime(file.created_at)}</dd></div>
        <div>
          <dt>SHA-256</dt>
          <dd><code>${file.sha256}</code> <button class="link-button" @click=${() => copy(file.sha256, 'Digest')}>Copy</button></dd>
        </div>
      </dl>`
  }

  /** A state of the file, which can be downloaded, or made the present one again. @param {Api.PastState} state */
  #state = ({ at, by, action, size, sha256, change, is_current: isCurrent }) => {
    const path = this.address
    return html`
      <li>
        <span>${sha256 === null ? 'Deleted' : formatBytes(size ?? 0)} <span class="muted">${action}, ${by}, ${age(at)}</span></span>
        ${isCurrent ? html`<span class="chip good">now</span>` : nothing}
        ${sha256 === null ? nothing : html`<button class="link-button" @click=${() => save(nameOf(path), () => getContent(path, { change }))}>Download</button>`}
        ${sha256 !== null && !isCurrent && mayEdit('files') ? html`<button class="link-button" @click=${() => restore(path, change, this.#file.value)}>Restore</button>` : nothing}
      </li>`
  }

  /** @param {Api.FileRecord} file */
  async #move(file) {
    const [moved] = (await moveDialog([file])) ?? []
    if (moved) navigate(hrefToPath(moved.to))
    announceFilesChanged()
  }

  /** @param {Api.FileRecord} file */
  async #delete(file) {
    if (!(await deleteDialog([file]))) return
    this.#close()
    announceFilesChanged()
  }

  /** @param {KeyboardEvent} event */
  #press({ key, target }) {
    if (key === 'Escape') this.#close()
    if (/** @type {HTMLElement} */ (target).matches('audio, video, pre')) return
    if (key === 'ArrowRight') this.step(1)
    if (key === 'ArrowLeft') this.step(-1)
  }

  // The keyboard goes on at the row of the file.
  #close = () => {
    /** @type {HTMLElement | null} */
    const row = document.querySelector('folder-contents [aria-current=true]')
    navigate(hrefToPath(currentPath().folder, { ...Object.fromEntries(this.query), file: '' }))
    setTimeout(() => row?.focus({ preventScroll: true }))
  }
}

customElements.define('file-details', FileDetails)

/** Not over what somebody else stored meanwhile. @param {string} path @param {number} change @param {Api.FileRecord} [seen] */
const restore = (path, change, seen) =>
  attempt(async () => {
    const body = await getContent(path, { change })
    const headers = seen ? { 'if-match': `"${seen.sha256}"` } : { 'if-none-match': '*' }
    await send('files', 'put', '/api/files/{path}', { params: { path }, body, headers }).catch((error) => {
      announceFilesChanged()
      throw explain(error).status === 412 ? new Error('Somebody else changed it meanwhile: look at it again.') : error
    })
    toast(`${nameOf(path)} is as it was`)
    announceFilesChanged()
  })
