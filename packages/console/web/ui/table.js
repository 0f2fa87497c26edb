import { html } from '../core/html.js'
import { formatAge, formatTime } from './format.js'

/**
 * Rows below their headers; Up and Down move between them. A header without a word is that of the buttons.
 * @param {unknown[]} headers texts, or cells of `sortHeader`
 * @param {unknown} rows
 * @param {string} [className]
 */
export const table = (headers, rows, className = '') => html`
  <div class="table-frame" @keydown=${moveBetweenRows}>
    <table class="rows ${className}">
      <thead>
        <tr>
          ${headers.map((header) => (typeof header === 'string' ? html`<th scope="col">${header || html`<span class="sr-only">Actions</span>`}</th>` : header))}
        </tr>
      </thead>
      <tbody>${rows}</tbody>
    </table>
  </div>`

/**
 * A button for each value of the address that narrows the list: it takes it away.
 * @param {import('../core/view.js').RouteView} view
 * @param {string[]} names
 */
export const filterChips = (view, names) =>
  names.flatMap((name) => {
    const value = view.query.get(name)
    if (!value) return []
    return html`<button class="button" aria-label="Remove the filter ${value}" @click=${() => view.open({ [name]: undefined })}>${value} ×</button>`
  })

/** "3 hours ago", with the time as its title. @param {string} instant */
export const age = (instant) =>
  html`<time datetime=${instant} title=${formatTime(instant)}>${formatAge(instant)}</time>`

/**
 * A column header that sorts. `sorts`: the API's values for ascending and descending order.
 * @param {string} label
 * @param {[ascending: string, descending: string]} sorts
 * @param {string} current
 * @param {(sort: string) => void} onSort
 */
export function sortHeader(label, [ascending, descending], current, onSort) {
  const state = current === ascending ? 'ascending' : current === descending ? 'descending' : 'none'
  return html`
    <th scope="col" aria-sort=${state}>
      <button class="sort" @click=${() => onSort(state === 'ascending' ? descending : ascending)}>${label}</button>
    </th>`
}

/**
 * Up and Down move between the links or rows marked `data-row`; Enter follows the one that has the focus.
 * @param {KeyboardEvent} event
 */
export function moveBetweenRows(event) {
  if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return
  const target = /** @type {HTMLElement} */ (event.target)
  if (target.matches('input:not([type=checkbox]):not([type=search]), select, textarea')) return
  const table = /** @type {HTMLElement} */ (event.currentTarget)
  const rows = /** @type {HTMLElement[]} */ ([...table.querySelectorAll('[data-row]')])
  const at = rows.findIndex((row) => row === target || row.closest('tr')?.contains(target))
  const next = event.key === 'ArrowDown' ? at + 1 : Math.max(0, at - 1)
  rows[Math.min(next, rows.length - 1)]?.focus()
  event.preventDefault()
}
