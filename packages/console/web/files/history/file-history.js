import { getPastContent, listFileHistory, putFile } from '../../api/file-history.js'
import { html, nothing } from '../../core/html.js'
import { mayEdit } from '../../core/session.js'
import { Resource, View } from '../../core/view.js'
import { saveBlob } from '../../ui/clipboard.js'
import { formatAge, formatBytes, formatTime } from '../../ui/format.js'
import { show } from '../../ui/states.js'
import { toast } from '../../ui/toast.js'
import { announceFilesChanged, filesChanged } from '../file-changes.js'
import { nameOf } from '../paths.js'

/** @import { FileHistory, PastState } from '../../api/schema.d.ts' */

/** Every state of one file: download one, or make it the present one again. */
class FileHistoryView extends View {
  #path = ''
  #states = new Resource(this, (signal) => listFileHistory(this.#path, signal))

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
        <span>${sha256 === null ? 'Deleted' : formatBytes(size ?? 0)} <span class="muted">${action}, ${by}, <time datetime=${at} title=${formatTime(at)}>${formatAge(at)}</time></span></span>
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
  async #download({ change }) {
    await this.#try(async () =>
      saveBlob(nameOf(this.#path), await getPastContent(this.#path, change)),
    )
  }

  /** @param {PastState} state */
  async #restore({ change }) {
    await this.#try(async () => {
      await putFile(this.#path, await getPastContent(this.#path, change))
      toast(`${nameOf(this.#path)} is as it was`)
      announceFilesChanged()
    })
  }

  /** @param {() => Promise<void>} task */
  async #try(task) {
    try {
      await task()
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'bad')
    }
  }
}

customElements.define('file-history', FileHistoryView)
