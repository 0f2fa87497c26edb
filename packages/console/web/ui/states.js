import { explain } from '../api/problem.js'
import { html, nothing } from '../core/html.js'
import { icon } from './icons.js'
import './retry-countdown.js'

/**
 * The states of anything that is loaded. Templates, not elements.
 * @import { Resource } from '../core/view.js'
 * @import { IconName } from './icons.js'
 */

/** Grey bars in place of rows; they appear after a short delay, so that fast answers do not flicker. @param {number} [rows] */
export const loading = (rows = 6) => html`
  <div class="skeleton" role="status" aria-label="Loading">
    ${Array.from({ length: rows }, () => html`<div class="skeleton-row"></div>`)}
  </div>`

/**
 * @param {{ icon: IconName, title: string, text?: unknown, action?: unknown }} state what is missing, and what to do next
 */
export const empty = ({ icon: name, title, text, action }) => html`
  <div class="empty-state">
    <div class="empty-icon">${icon(name)}</div>
    <h2>${title}</h2>
    ${text ? html`<p>${text}</p>` : nothing}
    ${action ? html`<div class="button-row">${action}</div>` : nothing}
  </div>`

/** What passes by itself is tried again by itself. @param {unknown} error @param {() => void} retry */
export const failed = (error, retry) => html`
  <div class="notice bad" role="alert">
    ${icon('warning')}
    <div>
      ${errorText(error)}
      ${explain(error).retryAfter === undefined ? nothing : html`<retry-countdown .error=${error} .retry=${retry}></retry-countdown>`}
    </div>
    <button class="button" @click=${retry}>Try again</button>
  </div>`

/**
 * A failure inside a form or dialog.
 * @param {unknown} error
 * @param {Record<string, [label: string, run: () => void] | undefined>} [actions] a way out, by the code of the problem
 */
export function errorNotice(error, actions = {}) {
  if (!error) return nothing
  const [label, run] = actions[explain(error).code] ?? []
  return html`
    <div class="notice bad" role="alert">
      ${icon('warning')}
      <div>${errorText(error)}</div>
      ${run ? html`<button class="button" @click=${run}>${label}</button>` : nothing}
    </div>`
}

/** @param {unknown} content @param {'bad' | 'warn' | 'good' | 'info'} [tone] */
export const notice = (content, tone = 'info') => html`
  <div class="notice ${tone}">${icon(tone === 'good' ? 'check' : 'warning')}<div>${content}</div></div>`

/** @param {unknown} error */
function errorText(error) {
  const { detail, advice, requestId, errors } = explain(error)
  return html`
    <p>${detail} ${advice}</p>
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
export function show(resource, ready, rows) {
  const retry = () => void resource.reload()
  if (resource.error && resource.value === undefined) return failed(resource.error, retry)
  if (resource.value === undefined) return loading(rows)
  return html`${resource.error ? failed(resource.error, retry) : nothing}${ready(resource.value)}`
}
