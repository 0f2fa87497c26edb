import { svg } from '../core/html.js'
import { formatBytes } from '../ui/format.js'

/** @import { CategoryCount } from '../api/schema.d.ts' */

/** One bar of all sizes, a part for each category in its colour. @param {readonly CategoryCount[]} categories */
export function stackedBar(categories) {
  const total = categories.reduce((sum, { total_size: size }) => sum + size, 0)
  const label = categories
    .map(({ category, total_size: size }) => `${category} ${formatBytes(size)}`)
    .join(', ')
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
