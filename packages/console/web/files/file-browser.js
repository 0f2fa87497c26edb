import { html, nothing } from '../core/html.js'
import { currentRoute, decode, routeChanges } from '../core/router.js'
import { mayEdit } from '../core/session.js'
import { View } from '../core/view.js'
import { icon } from '../ui/icons.js'
import { parentOf } from './paths.js'
import { readDrop } from './upload/dropped-files.js'
import { uploads } from './upload/upload-queue.js'
import './details/file-details.js'
import './folder/folder-contents.js'
import './folder-tree.js'
import './upload/upload-panel.js'

/** The files: the tree at the left, the folder of the address, and the details of the file that it names. */
class FileBrowser extends View {
  #isDropping = false

  opened() {
    const { signal } = this
    routeChanges.addEventListener('change', () => this.update(), { signal })
    this.addEventListener('dragover', (event) => this.#dragOver(event), { signal })
    this.addEventListener('dragleave', (event) => this.#dragLeave(event), { signal })
    this.addEventListener('drop', (event) => void this.#drop(event), { signal })
  }

  #path() {
    const { path } = currentRoute()
    const [, ...segments] = path.replace(/^\//, '').split('/')
    return segments.map(decode).join('/')
  }

  template() {
    if (currentRoute().segments[0] !== 'files') return nothing
    const path = this.#path()
    const folder = path.endsWith('/') || path === '' ? path : parentOf(path)
    const file = currentRoute().query.get('file') ?? (path === folder ? '' : path)
    return html`
      <div class="file-browser ${file ? 'has-details' : ''}">
        <folder-tree .current=${folder}></folder-tree>
        <folder-contents .folder=${folder} .file=${file}></folder-contents>
        ${file ? html`<file-details .path=${file}></file-details>` : nothing}
      </div>
      <upload-panel></upload-panel>
      ${
        this.#isDropping
          ? html`<div class="drop-target">${icon('upload')}<strong>Drop to upload to ${folder || 'the top folder'}</strong></div>`
          : nothing
      }`
  }

  /** @param {DragEvent} event */
  #dragOver(event) {
    if (!event.dataTransfer?.types.includes('Files') || !mayEdit('files')) return
    event.preventDefault()
    if (this.#isDropping) return
    this.#isDropping = true
    this.update()
  }

  /** @param {DragEvent} event */
  #dragLeave(event) {
    if (event.relatedTarget instanceof Node && this.contains(event.relatedTarget)) return
    this.#isDropping = false
    this.update()
  }

  /** @param {DragEvent} event */
  async #drop(event) {
    if (!event.dataTransfer || !mayEdit('files')) return
    event.preventDefault()
    this.#isDropping = false
    this.update()
    const path = this.#path()
    const folder = path.endsWith('/') ? path : parentOf(path)
    uploads.add(folder, await readDrop(event.dataTransfer))
  }
}

customElements.define('file-browser', FileBrowser)
