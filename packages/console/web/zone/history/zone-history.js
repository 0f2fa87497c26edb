import { getZone, listHistory, takeBack } from '../../api/domain-service.js'
import { html, nothing } from '../../core/html.js'
import { currentRoute, hrefTo, routeChanges } from '../../core/router.js'
import { mayEdit } from '../../core/session.js'
import { Resource, View } from '../../core/view.js'
import { searchBox } from '../../ui/form.js'
import { formatAge, formatCount, formatTime } from '../../ui/format.js'
import { icon } from '../../ui/icons.js'
import { empty, show } from '../../ui/states.js'
import { toast } from '../../ui/toast.js'
import { diffList, summarizeDiff } from '../review/diff-list.js'
import { openReview } from '../review/zone-review.js'
import { pairChanges } from '../zone-diff.js'
import './history-entry.js'

/** @import { HistoryEntry } from '../../api/schema.d.ts' */

/** The history of one domain as a time line: who, when, what. Filtered by a record's name, it finds who deleted it. */
class ZoneHistory extends View {
  #domain = ''
  /** @type {HistoryEntry[]} */
  #entries = []
  #total = 0
  #search = ''
  #pages = new Resource(this, (signal) => this.#loadPage(1, signal))

  /** @param {string} domain */
  set domain(domain) {
    if (domain === this.#domain) return
    this.#domain = domain
    this.#entries = []
    this.#pages.value = undefined
    void this.#pages.reload()
  }

  opened() {
    routeChanges.addEventListener('change', () => this.update(), { signal: this.signal })
    if (this.#domain) void this.#pages.reload()
  }

  /** @param {number} page @param {AbortSignal} signal */
  async #loadPage(page, signal) {
    const { history, pagination } = await listHistory(this.#domain, page, signal)
    this.#entries = page === 1 ? history : [...this.#entries, ...history]
    this.#total = pagination.total_items
    return this.#entries
  }

  template() {
    const id = currentRoute().query.get('change')
    if (id) return html`<history-entry .domain=${this.#domain} .change=${id}></history-entry>`
    return show(this.#pages, () => this.#timeline(), 6)
  }

  #timeline() {
    if (this.#entries.length === 0) {
      return empty({
        icon: 'clock',
        title: 'No changes yet',
        text: 'Every change that is made through this service appears here, and can be taken back.',
      })
    }
    const shown = this.#entries.filter((entry) => this.#matches(entry))
    const hasMore = this.#entries.length < this.#total
    return html`
      <div class="history">
        <div class="toolbar">
          ${searchBox({ label: 'Filter by record or person', value: this.#search, onInput: this.#filter })}
          <span class="muted" role="status">${shown.length} of ${this.#total}</span>
        </div>
        <ol class="timeline">
          ${shown.map((entry) => this.#entry(entry))}
        </ol>
        ${shown.length === 0 ? html`<p class="muted">No change among the ${this.#entries.length} newest matches.</p>` : nothing}
        ${hasMore ? html`<button class="button" @click=${this.#loadMore}>Load older changes</button>` : nothing}
      </div>`
  }

  /** @param {HistoryEntry} entry */
  #entry(entry) {
    const diff = pairChanges(entry.changes)
    return html`
      <li class="moment">
        <div class="moment-head">
          <strong>${whoOf(entry)}</strong>${entry.token ? html`<span class="chip">${entry.token}</span>` : nothing}
          <span>${summarizeDiff(diff)}</span>
          <time class="muted" datetime=${entry.at} title=${formatTime(entry.at)}>${formatAge(entry.at)}</time>
          ${entry.reason ? html`<span class="chip warn">${entry.reason.replaceAll('_', ' ')}</span>` : nothing}
          ${entry.status && entry.status !== 'confirmed' ? html`<span class="chip warn">${entry.status}</span>` : nothing}
          <span class="spacer"></span>
          <a class="button" href=${hrefTo(['domains', this.#domain], { tab: 'history', change: String(entry.id) })}>Look at the zone then</a>
          ${mayEdit('domains') ? html`<button class="button" @click=${() => this.#revert(entry)}>${icon('undo')} Take back</button>` : nothing}
        </div>
        ${diffList(diff)} ${omittedNote(entry)}
      </li>`
  }

  /** @param {HistoryEntry} entry */
  async #revert(entry) {
    const { id, at } = entry
    try {
      const base = await getZone(this.#domain)
      const outcome = await openReview({
        title: `Take back the change of ${whoOf(entry)}, ${formatTime(at)}`,
        domain: this.#domain,
        base,
        send: (options) => takeBack(this.#domain, id, 'revert', options),
      })
      if (outcome === 'applied') await this.#pages.reload()
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'bad')
    }
  }

  /** @param {HistoryEntry} entry */
  #matches(entry) {
    const { changes } = entry
    const words = this.#search.trim().toLowerCase()
    if (words === '' || whoOf(entry).toLowerCase().includes(words)) return true
    return [...changes.added, ...changes.removed].some(({ name, type, address }) =>
      `${name} ${type} ${address}`.toLowerCase().includes(words),
    )
  }

  #filter = (/** @type {string} */ value) => {
    this.#search = value
    this.update()
  }

  #loadMore = async () => {
    const page = Math.floor(this.#entries.length / 50) + 1
    try {
      await this.#loadPage(page, this.signal)
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'bad')
    }
    this.update()
  }
}

/** What was changed at the registrar, not here, has nobody's name. @param {{ by: string | null }} entry */
const whoOf = ({ by }) => by ?? 'Somebody outside'

/** @param {HistoryEntry} entry */
function omittedNote({ changes: { omitted } }) {
  const count = omitted ? omitted.added + omitted.removed : 0
  return count > 0 ? html`<p class="note">and ${formatCount(count, 'more record')}</p>` : nothing
}

customElements.define('zone-history', ZoneHistory)
