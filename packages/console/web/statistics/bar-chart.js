import { html, svg } from '../core/html.js'

/** @import { CategoryCount } from '../api/schema.d.ts' */

/**
 * Horizontal bars with their labels and values as text, largest first.
 * @param {readonly CategoryCount[]} categories
 * @param {(category: CategoryCount) => number} measure
 * @param {(value: number) => string} format
 */
export function barChart(categories, measure, format) {
  const sorted = [...categories].sort((left, right) => measure(right) - measure(left))
  const largest = Math.max(1, ...sorted.map(measure))
  return html`
    <ul class="bar-chart">
      ${sorted.map(
        (each) => html`
          <li>
            <a href="#/files/?category=${each.category}">${each.category}</a>
            ${bar((100 * measure(each)) / largest, each.category)}
            <span class="value">${format(measure(each))}</span>
          </li>`,
      )}
    </ul>`
}

/** @param {number} width @param {string} category */
const bar = (width, category) => svg`
  <svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
    <rect class="part ${category}" width=${Math.max(0.5, width)} height="10" rx="1" />
  </svg>`
