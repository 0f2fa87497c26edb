import { getHistoryEntry, getZone, takeBack } from '../../api/domain-service.js'
import { html } from '../../core/html.js'
import { hrefTo } from '../../core/router.js'
import { mayEdit } from '../../core/session.js'
import { Resource, View } from '../../core/view.js'
import { formatTime } from '../../ui/format.js'
import { icon } from '../../ui/icons.js'
import { show } from '../../ui/states.js'
import { toast } from '../../ui/toast.js'
import { recordTable } from '../records/record-table.js'
import { diffList, emailTypeLine } from '../review/diff-list.js'
import { openReview } from '../review/zone-review.js'
import { pairChanges } from '../zone-diff.js'

/** @import { HistoryDetail, PastZone } from '../../api/schema.d.ts' */

/** One change with the zone as it was before and after it, and the ways back. */
class HistoryEntryView extends View {
  domain = ''
  #id = ''
  #side = 'before'
  #entry = new Resource(this, (signal) => getHistoryEntry(this.domain, this.#id, signal))

  /** @param {string} id */
  set change(id) {
    if (id === this.#id) return
    this.#id = id
    this.#entry.value = undefined
    queueMicrotask(() => void this.#entry.reload())
  }

  template() {
    return html`
      <a class="back" href=${hrefTo(['domains', this.domain], { tab: 'history' })}>All changes</a>
      ${show(this.#entry, (entry) => this.#detail(entry), 6)}`
  }

  /** @param {HistoryDetail} entry */
  #detail(entry) {
    const past = this.#side === 'before' ? entry.before : entry.after
    return html`
      <div class="history">
        <div class="view-header">
          <h2>${entry.by ?? 'Somebody outside'}, ${formatTime(entry.at)}</h2>
          ${
            mayEdit('domains')
              ? html`<div class="button-row">
                <button class="button" @click=${() => this.#takeBack(entry, 'revert')}>${icon('undo')} Take back this change</button>
                <button class="button" @click=${() => this.#takeBack(entry, 'restore')}>${icon('clock')} Restore the zone before it</button>
              </div>`
              : ''
          }
        </div>
        ${emailTypeLine(entry.email_type_before, entry.email_type_after)}
        ${diffList(pairChanges(entry.changes))}
        <p class="note">Request <code>${entry.request_id}</code></p>
        <div class="segments" role="group" aria-label="Which zone">
          ${['before', 'after'].map(
            (side) => html`
              <button aria-pressed=${side === this.#side} @click=${() => this.#show(side)}>
                ${side === 'before' ? 'Zone before' : 'Zone after'}
              </button>`,
          )}
        </div>
        ${this.#table(past)}
      </div>`
  }

  /** @param {PastZone} past */
  #table({ hosts }) {
    const rows = hosts.map((record) => ({
      key: record.id,
      state: /** @type {const} */ ('kept'),
      record,
    }))
    return recordTable({
      rows,
      domain: this.domain,
      editing: undefined,
      editor: () => undefined,
      actions: undefined,
    })
  }

  /** @param {string} side */
  #show(side) {
    this.#side = side
    this.update()
  }

  /** @param {HistoryDetail} entry @param {'restore' | 'revert'} how */
  async #takeBack({ id, at }, how) {
    try {
      await openReview({
        title:
          how === 'revert'
            ? `Take back the change of ${formatTime(at)}`
            : `Restore the zone before ${formatTime(at)}`,
        domain: this.domain,
        base: await getZone(this.domain),
        send: (options) => takeBack(this.domain, id, how, options),
      })
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'bad')
    }
  }
}

customElements.define('history-entry', HistoryEntryView)
