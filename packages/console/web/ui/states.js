import { explain } from '../api/transport.js'
import { html, nothing, render, svg, View } from '../core/view.js'
import { formatDuration } from './format.js'

/** @import { Resource } from '../core/view.js' */

// Outlines on a 24 × 24 grid, drawn for this page.
const paths = {
  globe:
    'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M3 12h18M12 3c3 2.6 3.6 6 3.6 9S15 18.400 12 21c-3-2.600-3.600-6-3.600-9S9 5.600 12 3',
  bell: 'M6 16V11a6 6 0 0 1 12 0v5l1.500 2h-15zM10 20.500h4',
  clock: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M12 7.500V12l3.200 2',
  gauge: 'M4 18a9 9 0 1 1 16 0M12 14l4-5M12 14h.01',
  folder: 'M3 7a2 2 0 0 1 2-2h4l2 2.500h8a2 2 0 0 1 2 2V17a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2z',
  tag: 'M4 4h7l9 9-7 7-9-9zM8 8h.01',
  chart: 'M4 20V4M4 20h16M9 16v-5M13 16V8M17 16v-3',
  key: 'M14.500 9.500a4.500 4.500 0 1 0-3.400 4.400L13 15.800h2v2h2v2h3v-3.200l-5.800-5.800c.2-.4.3-.9.3-1.300M9 9h.01',
  lock: 'M6 11h12v9H6zM8.500 11V8a3.500 3.500 0 0 1 7 0v3',
  refresh: 'M20 5v5h-5M4 19v-5h5M19 10a7.500 7.500 0 0 0-13-3M5 14a7.500 7.500 0 0 0 13 3',
  search: 'M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14M20 20l-4-4',
  plus: 'M12 5v14M5 12h14',
  trash: 'M5 7h14M10 7V4.500h4V7M7 7l1 13h8l1-13M10.500 11v5M13.500 11v5',
  edit: 'M4 20h4L19 9l-4-4L4 16zM13 7l4 4',
  undo: 'M9 7 4.500 11.500 9 16M5 11.500h9a5 5 0 0 1 0 10h-2',
  check: 'M5 12.500 10 17 19 7',
  close: 'M6 6l12 12M18 6 6 18',
  upload: 'M12 16V5M7.500 9.500 12 5l4.500 4.500M5 19h14',
  download: 'M12 5v11M7.500 11.500 12 16l4.500-4.500M5 19h14',
  copy: 'M9 9h11v11H9zM15 9V4H4v11h5',
  link: 'M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.600-5.700L12 7.200M14 10a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0 5.600 5.700L12 16.800',
  chevron: 'M9 6l6 6-6 6',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4',
  image: 'M4 5h16v14H4zM4 16l4.500-4.500L13 16l2.500-2.500L20 17M15 9h.01',
  warning: 'M12 4 2.800 20h18.400zM12 10v4.500M12 17.300h.01',
  person: 'M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8M4.500 20a7.500 7.500 0 0 1 15 0',
  help: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M9.700 9.500a2.400 2.400 0 1 1 3.300 2.200c-.7.3-1 .8-1 1.600M12 16.500h.01',
  queue: 'M4 6h16M4 12h16M4 18h9',
  move: 'M4 12h13M12.500 7.500 17 12l-4.500 4.500M20 5v14',
  pause: 'M9 5v14M15 5v14',
  play: 'M8 5l11 7-11 7z',
  grid: 'M4 4h6v6H4zM14 4h6v6h-6zM4 14h6v6H4zM14 14h6v6h-6z',
}

/** @typedef {keyof typeof paths} IconName */

/** A decorative icon; the text beside it, or the button's label, says what it means. @param {IconName} name */
export const icon = (name) => svg`
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${paths[name]} /></svg>`

/** @param {IconName} name @param {string} label @param {(event: Event) => unknown} run @param {string} [className] */
export const iconButton = (name, label, run, className = '') =>
  html`<button class="icon-button ${className}" type="button" aria-label=${label} title=${label} @click=${run}>${icon(name)}</button>`

/** Grey bars in place of rows; they appear after a short delay, so that fast answers do not flicker. @param {number} [rows] */
export const loading = (rows = 6) => html`
  <div class="skeleton" role="status" aria-label="Loading">
    ${Array.from({ length: rows }, () => html`<div class="skeleton-row"></div>`)}
  </div>`

/**
 * A view: its title, what can be done with all of it, and its content.
 * @param {unknown} title
 * @param {unknown} tools
 * @param {unknown} content
 */
