import { get } from '../api/client.js'
import { html } from '../core/html.js'
import { Resource, View } from '../core/view.js'
import { stackedBar } from '../files/size-bar.js'
import { formatBytes, formatNumber } from '../ui/format.js'
import { empty, show } from '../ui/states.js'
import { barChart } from './bar-chart.js'

/** @import { Statistics } from '../api/schema.d.ts' */

/** How much is stored, and of what. */
class FileStatistics extends View {
  #statistics = new Resource(this, (signal) => get('files', '/api/versions/stats', { signal }))

  opened() {
    void this.#statistics.reload()
  }

  template() {
    return html`
      <div class="view">
        <header class="view-header"><h1>Statistics</h1></header>
        ${show(this.#statistics, figures, 5)}
      </div>`
  }
}

/** @param {Statistics} statistics */
function figures({
  total_files: files,
  total_size: size,
  stored_size: stored,
  categories,
  versions,
}) {
  if (files === 0) {
    return empty({
      icon: 'chart',
      title: 'Nothing to count yet',
      text: 'Upload files, and their numbers appear here.',
    })
  }
  const shared = size > 0 ? Math.round((100 * (size - stored)) / size) : 0
  return html`
    <div class="figures">
      ${figure('Files', formatNumber(files))} ${figure('Size', formatBytes(size))}
      ${figure('On disk', formatBytes(stored), shared > 0 ? `${shared} % saved: equal files share their bytes` : 'without compressed forms')}
      ${figure('Versions', formatNumber(versions))}
    </div>
    <section class="panel" aria-labelledby="by-size">
      <h2 id="by-size">Size by category</h2>
      ${stackedBar(categories)} ${barChart(categories, ({ total_size }) => total_size, formatBytes)}
    </section>
    <section class="panel" aria-labelledby="by-count">
      <h2 id="by-count">Files by category</h2>
      ${barChart(categories, ({ file_count }) => file_count, formatNumber)}
    </section>`
}

/** @param {string} label @param {string} value @param {string} [note] */
const figure = (label, value, note) => html`
  <div class="panel figure"><span class="muted">${label}</span><strong>${value}</strong>${note ? html`<span class="note">${note}</span>` : ''}</div>`

customElements.define('file-statistics', FileStatistics)
