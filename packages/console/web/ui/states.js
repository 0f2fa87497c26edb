import { explain } from '../api/transport.js'
import { html, nothing, refocus, render, svg, View } from '../core/view.js'
import { formatDuration } from './format.js'
import paths from './icons.json' with { type: 'json' }

/** @import { Resource } from '../core/view.js' */

/** Outlines on a 24 × 24 grid, drawn for this page. @typedef {keyof typeof paths} IconName */

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
export const errorNotice = (error, action) => (error ? notice(errorText(error), 'bad', action) : nothing)

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
      errors.length > 1 // The message has a single one.
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
  return html`${notice(content, isPassing ? 'warn' : 'bad', ['Try again', reload])}${value === undefined ? nothing : ready(value)}`
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

const shownMs = 6000

/**
 * Shows a short message and announces it to screen readers. It leaves by itself, but not while somebody is at it, or when
 * a button in it is pressed.
 * @param {unknown} text
 * @param {'good' | 'bad' | 'warn' | 'wait'} [tone] `warn`, `wait`: it stays
 * @returns what dismisses it
 */
export function toast(text, tone = 'good') {
  const shown = document.createElement('div')
  const dismiss = () => shown.remove()
  shown.className = `toast ${tone}`
  shown.addEventListener('click', ({ target }) => {
    if (!(/** @type {Element} */ (target).closest('button'))) return
    dismiss()
    refocus()
  })
  const picture = icon(tone === 'good' ? 'check' : tone === 'wait' ? 'clock' : 'warning')
  render(html`${picture}<span>${text}</span>${iconButton('close', 'Dismiss', dismiss)}`, shown)
  if (region.children.length === 3) region.firstElementChild?.remove()
  // What is outside of a modal dialog cannot be pressed, nor is it announced.
  const host = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body
  if (region.parentElement !== host) host.append(region)
  region.append(shown)
  const leave = () => (shown.matches(':hover, :focus-within') ? setTimeout(leave, shownMs) : dismiss())
  if (tone === 'good' || tone === 'bad') setTimeout(leave, shownMs)
  return dismiss
}

/** Does something at once, says so where it takes long, and why where it fails. @param {() => Promise<unknown>} task */
export async function attempt(task) {
  let end = () => {}
  const timer = setTimeout(() => (end = toast('Working…', 'wait')), 500)
  try {
    await task()
  } catch (error) {
    toast(explain(error).message, 'bad')
  }
  clearTimeout(timer)
  end()
}