export const page = (title, tools, content) => html`
  <div class="view">
    <header class="view-header"><h1>${title}</h1><div class="toolbar">${tools}</div></header>
    ${content}
  </div>`

/**
 * What is missing, and what to do next.
 * @param {IconName} name
 * @param {string} title
 * @param {unknown} [text]
 * @param {unknown} [action]
 */
export const empty = (name, title, text, action) => html`
  <div class="empty-state">
    <div class="empty-icon">${icon(name)}</div>
    <h2>${title}</h2>
    ${text ? html`<p>${text}</p>` : nothing}
    ${action ? html`<div class="button-row">${action}</div>` : nothing}
  </div>`

/** A failure inside a form or dialog. @param {unknown} error @param {Action} [action] a way out */
export const errorNotice = (error, action) =>
  error ? notice(errorText(error), 'bad', action) : nothing

/**
 * @typedef {[label: string, run: () => void]} Action
 * @param {unknown} content
 * @param {'bad' | 'warn' | 'good' | 'info'} [tone]
 * @param {Action} [action]
 */
export const notice = (content, tone = 'info', action) => html`
  <div class="notice ${tone}" role=${tone === 'bad' ? 'alert' : nothing}>
    ${icon(tone === 'good' ? 'check' : 'warning')}<div>${content}</div>
    ${action ? html`<button class="button" type="button" @click=${action[1]}>${action[0]}</button>` : nothing}
  </div>`

/** @param {unknown} error */
function errorText(error) {
  const { message, advice, requestId, errors } = explain(error)
  return html`
    <p>${message} ${advice}</p>
    ${
      errors.length > 0
        ? html`<ul>
          ${errors.slice(0, 8).map(({ path, message }) => html`<li><code>${path}</code> ${message}</li>`)}
        </ul>`
        : nothing
    }
    ${requestId ? html`<p class="request-id">Request <code>${requestId}</code></p>` : nothing}`
}

/**
 * What a resource shows in each of its states. The last value stays visible while a newer one is loaded.
 * @template Value
 * @param {Resource<Value>} resource
 * @param {(value: Value) => unknown} ready
 * @param {number} [rows]
 */
export function show({ value, error, reload }, ready, rows) {
  if (!error) return value === undefined ? loading(rows) : ready(value)
  // What passes by itself is tried again by itself.
  const countdown = html`<retry-countdown .error=${error} .retry=${reload}></retry-countdown>`
  const isPassing = explain(error).retryAfter !== undefined
  const content = html`${errorText(error)} ${isPassing ? countdown : nothing}`
  return html`${notice(content, 'bad', ['Try again', reload])}${value === undefined ? nothing : ready(value)}`
}

/** Tries again by itself when the service said to, or after a few seconds where it did not answer. */
class RetryCountdown extends View {
  retry = () => {}
  /** @type {unknown} */
  #error
  #left = 0

  /** A further failure counts again. @param {unknown} error */
  set error(error) {
    if (error === this.#error) return
    this.#error = error
    this.#left = Math.ceil(explain(error).retryAfter ?? 5)
    this.update()
  }

  opened() {
    const timer = setInterval(() => this.#tick(), 1000)
    this.signal.addEventListener('abort', () => clearInterval(timer))
  }

  #tick() {
    this.#left -= 1
    this.update()
    if (this.#left === 0) this.retry()
  }

  template() {
    return html`<span class="muted">Trying again in ${formatDuration(Math.max(0, this.#left))}</span>`
  }
}

customElements.define('retry-countdown', RetryCountdown)

const region = document.createElement('div')
region.className = 'toasts'
region.setAttribute('role', 'status')
document.body.append(region)

/**
 * Shows a short message and announces it to screen readers. It leaves by itself, or when it is dismissed.
 * @param {unknown} text
 * @param {'good' | 'bad'} [tone]
 */
export function toast(text, tone = 'good') {
  const shown = document.createElement('div')
  const dismiss = () => shown.remove()
  shown.className = `toast ${tone}`
  const picture = icon(tone === 'good' ? 'check' : 'warning')
  render(html`${picture}<span>${text}</span>${iconButton('close', 'Dismiss', dismiss)}`, shown)
  if (region.children.length === 3) region.firstElementChild?.remove()
  region.append(shown)
  setTimeout(dismiss, 6000)
}

/** Does something at once, and says why where it fails. @param {() => Promise<unknown>} task */
export async function attempt(task) {
  try {
    await task()
  } catch (error) {
    toast(explain(error).message, 'bad')
  }
}
