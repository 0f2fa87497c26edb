import { get } from '../api/client.js'
import { html, Resource, RouteView, svg } from '../core/view.js'
import { stackedBar } from '../files/category-bar.js'
import { hrefToPath, prefixChoice, prefixOf } from '../files/content.js'
import { formatBytes, formatCount, formatNumber } from '../ui/format.js'
import { empty, page, show } from '../ui/states.js'
import { list } from '../ui/table.js'

const days = 30
const dayMs = 86_400_000
const maxPages = 10

/** How much is stored, and of what, and how much was changed day by day. */
class FileStatistics extends RouteView {
  #statistics = new Resource(this, (signal) => {
    const query = { prefix: prefixOf(this) }
    return get('files', '/api/versions/stats', { query, signal })
  })
  #changes = new Resource(this, (signal) => readChanges(prefixOf(this), signal))

  template() {
    const content = [
      show(this.#statistics, (value) => figures(value, prefixOf(this)), 5),
      show(this.#changes, overTime, 2),
    ]
    return page('Statistics', prefixChoice(this), content)
  }
}

/** The changes of the last days, as far as they are read. @param {string | undefined} prefix @param {AbortSignal} signal */
async function readChanges(prefix, signal) {
  /** @type {Api.FileChange[]} */
  const all = []
  const since = new Date(Date.now() - days * dayMs).toISOString()
  for (let page = 1; page <= maxPages; page += 1) {
    const query = { since, prefix, page, page_size: 200 }
    const { changes, pagination } = await get('files', '/api/changes', { query, signal })
    all.push(...changes)
    if (page >= pagination.total_pages) return { changes: all, isWhole: true }
  }
  return { changes: all, isWhole: false }
}

/** @param {{ changes: Api.FileChange[], isWhole: boolean }} recent */
function overTime({ changes, isWhole }) {
  const today = new Date().setHours(12, 0, 0, 0)
  const byDay = Array.from({ length: days }, (_, at) => {
    const date = new Date(today - (days - 1 - at) * dayMs).toDateString()
    return { date, changes: changes.filter(({ at }) => new Date(at).toDateString() === date) }
  })
  return html`
    <section class="panel" aria-labelledby="over-time">
      <h2 id="over-time">The last ${days} days</h2>
      ${isWhole ? '' : html`<p class="note">Only the newest ${formatCount(changes.length, 'change')}.</p>`}
      ${dayChart('Changes a day', byDay, formatNumber, () => 1)}
      ${dayChart('Files stored or replaced a day', byDay, formatNumber, ({ added, replaced }) => added + replaced)}
      ${dayChart('Bytes stored a day', byDay, formatBytes, ({ bytes, added, replaced }) => (added + replaced > 0 ? bytes : 0))}
    </section>`
}

/** @param {Api.Statistics} statistics @param {string} [prefix] */
function figures(statistics, prefix = '') {
  const { total_files: files, total_size: size, stored_size: stored, categories } = statistics
  if (files === 0) return empty('chart', 'Nothing to count yet', 'Upload files, and their numbers appear here.')
  const shared = size > 0 ? Math.round((100 * (size - stored)) / size) : 0
  const figure = (/** @type {string} */ label, /** @type {string} */ value, note = '') => html`
    <div class="panel figure"><span class="muted">${label}</span><strong>${value}</strong><span class="note">${note}</span></div>`
  const bySize = [...categories].sort((left, right) => right.total_size - left.total_size)
  const columns = {
    Category: (/** @type {Api.CategoryCount} */ { category }) =>
      html`<span class="swatch ${category}"></span> <a data-row href=${hrefToPath(prefix, { category })}>${category}</a>`,
    Size: (/** @type {Api.CategoryCount} */ { total_size: bytes }) => formatBytes(bytes),
    Files: (/** @type {Api.CategoryCount} */ { file_count: count }) => formatNumber(count),
  }
  return html`
    <div class="figures">
      ${figure('Files', formatNumber(files))} ${figure('Size', formatBytes(size))}
      ${figure('On disk', formatBytes(stored), shared > 0 ? `${shared} % saved: equal files share their bytes` : 'without compressed forms')}
      ${figure('Versions', formatNumber(statistics.versions))}
    </div>
    <section class="panel" aria-labelledby="by-size">
      <h2 id="by-size">Size by category</h2>
      ${stackedBar(bySize)} ${list(bySize, columns)}
    </section>`
}

customElements.define('file-statistics', FileStatistics)

/**
 * A column for each day, with the last day and the highest value in words.
 * @param {string} label
 * @param {{ date: string, changes: Api.FileChange[] }[]} byDay
 * @param {(value: number) => string} format
 * @param {(change: Api.FileChange) => number} measure
 */
function dayChart(label, byDay, format, measure) {
  const values = byDay.map(({ changes }) => changes.reduce((sum, each) => sum + measure(each), 0))
  const top = Math.max(...values)
  const topDay = new Date(byDay[values.indexOf(top)]?.date ?? '')
  const topDate = topDay.toLocaleDateString('en', { month: 'short', day: 'numeric' })
  const summary = `today ${format(values.at(-1) ?? 0)}, most ${format(top)} on ${topDate}`
  return html`
    <figure class="day-chart">
      <figcaption>${label} <span class="muted">${summary}</span></figcaption>
      ${svg`
        <svg viewBox="0 0 ${days} 10" preserveAspectRatio="none" role="img" aria-label="${label}: ${summary}">
          ${values.map((value, at) => {
            const height = Math.max(0.2, (10 * value) / Math.max(1, top))
            return svg`<rect x=${at + 0.1} width="0.8" y=${10 - height} height=${height} />`
          })}
        </svg>`}
    </figure>`
}
