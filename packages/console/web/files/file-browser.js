import { mayEdit } from '../api/client.js'
import { html, nothing, RouteView } from '../core/view.js'
import { attempt, icon } from '../ui/states.js'
import { currentPath } from './content.js'
import { readDrop } from './upload/pick-files.js'
import { uploads } from './upload/upload-queue.js'
import './details/file-details.js'
import './folder/folder-contents.js'
import './folder-tree.js'
import './upload/upload-panel.js'

/** The files: the tree at the left, the folder of the address, and the details of the file that it names. */
class FileBrowser extends RouteView {
  #isDropping = false

  opened() {
    super.opened()
    // Anywhere: a file that is dropped beside the list would replace the page.
    for (const type of ['dragover', 'dragleave', 'drop'])
      document.addEventListener(type, (event) => this.#drag(/** @type {DragEvent} */ (event)), {
        signal: this.signal,
      })
  }

  template() {
    const { folder, file } = currentPath()
    return html`
      <div class="file-browser ${file ? 'has-details' : ''}">
        <folder-tree></folder-tree>
        <folder-contents></folder-contents>
        ${file ? html`<file-details .step=${this.#step}></file-details>` : nothing}
      </div>
      <upload-panel></upload-panel>
      ${this.#isDropping ? html`<div class="drop-target">${icon('upload')}<strong>Drop to upload to ${folder || 'the top folder'}</strong></div>` : nothing}`
  }

  // Only the list knows what comes after a file.
  /** @param {number} by */
  #step = (by) => this.querySelector('folder-contents')?.step(by)

  /** @param {DragEvent} event */
  async #drag(event) {
    const { dataTransfer, type, relatedTarget } = event
    if (!dataTransfer?.types.includes('Files') || !mayEdit('files')) return
    event.preventDefault()
    this.#isDropping = type === 'dragover' || (type === 'dragleave' && relatedTarget !== null)
    this.update()
    // What cannot be read is said.
    if (type === 'drop') await attempt(async () => uploads.add(currentPath().folder, await readDrop(dataTransfer)))
  }
}

customElements.define('file-browser', FileBrowser)
