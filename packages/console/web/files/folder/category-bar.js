import { html, nothing } from '../../core/html.js'
import { formatBytes, formatCount, formatNumber } from '../../ui/format.js'
import { stackedBar } from '../size-bar.js'

/** @import { CategoryCount } from '../../api/schema.d.ts' */

/**
 * The categories that have files: a bar of their sizes, and a button each with its count. The chosen one is pressed.
 * @param {CategoryCount[]} categories
 * @param {string} chosen
 * @param {(category: string) => void} onChoose
 */
export const categoryBar = (categories, chosen, onChoose) => html`
  <div class="category-bar">
    ${stackedBar(categories)}
    <div class="category-chips" role="group" aria-label="Categories">
      ${categories.map(
        ({ category, file_count: count, total_size: size }) => html`
          <button
            class="category-chip"
            aria-pressed=${category === chosen}
            title="${formatCount(count, 'file')}, ${formatBytes(size)}"
            @click=${() => onChoose(category === chosen ? '' : category)}
          >
            <span class="swatch ${category}"></span>${category} <span class="count">${formatNumber(count)}</span>
          </button>`,
      )}
      ${categories.length === 0 ? html`<span class="category-chip">&nbsp;</span>` : nothing}
    </div>
  </div>`
