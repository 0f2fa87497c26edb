import { html, nothing } from '../core/html.js'
import { formatCount } from '../ui/format.js'
import { age } from '../ui/table.js'
import { diffList, emailTypeLine, summarizeDiff } from '../zone/review/diff-list.js'
import { pairChanges } from '../zone/zone-diff.js'

/**
 * One change of records, alike in Changes, in a history and among events.
 * @import { HistoryEntry, LedgerChange } from '../api/schema.d.ts'
 * @import { Changes } from '../zone/draft.js'
 */

/** @type {Map<number, Changes>} */
const queued = new Map()

/** Keeps what a change that was queued here will do: the service works that out when it sends it. @param {number} id @param {Changes} changes */
export const rememberQueued = (id, changes) => queued.set(id, changes)

/** @param {HistoryEntry | LedgerChange} change @returns {Changes | undefined} */
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

/**
 * @param {HistoryEntry | LedgerChange} change
 * @param {{ title?: unknown, actions?: unknown }} [around]
 */
export function changeItem(change, { title, actions } = {}) {
  const content = contentOf(change)
  const { added = 0, removed = 0 } = change.changes?.omitted ?? {}
  const [words, tone] = (change.held ? heldState : states[change.status]) ?? [change.status, '']
  const diff = pairChanges(content ?? { added: [], removed: [] })
  return html`
    <li class="moment">
      <div class="moment-head">
        ${title ?? nothing}
        <strong>${whoOf(change)}</strong>${change.token ? html`<span class="chip">${change.token}</span>` : nothing}
        ${change.approved_by ? html`<span class="muted">approved by ${change.approved_by}</span>` : nothing}
        <span>${content ? summarizeDiff(diff) : 'worked out when it is sent'}</span>
        <span class="muted">${age(change.at)}</span>
        ${change.reason ? html`<span class="chip warn">${reasons[change.reason] ?? change.reason}</span>` : nothing}
        <span class="chip ${tone}">${words}</span>
        <span class="spacer"></span>
        ${actions ?? nothing}
      </div>
      ${change.problem ? html`<p class="note fault">${change.problem.detail}</p>` : nothing}
      ${'email_type_before' in change ? emailTypeLine(change.email_type_before, change.email_type_after) : nothing}
      ${records(diff)}
      ${added + removed > 0 ? html`<p class="note">and ${formatCount(added + removed, 'more record')}</p>` : nothing}
    </li>`
}

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
