import { explain } from '../../api/transport.js'
import { html, nothing, View } from '../../core/view.js'
import { formatBytes, formatCount, formatCounts, formatDuration, formatNumber } from '../../ui/format.js'
import { icon, iconButton } from '../../ui/states.js'
import { bar } from '../../ui/table.js'
import { repeat } from '../../vendor/directives/repeat.js'
import { nameOf, parentOf } from '../paths.js'
import { isOpen, uploads } from './upload-queue.js'
import { interruptedPaths, isResumable } from './upload-request.js'

/** @import { Upload } from './upload-queue.js' */

const maxRows = 100

/** The uploads: progress, speed and time left of all, and each with its own state, pause, cancel and retry. */
class UploadPanel extends View {
  #isOpen = true
  #wasActive = false
  #interrupted = interruptedPaths()

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
    const { summary, items } = uploads
    if (items.length === 0) return this.#interrupted.length > 0 ? this.#afterReload() : nothing
    const { isActive, failed, total, sent } = summary
    const buttons = html`
      <button class="icon-button toggle ${this.#isOpen ? 'open' : ''}" aria-expanded=${this.#isOpen} aria-label="Show each upload" @click=${this.#toggle}>
        ${icon('chevron')}
      </button>
      ${!isActive && failed > 0 ? html`<button class="button" @click=${() => uploads.retryFailed()}>Retry failed</button>` : nothing}
      ${isActive ? html`<button class="button" @click=${() => uploads.cancelAll()}>Cancel all</button>` : this.#closeButton()}`
    const progress = bar(total > 0 ? sent / total : summary.done > 0 ? 1 : 0)
    return panel(title(summary), detail(summary), buttons, [progress, this.#isOpen ? list() : ''])
  }

  // A reload ends the program, not the uploads: the browser gives their files again when they are chosen.
  #afterReload() {
    const words = `Choose the same files again, and they continue: ${this.#interrupted.join(', ')}`
    const title = `${formatCount(this.#interrupted.length, 'upload')} interrupted`
    return panel(title, words, this.#closeButton())
  }

  #closeButton = () =>
    iconButton('close', 'Close the list of uploads', () => {
      this.#interrupted = []
      uploads.clear()
    })

  #toggle = () => {
    this.#isOpen = !this.#isOpen
    this.update()
  }
}

/** @param {string} title @param {string} words @param {unknown} buttons @param {unknown} [content] */
const panel = (title, words, buttons, content) => html`
  <section class="upload-panel" aria-label="Uploads">
    <header>
      <div class="upload-title"><strong role="status">${title}</strong> <span class="muted">${words}</span></div>
      ${buttons}
    </header>
    ${content}
  </section>`

// Those that need attention come first, then those under way.
function list() {
  const sorted = order.flatMap((wanted) => uploads.items.filter(({ state }) => state === wanted))
  return html`
    <ul class="upload-list" aria-label="Each upload" tabindex="0">
      ${repeat(sorted.slice(0, maxRows), ({ id }) => id, row)}
      ${sorted.length > maxRows ? html`<li class="muted">and ${formatNumber(sorted.length - maxRows)} more</li>` : nothing}
    </ul>`
}

/** @param {typeof uploads.summary} summary */
function title({ count, done, failed, cancelled, isActive }) {
  if (isActive) return `Uploading ${formatNumber(done)} of ${formatCount(count, 'file')}`
  const rest = failed + cancelled > 0 ? `, ${formatCounts({ failed, cancelled })}` : ''
  return `${formatCount(done, 'file')} uploaded${rest}`
}

/** @param {typeof uploads.summary} summary */
function detail({ sent, total, perSecond, isActive }) {
  if (!isActive) return formatBytes(total)
  const progress = `${formatBytes(sent)} of ${formatBytes(total)}`
  if (perSecond === 0) return progress
  const left = formatDuration((total - sent) / perSecond)
  return `${progress} · ${formatBytes(perSecond)}/s · ${left} left`
}

const order = ['failed', 'exists', 'sending', 'paused', 'waiting', 'cancelled', 'skipped', 'done']

/** @param {Upload} upload */
function row(upload) {
  const { file, path, state, sent, error } = upload
  const percent = Math.round((100 * sent) / (file.size || 1))
  const hasBar = state === 'sending' || state === 'paused'
  return html`
    <li>
      <span class="upload-name" title=${path}>${nameOf(path)} <span class="muted">${parentOf(path)}</span></span>
      <span class="upload-state">
        ${hasBar ? html`${bar(percent / 100)}<span class="sr-only">${percent} %</span>` : nothing}
        ${state === 'sending' || state === 'failed' ? nothing : html`<span class="muted">${state}</span>`}
      </span>
      <span class="upload-actions">
        ${state === 'sending' && isResumable(file) ? iconButton('pause', `Pause ${path}`, () => uploads.pause(upload)) : nothing}
        ${state === 'paused' ? iconButton('play', `Resume ${path}`, () => uploads.retry(upload)) : nothing}
        ${isOpen(upload) ? iconButton('close', `Cancel ${path}`, () => uploads.cancel(upload)) : nothing}
        ${state === 'failed' || state === 'cancelled' ? iconButton('refresh', `Retry ${path}`, () => uploads.retry(upload)) : nothing}
        ${state === 'done' ? html`<span class="upload-done">${icon('check')}</span>` : nothing}
      </span>
      ${state === 'sending' && error ? html`<p class="muted">interrupted, trying again: ${explain(error).message}</p>` : nothing}
      ${state === 'failed' ? html`<p class="fault">${explain(error).message} ${explain(error).advice}</p>` : nothing}
    </li>`
}

customElements.define('upload-panel', UploadPanel)
