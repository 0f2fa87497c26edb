import { html } from '../core/html.js'

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
