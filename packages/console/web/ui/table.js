import { html, nothing } from '../core/view.js'
import { daysUntil, formatAge, formatCount, formatDate, formatNumber, formatTime } from './format.js'

/** @import { Resource, RouteView } from '../core/view.js' */

/**
 * Rows below their headers; Up and Down move between them. A header without a word is that of the buttons.
 * @param {unknown[]} headers texts, or cells
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
 * A row for each item: its cells by the titles of their columns, the first one its head, and what can be done with it.
 * @template Item
 * @param {Item[]} items
 * @param {Record<string, (item: Item) => unknown>} columns
 * @param {(item: Item) => [name: string, ...buttons: ([words: string, run: () => unknown] | undefined)[]]} [buttonsOf] with the name that
 *   screen readers say after each
 */
export function list(items, columns, buttonsOf) {
  const row = (/** @type {Item} */ item) => {
    const [name, ...buttons] = buttonsOf?.(item) ?? []
    const [head, ...cells] = Object.entries(columns).map(([title, draw]) => ({
      title,
      cell: draw(item),
    }))
    return html`
      <tr>
        <th scope="row">${head?.cell}</th>
        ${cells.map(({ title, cell }) => html`<td class="muted" data-label=${title}>${cell}</td>`)}
        ${
          buttonsOf
            ? html`<td class="actions">${buttons.map((each) => each && html`<button class="button" aria-label="${each[0]} ${name}" @click=${each[1]}>${each[0]}</button> `)}</td>`
            : nothing
        }
      </tr>`
  }
  return table([...Object.keys(columns), ...(buttonsOf ? [''] : [])], items.map(row))
}

/**
 * A button for each value of the address that narrows the list: it takes it away.
 * @param {RouteView} view
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
 * How old is what the registrar said, and a way to ask it again.
 * @param {number} readAt
 * @param {Resource<any>} [of]
 */
export const readAge = (readAt, of) => html`
  <p class="note">
    Read from the registrar ${formatAge(new Date(readAt).toISOString())}
    ${of ? html`<button class="link-button" ?disabled=${of.isLoading} @click=${of.readNow}>Read it now</button>` : nothing}
  </p>`

/**
 * The button of a column that sorts, with the state for `aria-sort`.
 * @param {string} label
 * @param {[first: string, other: string]} sorts the API's values, `-` or `_DESC` in that of descending order; the first one is
 *   what the first click wants
 * @param {string} current
 * @param {(sort: string) => void} onSort
 */
export function sortButton(label, [first, other], current, onSort) {
  const isSorted = current === first || current === other
  const state = !isSorted ? 'none' : /^-|_DESC$/.test(current) ? 'descending' : 'ascending'
  const next = current === first ? other : first
  return {
    state,
    button: html`<button class="sort" @click=${() => onSort(next)}>${label}</button>`,
  }
}

/**
 * Up and Down move between the links or rows marked `data-row`; Enter follows the one that has the focus.
 * @param {KeyboardEvent} event
 */
function moveBetweenRows(event) {
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

/**
 * Previous and next page with the range shown.
 * @param {Api.Pagination} pagination
 * @param {(page: number) => void} open
 */
export function pager({ page, page_size, total_items, total_pages }, open) {
  if (total_pages <= 1) return nothing
  const first = (page - 1) * page_size + 1
  const last = Math.min(page * page_size, total_items)
  return html`
    <nav class="pager" aria-label="Pages">
      <button class="button" ?disabled=${page <= 1} @click=${() => open(page - 1)}>Previous</button>
      <span>${formatNumber(first)}–${formatNumber(last)} of ${formatNumber(total_items)}</span>
      <button class="button" ?disabled=${page >= total_pages} @click=${() => open(page + 1)}>Next</button>
    </nav>`
}

/** A decorative bar, 0 to 1: the text beside it says the value. @param {number} fraction @param {string} [tone] */
export const bar = (fraction, tone = '') =>
  html`<progress class="bar ${tone}" value=${fraction} aria-hidden="true"></progress>`

const fullBarDays = 365

/**
 * The days left of a registration as a bar with its date: a full bar is a year or more.
 * @param {string | null} expiresOn
 * @param {boolean | null} [isExpired]
 */
export function expiryBar(expiresOn, isExpired = false) {
  if (!expiresOn) return html`<span class="muted">unknown</span>`
  const days = isExpired ? -1 : daysUntil(expiresOn)
  const tone = days <= 30 ? 'bad' : days <= 90 ? 'warn' : 'good'
  const words = days < 0 ? 'expired' : days === 0 ? 'expires today' : `${formatCount(days, 'day')} left`
  return html`
    <span class="expiry ${tone}" title=${formatDate(expiresOn)}>
      ${bar(Math.max(0, days) / fullBarDays, tone)}
      <span class="expiry-words">${words}</span>
      <span class="expiry-date">${formatDate(expiresOn)}</span>
    </span>`
}
