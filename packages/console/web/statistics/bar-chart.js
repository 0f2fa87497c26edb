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

/**
 * A column for each day, with the last day and the highest value in words.
 * @param {string} label
 * @param {{ date: Date, value: number }[]} days
 * @param {(value: number) => string} format
 */
export function dayChart(label, days, format) {
  const top = days.reduce((one, other) => (other.value > one.value ? other : one))
  const dateOf = (/** @type {Date} */ date) =>
    date.toLocaleDateString('en', { month: 'short', day: 'numeric' })
  const summary = `today ${format(days.at(-1)?.value ?? 0)}, most ${format(top.value)} on ${dateOf(top.date)}`
  return html`
    <figure class="day-chart">
      <figcaption>${label} <span class="muted">${summary}</span></figcaption>
      ${svg`
        <svg viewBox="0 0 ${days.length} 10" preserveAspectRatio="none" role="img" aria-label="${label}: ${summary}">
          ${days.map(({ value }, at) => {
            const height = Math.max(0.2, (10 * value) / Math.max(1, top.value))
            return svg`<rect x=${at + 0.1} width="0.8" y=${10 - height} height=${height} />`
          })}
        </svg>`}
    </figure>`
}
