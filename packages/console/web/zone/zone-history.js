import { get, mayEdit } from '../api/client.js'
import { changeItem, diffList, emailTypeLine, whoOf } from '../changes/change-item.js'
import { currentRoute, hrefTo } from '../core/router.js'
import { html, nothing, Resource, View } from '../core/view.js'
import { searchBox, segments } from '../ui/form.js'
import { formatTime } from '../ui/format.js'
import { attempt, empty, icon, show } from '../ui/states.js'
import { recordTable } from './records/record-table.js'
import { pairChanges } from './zone-diff.js'
import { openReview } from './zone-review.js'
import { writeZone, ZoneStore } from './zone-store.js'

/** The history of one domain as a time line: who, when, what. Filtered by a record's name, it finds who deleted it. */
class ZoneHistory extends View {
  /** Replaced by that of the domain. */
  store = new ZoneStore(this)
  #domain = ''
  /** @type {Api.HistoryEntry[]} */
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
      return empty(
        'clock',
        'No changes yet',
        'Every change that is made through this service appears here, and can be taken back.',
      )
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

  /** @param {Api.HistoryEntry} entry */
  #actions(entry) {
    const href = hrefTo(['domains', this.#domain], { tab: 'history', change: String(entry.id) })
    return html`
      <a class="button" href=${href}>Look at the zone then</a>
      ${mayEdit('domains') ? html`<button class="button" @click=${() => this.#revert(entry)}>${icon('undo')} Take back</button>` : nothing}`
  }

  /** @param {Api.HistoryEntry} entry */
  async #revert(entry) {
    if (await takeBack(this.store, entry, 'revert')) await this.#pages.reload()
  }

  /** @param {Api.HistoryEntry} entry */
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

/** One change with the zone as it was before and after it, and the ways back. */
class HistoryEntryView extends View {
  /** Replaced by that of the domain. */
  store = new ZoneStore(this)
  #id = ''
  /** @type {'before' | 'after'} */
  #side = 'before'
  #entry = new Resource(this, (signal) => {
    const params = { domain: this.store.domain, id: this.#id }
    return get('domains', '/api/domains/{domain}/dns/history/{id}', { params, signal })
  })

  /** @param {string} id */
  set change(id) {
    if (id === this.#id) return
    this.#id = id
    this.#entry.restart()
  }

  template() {
    return html`
      <a class="back" href=${hrefTo(['domains', this.store.domain], { tab: 'history' })}>All changes</a>
      ${show(this.#entry, (entry) => this.#detail(entry), 6)}`
  }

  /** @param {Api.HistoryDetail} entry */
  #detail(entry) {
    const rows = entry[this.#side].hosts.map((record) => ({
      key: record.id,
      state: /** @type {const} */ ('kept'),
      record,
    }))
    return html`
      <div class="history">
        <div class="view-header">
          <h2>${whoOf(entry)}, ${formatTime(entry.at)}</h2>
          ${
            mayEdit('domains')
              ? html`<div class="button-row">
                <button class="button" @click=${() => takeBack(this.store, entry, 'revert')}>${icon('undo')} Take back this change</button>
                <button class="button" @click=${() => takeBack(this.store, entry, 'restore')}>${icon('clock')} Restore the zone before it</button>
              </div>`
              : nothing
          }
        </div>
        ${emailTypeLine(entry.email_type_before, entry.email_type_after)}
        ${diffList(pairChanges(entry.changes))}
        <p class="note">Request <code>${entry.request_id}</code></p>
        ${segments('Which zone', { before: 'Zone before', after: 'Zone after' }, this.#side, this.#choose)}
        ${recordTable({ rows, domain: this.store.domain })}
      </div>`
  }

  #choose = (/** @type {string} */ side) => {
    this.#side = side === 'after' ? 'after' : 'before'
    this.update()
  }
}

/**
 * Takes a change back, or restores the zone before it, after a review.
 * @param {ZoneStore} store
 * @param {Api.HistoryEntry} entry
 * @param {'restore' | 'revert'} how
 */
async function takeBack(store, entry, how) {
  const what = `${whoOf(entry)}, ${formatTime(entry.at)}`
  const part = `history/${entry.id}/${how}`
  const outcome = await openReview({
    title: `${how === 'revert' ? 'Take back' : 'Restore the zone before'} the change of ${what}`,
    store,
    send: (options) => writeZone(store.domain, part, { method: 'POST' }, options),
  })
  if (outcome) await store.base.reload()
  return outcome
}

customElements.define('history-entry', HistoryEntryView)
