import { mayEdit } from '../api/client.js'
import { html, nothing, RouteView } from '../core/view.js'
import { icon } from '../ui/states.js'
import { currentPath } from './content.js'
import { readDrop } from './upload/pick-files.js'
import { uploads } from './upload/upload-queue.js'
import './details/file-details.js'
import './folder/folder-contents.js'
import './folder-tree.js'
import './upload/upload-panel.js'

/** @import { FolderContents } from './folder/folder-contents.js' */

/** The files: the tree at the left, the folder of the address, and the details of the file that it names. */
class FileBrowser extends RouteView {
  #isDropping = false

  opened() {
    super.opened()
    const { signal } = this
    // Anywhere: a file that is dropped beside the list would replace the page.
    document.addEventListener('dragover', (event) => this.#dragOver(event), { signal })
    document.addEventListener('dragleave', (event) => event.relatedTarget ?? this.#show(false), {
      signal,
    })
    document.addEventListener('drop', (event) => void this.#drop(event), { signal })
  }

  template() {
    const { folder, file } = currentPath()
    return html`
      <div class="file-browser ${file ? 'has-details' : ''}" @step=${this.#step}>
        <folder-tree .current=${folder}></folder-tree>
        <folder-contents></folder-contents>
        ${file ? html`<file-details .path=${file}></file-details>` : nothing}
      </div>
      <upload-panel></upload-panel>
      ${
        this.#isDropping
          ? html`<div class="drop-target">${icon('upload')}<strong>Drop to upload to ${folder || 'the top folder'}</strong></div>`
          : nothing
      }`
  }

  // Only the list knows what comes after a file.
  /** @param {CustomEvent<number>} event */
  #step = ({ detail }) =>
    /** @type {FolderContents | null} */ (this.querySelector('folder-contents'))?.step(detail)

  /** @param {boolean} isDropping */
  #show(isDropping) {
    if (isDropping === this.#isDropping) return
    this.#isDropping = isDropping
    this.update()
  }

  /** @param {DragEvent} event */
  #dragOver(event) {
    if (!event.dataTransfer?.types.includes('Files') || !mayEdit('files')) return
    event.preventDefault()
    this.#show(true)
  }

  /** @param {DragEvent} event */
  async #drop(event) {
    if (!event.dataTransfer || !mayEdit('files')) return
    event.preventDefault()
    this.#show(false)
    uploads.add(currentPath().folder, await readDrop(event.dataTransfer))
  }
}

customElements.define('file-browser', FileBrowser)
