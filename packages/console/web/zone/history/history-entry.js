import { get } from '../../api/client.js'
import { writeZone } from '../../api/zones.js'
import { whoOf } from '../../changes/change-item.js'
import { html, nothing } from '../../core/html.js'
import { hrefTo } from '../../core/router.js'
import { mayEdit } from '../../core/session.js'
import { Resource, View } from '../../core/view.js'
import { formatTime } from '../../ui/format.js'
import { icon } from '../../ui/icons.js'
import { show } from '../../ui/states.js'
import { recordTable } from '../records/record-table.js'
import { diffList, emailTypeLine } from '../review/diff-list.js'
import { openReview } from '../review/zone-review.js'
import { pairChanges } from '../zone-diff.js'
import { ZoneStore } from '../zone-store.js'

/**
 * @import { HistoryDetail, HistoryEntry } from '../../api/schema.d.ts'
 */

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
    this.#entry.value = undefined
    queueMicrotask(() => void this.#entry.reload())
  }

  template() {
    return html`
      <a class="back" href=${hrefTo(['domains', this.store.domain], { tab: 'history' })}>All changes</a>
      ${show(this.#entry, (entry) => this.#detail(entry), 6)}`
  }

  /** @param {HistoryDetail} entry */
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
        <div class="segments" role="group" aria-label="Which zone">
          ${this.#sideButton('before', 'Zone before')} ${this.#sideButton('after', 'Zone after')}
        </div>
        ${recordTable({ rows, domain: this.store.domain })}
      </div>`
  }

  /** @param {'before' | 'after'} side @param {string} label */
  #sideButton(side, label) {
    const open = () => {
      this.#side = side
      this.update()
    }
    return html`<button aria-pressed=${side === this.#side} @click=${open}>${label}</button>`
  }
}

/**
 * Takes a change back, or restores the zone before it, after a review.
 * @param {ZoneStore} store
 * @param {HistoryEntry} entry
 * @param {'restore' | 'revert'} how
 */
export async function takeBack(store, entry, how) {
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
