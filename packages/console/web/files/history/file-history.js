import { get, send } from '../../api/client.js'
import { html, nothing } from '../../core/html.js'
import { mayEdit } from '../../core/session.js'
import { Resource, View } from '../../core/view.js'
import { saveBlob } from '../../ui/clipboard.js'
import { formatBytes } from '../../ui/format.js'
import { show } from '../../ui/states.js'
import { age } from '../../ui/table.js'
import { attempt, toast } from '../../ui/toast.js'
import { getPastContent } from '../content.js'
import { announceFilesChanged, filesChanged } from '../file-changes.js'
import { nameOf } from '../paths.js'

/** @import { FileHistory, PastState } from '../../api/schema.d.ts' */

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
    this.#states.value = undefined
    queueMicrotask(() => void this.#states.reload())
  }

  opened() {
    const { signal } = this
    filesChanged.addEventListener('change', () => void this.#states.reload(), { signal })
  }

  template() {
    return html`<h3>History</h3>${show(this.#states, ({ history }) => this.#list(history), 3)}`
  }

  /** @param {FileHistory['history']} states */
  #list(states) {
    return html`<ol class="plain-list">${states.map((state) => this.#state(state))}</ol>`
  }

  /** @param {PastState} state */
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

  /** @param {PastState} state */
  #download = ({ change }) =>
    attempt(async () => saveBlob(nameOf(this.#path), await getPastContent(this.#path, change)))

  /** @param {PastState} state */
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
