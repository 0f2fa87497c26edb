import { explain } from '../../api/problem.js'
import { html, nothing } from '../../core/html.js'
import { View } from '../../core/view.js'
import { formatBytes, formatCount, formatDuration, formatNumber } from '../../ui/format.js'
import { icon } from '../../ui/icons.js'
import { isOpen, uploads } from './upload-queue.js'
import '../../ui/meter-bar.js'
import '../../ui/virtual-list.js'

/** @import { Upload } from './upload-queue.js' */

/** The uploads: progress, speed and time left of all, and each with its own state, cancel and retry. */
class UploadPanel extends View {
  #isOpen = true
  #wasActive = false

  opened() {
    uploads.addEventListener('change', () => this.#follow(), { signal: this.signal })
  }

  // Opens for new uploads, and folds when all have arrived.
  #follow() {
    const { isActive, failed } = uploads.summary
    if (isActive !== this.#wasActive) this.#isOpen = isActive || failed > 0
    this.#wasActive = isActive
    this.update()
  }

  template() {
    if (uploads.items.length === 0) return nothing
    const { summary } = uploads
    return html`
      <section class="upload-panel" aria-label="Uploads">
        <header>
          <div class="upload-title">
            <strong role="status">${title(summary)}</strong>
            <span class="muted">${detail(summary)}</span>
          </div>
          <button class="icon-button toggle ${this.#isOpen ? 'open' : ''}" aria-expanded=${this.#isOpen} aria-label="Show each upload" @click=${this.#toggle}>
            ${icon('chevron')}
          </button>
          ${
            !summary.isActive && summary.failed > 0
              ? html`<button class="button" @click=${() => uploads.retryFailed()}>Retry failed</button>`
              : nothing
          }
          ${
            summary.isActive
              ? html`<button class="button" @click=${() => uploads.cancelAll()}>Cancel all</button>`
              : html`<button class="icon-button" aria-label="Close the list of uploads" @click=${() => uploads.clear()}>${icon('close')}</button>`
          }
        </header>
        <meter-bar .fraction=${summary.total > 0 ? summary.sent / summary.total : summary.isActive ? 0 : 1}></meter-bar>
        ${this.#isOpen ? this.#list() : nothing}
      </section>`
  }

  #list() {
    // Those that need attention come first, then those under way.
    const items = [...uploads.items].sort(
      (left, right) => rank(left) - rank(right) || left.id - right.id,
    )
    return html`
      <virtual-list
        class="upload-list"
        .label=${'Each upload'}
        .header=${html`<span role="columnheader" class="sr-only">Upload</span>`}
        .drawRow=${(/** @type {number} */ index) => row(items[index])}
        .count=${items.length}
      ></virtual-list>`
  }

  #toggle = () => {
    this.#isOpen = !this.#isOpen
    this.update()
  }
}

/** @param {typeof uploads.summary} summary */
function title({ count, done, failed, isActive }) {
  if (isActive) return `Uploading ${formatNumber(done)} of ${formatCount(count, 'file')}`
  const stored = `${formatCount(done, 'file')} uploaded`
  return failed > 0 ? `${stored}, ${formatNumber(failed)} failed` : stored
}

/** @param {typeof uploads.summary} summary */
function detail({ sent, total, perSecond, secondsLeft, isActive }) {
  const parts = [isActive ? `${formatBytes(sent)} of ${formatBytes(total)}` : formatBytes(total)]
  if (isActive && perSecond > 0) parts.push(`${formatBytes(perSecond)}/s`)
  if (secondsLeft !== undefined) parts.push(`${formatDuration(secondsLeft)} left`)
  return parts.join(' · ')
}

/** @param {Upload} upload */
const rank = ({ state }) =>
  ['failed', 'exists', 'sending', 'waiting'].indexOf(state) +
  (isOpen(state) || state === 'failed' ? 0 : 9)

/** @param {Upload | undefined} upload */
function row(upload) {
  if (!upload) return nothing
  const { file, path, state, sent, error } = upload
  return html`
    <span class="upload-name" role="gridcell" title=${path}><span data-row tabindex="-1">${path}</span></span>
    <span class="upload-state" role="gridcell">
      ${
        state === 'sending'
          ? html`<meter-bar .fraction=${file.size > 0 ? sent / file.size : 0}></meter-bar><span class="sr-only">${Math.round((100 * sent) / (file.size || 1))} %</span>`
          : state === 'failed'
            ? html`<span class="fault" title=${explain(error).detail}>${explain(error).detail}</span>`
            : html`<span class="muted">${words[state]}</span>`
      }
    </span>
    <span role="gridcell">
      ${isOpen(state) ? html`<button class="icon-button" aria-label="Cancel ${path}" @click=${() => uploads.cancel(upload)}>${icon('close')}</button>` : nothing}
      ${
        state === 'failed' || state === 'cancelled'
          ? html`<button class="icon-button" aria-label="Retry ${path}" @click=${() => uploads.retry(upload)}>${icon('refresh')}</button>`
          : nothing
      }
      ${state === 'done' ? html`<span class="upload-done">${icon('check')}</span>` : nothing}
    </span>`
}

const words = {
  waiting: 'waiting',
  done: 'done',
  exists: 'exists',
  skipped: 'skipped',
  cancelled: 'cancelled',
  failed: '',
  sending: '',
}

customElements.define('upload-panel', UploadPanel)
