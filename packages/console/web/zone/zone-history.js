import { get, mayEdit } from '../api/client.js'
import { changeItem, diffList, emailTypeLine, whoOf } from '../changes/change-item.js'
import { hrefTo } from '../core/router.js'
import { html, nothing, Resource, RouteView } from '../core/view.js'
import { searchBox, segments } from '../ui/form.js'
import { formatTime } from '../ui/format.js'
import { attempt, empty, icon, show } from '../ui/states.js'
import { plainTable } from './records/record-table.js'
import { pairChanges } from './zone-diff.js'
import { openReview } from './zone-review.js'
import { writeZone, ZoneStore } from './zone-store.js'

const pageSize = 50

/**
 * The history of one domain as a time line: who, when, what. Filtered by a record's name, it finds who deleted it. With a
 * change in the address, that one with the zone as it was before and after it.
 */
class ZoneHistory extends RouteView {
  /** Replaced by that of the domain. */
  store = new ZoneStore(this)
  #total = 0
  #search = ''
  /** @type {'before' | 'after'} */
  #side = 'before'
  #entries = new Resource(this, (signal) => this.#load(1, signal))
  #entry = new Resource(this, (signal) => {
    const params = { domain: this.store.domain, id: this.#id }
    return get('domains', '/api/domains/{domain}/dns/history/{id}', { params, signal })
  })

  get #id() {
    return this.query.get('change') ?? ''
  }

  get address() {
    return `${this.store.domain} ${this.#id}`
  }

  entered() {
    for (const each of [this.#entries, this.#entry]) each.value = undefined
  }

  reload() {
    return this.#id ? this.#entry.reload() : this.#entries.reload()
  }

  /** @param {number} page @param {AbortSignal} signal */
  async #load(page, signal) {
    const params = { domain: this.store.domain }
    const path = '/api/domains/{domain}/dns/history'
    const query = { page, page_size: pageSize }
    const { history, pagination } = await get('domains', path, { params, query, signal })
    this.#total = pagination.total_items
    return history
  }

  #loadMore = () =>
    attempt(async () => {
      const known = this.#entries.value ?? []
      const page = Math.floor(known.length / pageSize) + 1
      this.#entries.value = [...known, ...(await this.#load(page, this.signal))]
      this.update()
    })

  template() {
    if (!this.#id) return show(this.#entries, (entries) => this.#timeline(entries), 6)
    return html`
      <a class="back" href=${hrefTo(['domains', this.store.domain], { tab: 'history' })}>All changes</a>
      ${show(this.#entry, (entry) => this.#detail(entry), 6)}`
  }

  /** @param {Api.HistoryEntry[]} entries */
  #timeline(entries) {
    if (entries.length === 0) {
      const hint =
        'Every change that is made through this service appears here, and can be taken back.'
      return empty('clock', 'No changes yet', hint)
    }
    const words = this.#search.trim().toLowerCase()
    const shown = entries.filter((entry) => textOf(entry).includes(words))
    return html`
      <div class="history">
        <div class="toolbar">
          ${searchBox({ label: 'Filter by record or person', value: this.#search, onInput: this.#filter })}
          <span class="muted" role="status">${shown.length} of ${this.#total}</span>
        </div>
        <ol class="timeline">
          ${shown.map((entry) => changeItem(entry, { actions: this.#actions(entry) }))}
        </ol>
        ${shown.length === 0 ? html`<p class="muted">No change among the ${entries.length} newest matches.</p>` : nothing}
        ${entries.length < this.#total ? html`<button class="button" @click=${this.#loadMore}>Load older changes</button>` : nothing}
      </div>`
  }

  /** @param {Api.HistoryEntry} entry */
  #actions(entry) {
    const query = { tab: 'history', change: String(entry.id) }
    return html`
      <a class="button" href=${hrefTo(['domains', this.store.domain], query)}>Look at the zone then</a>
      ${this.#wayBack(entry, 'revert', html`${icon('undo')} Take back`)}`
  }

  /** @param {Api.HistoryDetail} entry */
  #detail(entry) {
    return html`
      <div class="history">
        <div class="view-header">
          <h2>${nameOf(entry)}</h2>
          <div class="button-row">
            ${this.#wayBack(entry, 'revert', html`${icon('undo')} Take back this change`)}
            ${this.#wayBack(entry, 'restore', html`${icon('clock')} Restore the zone before it`)}
          </div>
        </div>
        ${emailTypeLine(entry.email_type_before, entry.email_type_after)}
        ${diffList(pairChanges(entry.changes))}
        <p class="note">Request <code>${entry.request_id}</code></p>
        ${segments('Which zone', { before: 'Zone before', after: 'Zone after' }, this.#side, this.#choose)}
        ${plainTable(entry[this.#side].hosts, this.store.domain)}
      </div>`
  }

  /**
   * A button that takes a change back, or restores the zone before it, after a review.
   * @param {Api.HistoryEntry} entry
   * @param {'restore' | 'revert'} how
   * @param {unknown} words
   */
  #wayBack(entry, how, words) {
    if (!mayEdit('domains')) return nothing
    const title = `${how === 'revert' ? 'Take back' : 'Restore the zone before'} the change of ${nameOf(entry)}`
    const part = `history/${entry.id}/${how}`
    const { store } = this
    const review = () =>
      openReview(title, store, (options) =>
        writeZone(store.domain, part, { method: 'POST' }, options),
      )
    return html`<button class="button" @click=${() => this.reloadAfter(review())}>${words}</button>`
  }

  #filter = (/** @type {string} */ value) => {
    this.#search = value
    this.update()
  }

  #choose = (/** @type {string} */ side) => {
    this.#side = side === 'after' ? 'after' : 'before'
    this.update()
  }
}

/** @param {Api.HistoryEntry} entry */
const nameOf = (entry) => `${whoOf(entry)}, ${formatTime(entry.at)}`

/** What the filter looks at. @param {Api.HistoryEntry} entry */
const textOf = (entry) =>
  [
    whoOf(entry),
    ...[...entry.changes.added, ...entry.changes.removed].map(
      ({ name, type, address }) => `${name} ${type} ${address}`,
    ),
  ]
    .join('\n')
    .toLowerCase()

customElements.define('zone-history', ZoneHistory)
