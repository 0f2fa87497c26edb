import { html, nothing, Resource, View } from '../../core/view.js'
import { formatBytes } from '../../ui/format.js'
import { show } from '../../ui/states.js'
import { contentUrl, getContent, giveWay } from '../content.js'

const textBytes = 64 * 1024
const isText = /^(?:text\/|application\/(?:json|xml|javascript|yaml|toml|x-sh|sql)\b)|[+](?:json|xml)\b/

/** How each kind of file is shown, by its URL, or its text. @type {Record<string, (content: string, file: Api.FileRecord) => unknown>} */
const previews = {
  image: (url, { name }) => html`
    <img class="preview-image" src=${url} alt="Preview of ${name}" @load=${giveWay} @error=${giveWay} />
    <p class="muted preview-none">This image cannot be shown: it may be damaged.</p>`,
  audio: (url, { name }) => html`<audio controls preload="metadata" src=${url} aria-label=${name}></audio>`,
  video: (url, { name }) => html`<video controls preload="metadata" src=${url} aria-label=${name}></video>`,
  text: (text, { size }) => html`
    <pre class="preview-text" tabindex="0" aria-label="Content">${text}</pre>
    ${size > textBytes ? html`<p class="note">The first ${formatBytes(textBytes)} of ${formatBytes(size)}.</p>` : nothing}`,
  pdf: (url) =>
    html`<p class="muted preview-none">A PDF is shown best by itself: <a href=${url} target="_blank" rel="noopener noreferrer">open it in a new tab</a>.</p>`,
  none: () => html`<p class="muted preview-none">No preview for this kind of file.</p>`,
}

/** @param {Api.FileRecord} file */
function kindOf({ content_type: type, category }) {
  if (type.startsWith('application/pdf')) return 'pdf'
  if (['image', 'audio', 'video'].includes(category)) return category
  return isText.test(type) ? 'text' : 'none'
}

/** A file as it looks. Texts are shown as text, never as a page. A private one is loaded with the login. */
class FilePreview extends View {
  /** @type {Api.FileRecord | undefined} */
  #file
  #content = new Resource(this, async (signal) => (this.#file ? read(this.#file, signal) : ''))

  /** @param {Api.FileRecord} file */
  set file(file) {
    if (keyOf(file) === (this.#file && keyOf(this.#file))) return
    this.#file = file
    this.#forget()
    this.#content.value = undefined
    queueMicrotask(() => void this.#content.reload())
  }

  opened() {
    this.signal.addEventListener('abort', () => this.#forget())
  }

  #forget() {
    const { value } = this.#content
    if (value?.startsWith('blob:')) URL.revokeObjectURL(value)
  }

  template() {
    const file = this.#file
    return file && show(this.#content, (content) => previews[kindOf(file)]?.(content, file), 5)
  }
}

/** @param {Api.FileRecord} file */
const keyOf = ({ path, sha256, public: isPublic }) => `${sha256} ${isPublic} ${path}`

// A few bytes of a large text are enough to look at.
/** @param {Api.FileRecord} file @param {AbortSignal} signal */
async function read(file, signal) {
  const { path, size, sha256, public: isPublic } = file
  const kind = kindOf(file)
  const headers = { range: `bytes=0-${textBytes - 1}` }
  if (kind === 'text') return size > 0 ? (await getContent(path, { headers, signal })).text() : ''
  if (isPublic !== false || kind === 'none') return contentUrl(path, { sha256 })
  return URL.createObjectURL(await getContent(path, { signal }))
}

customElements.define('file-preview', FilePreview)
