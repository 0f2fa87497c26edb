import { get, mayEdit } from '../api/client.js'
import { changeItem, diffList, emailTypeLine, whoOf } from '../changes/change-item.js'
import { hrefTo } from '../core/router.js'
import { html, nothing, Resource, RouteView } from '../core/view.js'
import { links, searchBox } from '../ui/form.js'
import { formatTime } from '../ui/format.js'
import { empty, icon, show } from '../ui/states.js'
import { plainTable } from './records/record-table.js'
import { describe, pairChanges } from './zone-diff.js'
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
  #pages = 1
  #entries = new Resource(this, async (signal) => {
    const params = { domain: this.store.domain }
    const path = '/api/domains/{domain}/dns/history'
    const reads = Array.from({ length: this.#pages }, (_, at) => {
      const query = { page: at + 1, page_size: pageSize }
      return get('domains', path, { params, query, signal })
    })
    const pages = await Promise.all(reads)
    const total = pages[0]?.pagination.total_items ?? 0
    return { entries: pages.flatMap(({ history }) => history), total }
  })
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
    for (const each of this.resources) each.value = undefined
    this.#pages = 1
  }

  reload() {
    return this.#id ? this.#entry.reload() : this.#entries.reload()
  }

  #loadMore = () => {
    this.#pages += 1
    void this.#entries.reload()
  }

  template() {
    if (!this.#id) return show(this.#entries, (loaded) => this.#timeline(loaded), 6)
    return html`
      <a class="back" href=${hrefTo(['domains', this.store.domain], { tab: 'history' })}>All changes</a>
      ${show(this.#entry, (entry) => this.#detail(entry), 6)}`
  }

  /** @param {{ entries: Api.HistoryEntry[], total: number }} loaded */
  #timeline({ entries, total }) {
    if (entries.length === 0) {
      const hint = 'Every change that is made through this service appears here, and can be taken back.'
      return empty('clock', 'No changes yet', hint)
    }
    const { search = '' } = this.values('search')
    const words = search.toLowerCase().split(/\s+/)
    const shown = entries.filter((entry) => words.every((word) => textOf(entry).includes(word)))
    return html`
      <div class="history">
        <div class="toolbar">
          ${searchBox({ label: 'Filter by record or person', value: search, onInput: this.search })}
          <span class="muted" role="status">${shown.length} of ${total}</span>
        </div>
        <ol class="timeline">
          ${shown.map((entry) => changeItem(entry, { actions: this.#actions(entry) }))}
        </ol>
        ${shown.length === 0 ? html`<p class="muted">No change among the ${entries.length} newest matches.</p>` : nothing}
        ${entries.length < total ? html`<button class="button" @click=${this.#loadMore}>Load older changes</button>` : nothing}
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
    const side = this.query.get('side') === 'after' ? 'after' : 'before'
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
        ${links('Which zone', { before: 'Zone before', after: 'Zone after' }, side, (side) => this.hrefWith({ side }))}
        ${plainTable(entry[side].hosts, this.store.domain)}
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
      openReview(title, store, (options) => writeZone(store.domain, part, { method: 'POST' }, options))
    return html`<button class="button" @click=${() => this.reloadAfter(review())}>${words}</button>`
  }
}

/** @param {Api.HistoryEntry} entry */
const nameOf = (entry) => `${whoOf(entry)}, ${formatTime(entry.at)}`

/** What the filter looks at. @param {Api.HistoryEntry} entry */
const textOf = (entry) =>
  [whoOf(entry), ...[...entry.changes.added, ...entry.changes.removed].map(describe)].join('\n').toLowerCase()

customElements.define('zone-history', ZoneHistory)
