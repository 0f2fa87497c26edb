import { get } from '../../api/client.js'
import { changeItem, whoOf } from '../../changes/change-item.js'
import { html, nothing } from '../../core/html.js'
import { currentRoute, hrefTo } from '../../core/router.js'
import { mayEdit } from '../../core/session.js'
import { Resource, View } from '../../core/view.js'
import { searchBox } from '../../ui/form.js'
import { icon } from '../../ui/icons.js'
import { empty, show } from '../../ui/states.js'
import { attempt } from '../../ui/toast.js'
import { ZoneStore } from '../zone-store.js'
import { takeBack } from './history-entry.js'

/**
 * @import { HistoryEntry } from '../../api/schema.d.ts'
 */

/** The history of one domain as a time line: who, when, what. Filtered by a record's name, it finds who deleted it. */
class ZoneHistory extends View {
  /** Replaced by that of the domain. */
  store = new ZoneStore(this)
  #domain = ''
  /** @type {HistoryEntry[]} */
  #entries = []
  #total = 0
  #search = ''
  #pages = new Resource(this, (signal) => this.#loadPage(1, signal))

  opened() {
    this.#domain = ''
  }

  /** @param {number} page @param {AbortSignal} signal */
  async #loadPage(page, signal) {
    const options = { params: { domain: this.#domain }, query: { page, page_size: 50 }, signal }
    const path = '/api/domains/{domain}/dns/history'
    const { history, pagination } = await get('domains', path, options)
    this.#entries = page === 1 ? history : [...this.#entries, ...history]
    this.#total = pagination.total_items
    return this.#entries
  }

  template() {
    if (this.#domain !== this.store.domain) {
      this.#domain = this.store.domain
      this.#pages.value = undefined
      void this.#pages.reload()
    }
    const id = currentRoute().query.get('change')
    if (id) return html`<history-entry .store=${this.store} .change=${id}></history-entry>`
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
          ${shown.map((entry) => changeItem(entry, { actions: this.#actions(entry) }))}
        </ol>
        ${shown.length === 0 ? html`<p class="muted">No change among the ${this.#entries.length} newest matches.</p>` : nothing}
        ${hasMore ? html`<button class="button" @click=${this.#loadMore}>Load older changes</button>` : nothing}
      </div>`
  }

  /** @param {HistoryEntry} entry */
  #actions(entry) {
    const href = hrefTo(['domains', this.#domain], { tab: 'history', change: String(entry.id) })
    return html`
      <a class="button" href=${href}>Look at the zone then</a>
      ${mayEdit('domains') ? html`<button class="button" @click=${() => this.#revert(entry)}>${icon('undo')} Take back</button>` : nothing}`
  }

  /** @param {HistoryEntry} entry */
  async #revert(entry) {
    if (await takeBack(this.store, entry, 'revert')) await this.#pages.reload()
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

  #loadMore = () =>
    attempt(async () => {
      await this.#loadPage(Math.floor(this.#entries.length / 50) + 1, this.signal)
      this.update()
    })
}

customElements.define('zone-history', ZoneHistory)
