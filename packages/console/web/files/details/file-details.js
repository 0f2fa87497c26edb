import { get, mayEdit, send } from '../../api/client.js'
import { currentRoute, navigate } from '../../core/router.js'
import { html, nothing, Resource, View } from '../../core/view.js'
import { copy, saveBlob } from '../../ui/clipboard.js'
import { formatBytes, formatNumber, formatTime } from '../../ui/format.js'
import { attempt, icon, show, toast } from '../../ui/states.js'
import { age } from '../../ui/table.js'
import { deleteDialog, moveDialog } from '../change-dialogs.js'
import {
  announceFilesChanged,
  contentUrl,
  currentPath,
  filesChanged,
  getPastContent,
  getPresentContent,
} from '../content.js'
import { hrefToPath, nameOf } from '../paths.js'
import { openShareDialog } from '../sharing/share-dialog.js'
import './file-preview.js'

/** One file: preview, what is known of it, and what can be done with it. */
class FileDetails extends View {
  #path = ''
  #file = new Resource(this, (signal) =>
    get('files', '/api/files/{path}', { params: { path: this.#path }, signal }),
  )

  /** @param {string} path */
  set path(path) {
    if (path === this.#path) return
    this.#path = path
    this.#file.restart()
  }

  opened() {
    const { signal } = this
    filesChanged.addEventListener('change', () => void this.#file.reload(), { signal })
    this.addEventListener('keydown', (event) => this.#press(event), { signal })
  }

  template() {
    return html`
      <aside class="details" aria-label="File">
        <header class="details-header">
          <h2>${nameOf(this.#path)}</h2>
          <span class="spacer"></span>
          <button class="icon-button" aria-label="Previous file" @click=${() => this.#step(-1)}><span class="turned">${icon('chevron')}</span></button>
          <button class="icon-button" aria-label="Next file" @click=${() => this.#step(1)}>${icon('chevron')}</button>
          <button class="icon-button" aria-label="Close the file" @click=${this.#close}>${icon('close')}</button>
        </header>
        ${show(this.#file, (file) => this.#details(file), 5)}
      </aside>`
  }

  /** @param {Api.FileRecord} file */
  #details(file) {
    const url = contentUrl(file.path)
    return html`
      <file-preview .file=${file}></file-preview>
      <div class="button-row">
        ${
          file.public === false
            ? html`<button class="button" @click=${() => this.#download(file)}>${icon('download')} Download</button>`
            : html`<a class="button" href=${contentUrl(file.path, { download: true })} download>${icon('download')} Download</a>`
        }
        <button class="button" @click=${() => copy(url, 'Link')}>${icon('link')} Copy link</button>
        ${
          mayEdit('files')
            ? html`
              <button class="button" @click=${() => openShareDialog(file.path)}>${icon('lock')} Share</button>
              <button class="button" @click=${() => this.#move(file)}>${icon('move')} Move</button>
              <button class="button" @click=${() => this.#delete(file)}>${icon('trash')} Delete</button>`
            : nothing
        }
      </div>
      <dl class="facts stacked">
        <div><dt>Address</dt><dd><a href=${url} target="_blank" rel="noopener noreferrer">${url}</a></dd></div>
        ${file.public === false ? html`<div><dt>Access</dt><dd><span class="chip warn">${icon('lock')} private</span></dd></div>` : nothing}
        <div><dt>Type</dt><dd>${file.content_type} <span class="chip">${file.category}</span></dd></div>
        <div><dt>Size</dt><dd>${formatBytes(file.size)}${file.size >= 1000 ? html` <span class="muted">(${formatNumber(file.size)} bytes)</span>` : nothing}</dd></div>
        <div><dt>Changed</dt><dd>${formatTime(file.updated_at)} by ${file.uploaded_by}</dd></div>
        <div><dt>Created</dt><dd>${formatTime(file.created_at)}</dd></div>
        <div>
          <dt>SHA-256</dt>
          <dd><code>${file.sha256}</code> <button class="link-button" @click=${() => copy(file.sha256, 'Digest')}>Copy</button></dd>
        </div>
      </dl>
      <file-history .path=${file.path}></file-history>`
  }

  /** A private one, with the login. @param {Api.FileRecord} file */
  #download = ({ path, name }) => attempt(async () => saveBlob(name, await getPresentContent(path)))

  /** @param {Api.FileRecord} file */
  async #move(file) {
    const path = await moveDialog({ files: [file], directories: [], folder: currentPath().folder })
    if (!path) return announceFilesChanged()
    navigate(hrefToPath(path))
    return announceFilesChanged()
  }

  /** @param {Api.FileRecord} file */
  async #delete(file) {
    if (!(await deleteDialog({ files: [file], directories: [] }))) return
    this.#close()
    announceFilesChanged()
  }

  /** @param {KeyboardEvent} event */
  #press({ key, target }) {
    if (key === 'Escape') this.#close()
    if (/** @type {HTMLElement} */ (target).matches('audio, video')) return
    if (key === 'ArrowRight') this.#step(1)
    if (key === 'ArrowLeft') this.#step(-1)
  }

  /** @param {number} by */
  #step(by) {
    this.dispatchEvent(new CustomEvent('step', { detail: by, bubbles: true }))
  }

  #close = () => {
    const query = new URLSearchParams(currentRoute().query)
    query.delete('file')
    navigate(hrefToPath(currentPath().folder, query))
  }
}

customElements.define('file-details', FileDetails)

/** Every state of one file: download one, or make it the present one again. */
class FileHistoryView extends View {
  #path = ''
  #states = new Resource(this, (signal) =>
    get('files', '/api/history', { query: { path: this.#path, page_size: 50 }, signal }),
  )

  /** @param {string} path */
  set path(path) {
    if (path === this.#path) return
    this.#path = path
    this.#states.restart()
  }

  opened() {
    const { signal } = this
    filesChanged.addEventListener('change', () => void this.#states.reload(), { signal })
  }

  template() {
    return html`<h3>History</h3>${show(this.#states, ({ history }) => this.#list(history), 3)}`
  }

  /** @param {Api.FileHistory['history']} states */
  #list(states) {
    return html`<ol class="plain-list">${states.map((state) => this.#state(state))}</ol>`
  }

  /** @param {Api.PastState} state */
  #state(state) {
    const { at, by, action, size, sha256, is_current: isCurrent } = state
    return html`
      <li>
        <span>${sha256 === null ? 'Deleted' : formatBytes(size ?? 0)} <span class="muted">${action}, ${by}, ${age(at)}</span></span>
        ${isCurrent ? html`<span class="chip good">now</span>` : nothing}
        ${
          sha256 === null
            ? nothing
            : html`<button class="link-button" @click=${() => this.#download(state)}>Download</button>
              ${!isCurrent && mayEdit('files') ? html`<button class="link-button" @click=${() => this.#restore(state)}>Restore</button>` : nothing}`
        }
      </li>`
  }

  /** @param {Api.PastState} state */
  #download = ({ change }) =>
    attempt(async () => saveBlob(nameOf(this.#path), await getPastContent(this.#path, change)))

  /** @param {Api.PastState} state */
  #restore = ({ change }) =>
    attempt(async () => {
      const path = this.#path
      const body = await getPastContent(path, change)
      await send('files', 'put', '/api/files/{path}', { params: { path }, body })
      toast(`${nameOf(path)} is as it was`)
      announceFilesChanged()
    })
}

customElements.define('file-history', FileHistoryView)
