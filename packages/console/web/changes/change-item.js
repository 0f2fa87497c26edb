import { html, nothing } from '../core/view.js'
import { formatCount, formatCounts, formatTtl } from '../ui/format.js'
import { age } from '../ui/table.js'
import { recordValue } from '../zone/records/record-table.js'
import { emailTypes } from '../zone/records/record-types.js'
import { pairChanges } from '../zone/zone-diff.js'

/** @import { Changes } from '../zone/draft.js' @import { ZoneDiff } from '../zone/zone-diff.js' */

/** One change of records, alike in Changes, in a history and among events. */

/** @type {Map<number, Changes>} */
const queued = new Map()

/** Keeps what a change that was queued here will do: the service works that out when it sends it. @param {number} id @param {Changes} changes */
export const rememberQueued = (id, changes) => queued.set(id, changes)

/** @param {Api.HistoryEntry | Api.LedgerChange} change @returns {Changes | undefined} */
export const contentOf = ({ id, changes }) => changes ?? queued.get(id)

/** What each state means, in words, where it is not plainly done. @type {Record<string, [words: string, tone: string]>} */
export const states = {
  proposed: ['Waiting for an approval', 'accent'],
  queued: ['Waiting for the registrar', 'accent'],
  sending: ['Being sent', 'accent'],
  confirmed: ['Done', 'good'],
  refused: ['Refused', 'bad'],
  unconfirmed: ['Sent, not confirmed yet', 'warn'],
  cancelled: ['Cancelled', ''],
  rejected: ['Rejected', 'bad'],
}

/** @type {Record<string, string>} */
const reasons = {
  outside: 'changed outside',
  late_write: 'late write repaired',
  superseded: 'made pointless by a later change',
  expired: 'nobody approved it in time',
}

/** What was changed at the registrar, not here, has nobody's name. @param {{ by: string | null }} entry */
export const whoOf = ({ by }) => by ?? 'Somebody outside'

/** @param {Api.HistoryEntry | Api.LedgerChange} change @param {{ title?: unknown, actions?: unknown }} [around] */
export function changeItem(change, { title, actions } = {}) {
  const content = contentOf(change)
  const omitted = { added: 0, removed: 0, ...change.changes?.omitted }
  const [words, tone] = (change.held ? heldState : states[change.status]) ?? [change.status, '']
  const diff = pairChanges(content ?? { added: [], removed: [] })
  return html`
    <li class="moment">
      <div class="moment-head">
        ${title ?? nothing}
        <strong>${whoOf(change)}</strong>${change.token ? html`<span class="chip">${change.token}</span>` : nothing}
        ${change.approved_by ? html`<span class="muted">approved by ${change.approved_by}</span>` : nothing}
        ${content ? html`<span>${summarizeDiff(diff, omitted)}</span>` : isWaiting(change) ? html`<span>worked out when it is sent</span>` : nothing}
        <span class="muted">${age(change.at)}</span>
        ${change.reason ? html`<span class="chip warn">${reasons[change.reason] ?? change.reason}</span>` : nothing}
        <span class="chip ${tone}">${words}</span>
        <span class="spacer"></span>
        ${actions ?? nothing}
      </div>
      ${change.problem ? html`<p class="note fault">${change.problem.detail}</p>` : nothing}
      ${'email_type_before' in change ? emailTypeLine(change.email_type_before, change.email_type_after) : nothing}
      ${records(diff)}
      ${omitted.added + omitted.removed > 0 ? html`<p class="note">and ${formatCount(omitted.added + omitted.removed, 'more record')}</p>` : nothing}
    </li>`
}

/** @param {Api.HistoryEntry | Api.LedgerChange} change */
const isWaiting = ({ status }) => status === 'proposed' || status === 'queued' || status === 'sending'

/** Many are folded. @param {ReturnType<typeof pairChanges>} diff */
function records(diff) {
  const count = diff.added.length + diff.removed.length + diff.changed.length
  if (count === 0) return nothing
  return count <= 8
    ? diffList(diff)
    : html`<details class="fold"><summary>Show ${formatCount(count, 'record')}</summary>${diffList(diff)}</details>`
}

/** @type {[string, string]} */
const heldState = ['Held after a restore', 'warn']

/** Added, removed and changed records, one line each, with signs and words beside the colours. @param {ZoneDiff} diff */
export const diffList = ({ added, removed, changed }) => html`
  <ul class="diff">
    ${removed.map((record) => line('removed', '−', 'Removed', record))}
    ${changed.map(({ before, after }) => line('changed', '~', 'Changed', after, before))}
    ${added.map((record) => line('added', '+', 'Added', record))}
  </ul>`

/** "2 added · 1 removed". @param {ZoneDiff} diff @param {{ added: number, removed: number }} [omitted] of long lists */
export const summarizeDiff = (diff, { added, removed } = { added: 0, removed: 0 }) =>
  formatCounts({
    added: diff.added.length + added,
    changed: diff.changed.length,
    removed: diff.removed.length + removed,
  })

/** How the handling of mail changes, where it does. @param {string | null} before @param {string | null} after */
export const emailTypeLine = (before, after) =>
  before === after
    ? nothing
    : html`<p class="mail-change">Mail handling: ${mailNameOf(before)} → <strong>${mailNameOf(after)}</strong></p>`

/** @param {string | null} type */
export const mailNameOf = (type) => new Map(Object.entries(emailTypes)).get(type ?? '') ?? type ?? 'unknown'

/** @param {'added' | 'changed' | 'removed'} tone @param {string} sign @param {string} word @param {Api.HostRecord} record */
const line = (tone, sign, word, record, before = record) => html`
  <li class=${tone}>
    <span class="sign" aria-hidden="true">${sign}</span><span class="sr-only">${word}:</span>
    <span class="diff-name">${record.name}</span><span class="type-tag">${record.type}</span>
    <span class="diff-value">${edited(recordValue, before, record, ['address', 'mx_pref'])}</span>
    <span class="muted">${edited(({ ttl }) => formatTtl(ttl), before, record, ['ttl'])}</span>
  </li>`

/**
 * What is shown of a record, and what it was where one of these fields differs.
 * @param {(record: Api.HostRecord) => unknown} draw
 * @param {Api.HostRecord} before
 * @param {Api.HostRecord} after
 * @param {('address' | 'mx_pref' | 'ttl')[]} fields
 */
const edited = (draw, before, after, fields) =>
  fields.every((field) => before[field] === after[field])
    ? draw(after)
    : html`<del>${draw(before)}</del> → <ins>${draw(after)}</ins>`
