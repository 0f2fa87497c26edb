import { html, nothing } from '../../core/html.js'
import { formatTtl } from '../../ui/format.js'
import { recordValue } from '../records/record-table.js'
import { emailTypes } from '../records/record-types.js'

/**
 * @import { HostRecord } from '../../api/schema.d.ts'
 * @import { ZoneDiff } from '../zone-diff.js'
 */

/** Added, removed and changed records, one line each, with signs and words beside the colours. @param {ZoneDiff} diff */
export const diffList = ({ added, removed, changed }) => html`
  <ul class="diff">
    ${removed.map((record) => line('removed', '−', 'Removed', record))}
    ${changed.map(({ before, after }) => changedLine(before, after))}
    ${added.map((record) => line('added', '+', 'Added', record))}
  </ul>`

/** "2 added · 1 removed". @param {ZoneDiff} diff */
export function summarizeDiff({ added, removed, changed }) {
  const parts = [
    [added.length, 'added'],
    [changed.length, 'changed'],
    [removed.length, 'removed'],
  ]
  return (
    parts.flatMap(([count, word]) => (count ? [`${count} ${word}`] : [])).join(' · ') || 'nothing'
  )
}

/** How the handling of mail changes, where it does. @param {string | null} before @param {string | null} after */
export const emailTypeLine = (before, after) =>
  before === after
    ? nothing
    : html`<p class="mail-change">Mail handling: ${nameOf(before)} → <strong>${nameOf(after)}</strong></p>`

/** @param {string | null} type */
const nameOf = (type) => new Map(Object.entries(emailTypes)).get(type ?? '') ?? type ?? 'unknown'

/** @param {'added' | 'removed'} tone @param {string} sign @param {string} word @param {HostRecord} record */
const line = (tone, sign, word, record) => html`
  <li class=${tone}>
    <span class="sign" aria-hidden="true">${sign}</span><span class="sr-only">${word}:</span>
    <span class="diff-name">${record.name}</span><span class="type-tag">${record.type}</span>
    <span class="diff-value">${recordValue(record)}</span><span class="muted">${formatTtl(record.ttl)}</span>
  </li>`

/** @param {HostRecord} before @param {HostRecord} after */
const changedLine = (before, after) => html`
  <li class="changed">
    <span class="sign" aria-hidden="true">~</span><span class="sr-only">Changed:</span>
    <span class="diff-name">${after.name}</span><span class="type-tag">${after.type}</span>
    <span class="diff-value">
      ${isSameValue(before, after) ? recordValue(after) : html`<del>${recordValue(before)}</del> → <ins>${recordValue(after)}</ins>`}
    </span>
    <span class="muted">${before.ttl === after.ttl ? formatTtl(after.ttl) : html`<del>${formatTtl(before.ttl)}</del> → <ins>${formatTtl(after.ttl)}</ins>`}</span>
  </li>`

/** @param {HostRecord} before @param {HostRecord} after */
const isSameValue = (before, after) =>
  before.address === after.address && before.mx_pref === after.mx_pref
