import { contentUrl } from '../../api/static-service.js'
import { html, nothing } from '../../core/html.js'
import { Resource, View } from '../../core/view.js'
import { formatBytes } from '../../ui/format.js'
import { show } from '../../ui/states.js'

/** @import { FileRecord } from '../../api/schema.d.ts' */

const textBytes = 64 * 1024
const isText =
  /^(?:text\/|application\/(?:json|xml|javascript|yaml|toml|x-sh|sql)\b)|[+](?:json|xml)\b/

/** A file as it looks. Texts are shown as text, never as a page; PDF in a frame without any rights. */
class FilePreview extends View {
  /** @type {FileRecord | undefined} */
  #file
  #text = new Resource(this, (signal) => this.#load(signal))

  /** @param {FileRecord} file */
  set file(file) {
    if (file.sha256 === this.#file?.sha256 && file.path === this.#file.path) return
    this.#file = file
    this.#text.value = undefined
    if (kindOf(file) === 'text') queueMicrotask(() => void this.#text.reload())
    this.update()
  }

  // A few bytes of a large file are enough to look at.
  /** @param {AbortSignal} signal */
  async #load(signal) {
    if (!this.#file || this.#file.size === 0) return ''
    const headers = { range: `bytes=0-${textBytes - 1}` }
    const response = await fetch(urlOf(this.#file), { headers, signal })
    if (!response.ok) throw new Error(`The content could not be loaded (${response.status}).`)
    return response.text()
  }

  template() {
    const file = this.#file
    if (!file) return nothing
    const url = urlOf(file)
    switch (kindOf(file)) {
      case 'image':
        return html`<img class="preview-image" src=${url} alt="Preview of ${file.name}" />`
      case 'audio':
        return html`<audio controls preload="metadata" src=${url} aria-label=${file.name}></audio>`
      case 'video':
        return html`<video controls preload="metadata" src=${url} aria-label=${file.name}></video>`
      case 'pdf':
        return html`
          <p class="note">Chromium shows no PDF in a protected frame: <a href=${url} target="_blank" rel="noopener noreferrer">open it in a new tab</a>.</p>
          <iframe class="preview-frame" sandbox src=${url} title="Preview of ${file.name}"></iframe>`
      case 'text':
        return show(this.#text, (text) => this.#textPreview(text, file), 5)
      default:
        return html`<p class="muted preview-none">No preview for this kind of file.</p>`
    }
  }

  /** @param {string} text @param {FileRecord} file */
  #textPreview(text, { size }) {
    return html`
      <pre class="preview-text" tabindex="0" aria-label="Content">${text}</pre>
      ${size > textBytes ? html`<p class="note">The first ${formatBytes(textBytes)} of ${formatBytes(size)}.</p>` : nothing}`
  }
}

/** @param {FileRecord} file */
const urlOf = ({ path, sha256 }) => contentUrl(path, { sha256 })

/** @param {FileRecord} file */
function kindOf({ content_type: type, category }) {
  if (category === 'image') return 'image'
  if (category === 'audio' || category === 'video') return category
  if (type.startsWith('application/pdf')) return 'pdf'
  return isText.test(type) ? 'text' : 'none'
}

customElements.define('file-preview', FilePreview)
