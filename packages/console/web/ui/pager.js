import { html, nothing } from '../core/html.js'
import { formatNumber } from './format.js'

/**
 * Previous and next page with the range shown.
 * @param {import('../api/schema.d.ts').Pagination} pagination
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
