import { html, nothing, svg } from '../core/view.js'
import { formatBytes, formatCount, formatNumber } from '../ui/format.js'

/**
 * The categories that have files: a bar of their sizes, and a button each with its count. The chosen one is pressed.
 * @param {Api.CategoryCount[]} categories
 * @param {string} chosen
 * @param {(category: string) => void} onChoose
 */
export const categoryBar = (categories, chosen, onChoose) => html`
  <div class="category-bar">
    ${stackedBar(categories)}
    <div class="category-chips" role="group" aria-label="Categories">
      ${categories.map(
        ({ category, file_count: count, total_size: size }) => html`
          <button class="category-chip" aria-pressed=${category === chosen} title="${formatCount(count, 'file')}, ${formatBytes(size)}"
            @click=${() => onChoose(category === chosen ? '' : category)}>
            <span class="swatch ${category}"></span>${category} <span class="count">${formatNumber(count)}</span>
          </button>`,
      )}
      ${categories.length === 0 ? html`<span class="category-chip">&nbsp;</span>` : nothing}
    </div>
  </div>`

/** One bar of all sizes, a part for each category in its colour. @param {readonly Api.CategoryCount[]} categories */
export function stackedBar(categories) {
  const total = categories.reduce((sum, { total_size: size }) => sum + size, 0)
  const label = categories.map(({ category, total_size: size }) => `${category} ${formatBytes(size)}`).join(', ')
  let start = 0
  return svg`
    <svg class="size-bar" viewBox="0 0 100 2" preserveAspectRatio="none" role="img" aria-label="Sizes: ${label || 'no files'}">
      <rect class="size-track" width="100" height="2" />
      ${categories.map(({ category, total_size: size }) => {
        const width = total > 0 ? (100 * size) / total : 0
        const rect = svg`<rect class="part ${category}" x=${start} width=${width} height="2" />`
        start += width
        return rect
      })}
    </svg>`
}
