import { html, nothing, Resource, View } from '../../core/view.js'
import { formatBytes } from '../../ui/format.js'
import { show } from '../../ui/states.js'
import { contentUrl, getPresentContent } from '../content.js'

const textBytes = 64 * 1024
const isText =
  /^(?:text\/|application\/(?:json|xml|javascript|yaml|toml|x-sh|sql)\b)|[+](?:json|xml)\b/

/** A file as it looks. Texts are shown as text, never as a page. A private one comes by way of the API. */
class FilePreview extends View {
  /** @type {Api.FileRecord | undefined} */
  #file
  #content = new Resource(this, (signal) => this.#load(signal))

  /** @param {Api.FileRecord} file */
  set file(file) {
    const isSame = file.sha256 === this.#file?.sha256 && file.path === this.#file.path
    if (isSame && file.public === this.#file?.public) return
    this.#file = file
    this.#forget()
    queueMicrotask(() => void this.#content.reload())
  }

  opened() {
    this.signal.addEventListener('abort', () => this.#forget())
  }

  #forget() {
    const { url } = this.#content.value ?? {}
    if (url?.startsWith('blob:')) URL.revokeObjectURL(url)
    this.#content.value = undefined
  }

  /** @param {AbortSignal} signal */
  async #load(signal) {
    const file = this.#file
    if (!file || kindOf(file) === 'none' || kindOf(file) === 'pdf') return { url: '', text: '' }
    if (file.public === false) {
      const content = await getPresentContent(file.path, signal)
      const text = kindOf(file) === 'text' ? await content.slice(0, textBytes).text() : ''
      return { url: URL.createObjectURL(content), text }
    }
    return { url: urlOf(file), text: kindOf(file) === 'text' ? await loadText(file, signal) : '' }
  }

  template() {
    const file = this.#file
    return file ? show(this.#content, (content) => this.#preview(file, content), 5) : nothing
  }

  /** @param {Api.FileRecord} file @param {{ url: string, text: string }} content */
  #preview(file, { url, text }) {
    switch (kindOf(file)) {
      case 'image':
        return html`<img class="preview-image" src=${url} alt="Preview of ${file.name}" />`
      case 'audio':
        return html`<audio controls preload="metadata" src=${url} aria-label=${file.name}></audio>`
      case 'video':
        return html`<video controls preload="metadata" src=${url} aria-label=${file.name}></video>`
      case 'pdf':
        return html`<p class="muted preview-none">A PDF is shown best by itself: <a href=${urlOf(file)} target="_blank" rel="noopener noreferrer">open it in a new tab</a>.</p>`
      case 'text':
        return this.#textPreview(text, file)
      default:
        return html`<p class="muted preview-none">No preview for this kind of file.</p>`
    }
  }

  /** @param {string} text @param {Api.FileRecord} file */
  #textPreview(text, { size }) {
    return html`
      <pre class="preview-text" tabindex="0" aria-label="Content">${text}</pre>
      ${size > textBytes ? html`<p class="note">The first ${formatBytes(textBytes)} of ${formatBytes(size)}.</p>` : nothing}`
  }
}

// A few bytes of a large file are enough to look at.
/** @param {Api.FileRecord} file @param {AbortSignal} signal */
async function loadText(file, signal) {
  if (file.size === 0) return ''
  const headers = { range: `bytes=0-${textBytes - 1}` }
  const response = await fetch(urlOf(file), { headers, signal })
  if (!response.ok) throw new Error(`The content could not be loaded (${response.status}).`)
  return response.text()
}

/** @param {Api.FileRecord} file */
const urlOf = ({ path, sha256 }) => contentUrl(path, { sha256 })

/** @param {Api.FileRecord} file */
function kindOf({ content_type: type, category }) {
  if (category === 'image') return 'image'
  if (category === 'audio' || category === 'video') return category
  if (type.startsWith('application/pdf')) return 'pdf'
  return isText.test(type) ? 'text' : 'none'
}

customElements.define('file-preview', FilePreview)
