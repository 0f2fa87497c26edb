import { html, nothing } from '../../core/view.js'
import { select } from '../../ui/form.js'
import { formatCount, formatTtl, toUnicode } from '../../ui/format.js'
import { icon, iconButton } from '../../ui/states.js'
import { table } from '../../ui/table.js'
import { repeat } from '../../vendor/directives/repeat.js'
import { editRow, rowOf, setRecord } from '../draft.js'
import { ttls } from './record-types.js'

/**
 * The rows of a zone with what the draft does to each: read only without `actions`; `editing` is the key of the row that
 * has the form of `editor`.
 * @import { Draft, DraftRow } from '../draft.js'
 * @import { ZoneRecords } from './zone-records.js'
 * @typedef {Pick<ZoneRecords, 'store' | 'selection' | 'change' | 'edit'>} RowActions
 * @typedef {{ rows: DraftRow[], domain: string, actions?: RowActions, editing?: string,
 *   editor?: (row: DraftRow) => unknown }} RecordTable
 */

/** @type {Record<DraftRow['state'], [label: string, tone: string]>} */
const marks = {
  kept: ['', ''],
  added: ['new', 'good'],
  updated: ['changed', 'accent'],
  removed: ['removed', 'bad'],
  waiting: ['waiting', 'warn'],
  leaving: ['removal waiting', 'warn'],
}

/** @param {RecordTable} shown */
export function recordTable(shown) {
  const { actions, rows, editing, editor } = shown
  const check = actions ? [html`<th scope="col" class="check">${selectAll(rows, actions)}</th>`] : []
  // By key: an open form stays the same while the rows around it change.
  const drawn = repeat(
    rows,
    ({ key }) => key,
    (row) =>
      row.key === editing
        ? html`<tr class="editor-row"><td colspan="6">${editor?.(row)}</td></tr>`
        : recordRow(row, shown),
  )
  return table([...check, 'Name', 'Type', 'Value', 'TTL', ''], drawn, 'records-table')
}

/** Records as they are. @param {readonly Api.HostRecord[]} records @param {string} domain */
export const plainTable = (records, domain) =>
  recordTable({ rows: records.map((record) => rowOf(record.id, 'kept', record)), domain })

/** @param {DraftRow} row @param {RecordTable} table */
function recordRow(row, table) {
  const { record, state, key } = row
  const [label, tone] = marks[state]
  const actions = isQueued(row) ? undefined : table.actions
  const rest = `${record.name === '@' ? ' ' : '.'}${toUnicode(table.domain)}`
  const name = html`<span class="host">${toUnicode(record.name)}</span><span class="host-rest">${rest}</span>`
  return html`
    <tr class="record ${state}">
      ${table.actions ? html`<td class="check">${actions ? check(row, table.rows, actions) : nothing}</td>` : nothing}
      <th scope="row">
        ${
          actions && state !== 'removed'
            ? html`<button class="row-button" data-row data-record=${key} @click=${() => actions.edit(key)}>${name}</button>`
            : html`<span class="row-button" tabindex="-1" data-record=${key}>${name}</span>`
        }
        ${label ? html`<span class="chip ${tone}">${label}</span>` : nothing}
      </th>
      <td><span class="type-tag">${record.type}</span></td>
      <td class="value">${recordValue(record)}</td>
      <td class="muted ttl">${formatTtl(record.ttl ?? 1800)}</td>
      <td class="actions">${actions ? rowButtons(row, actions) : nothing}</td>
    </tr>`
}

/** @param {DraftRow} row */
const isQueued = ({ state }) => state === 'waiting' || state === 'leaving'

/** @param {DraftRow[]} rows @param {RowActions} actions */
function selectAll(rows, { selection }) {
  const all = rows.filter((row) => !isQueued(row))
  const isAll = all.length > 0 && all.every((row) => selection.has(row))
  return html`<input type="checkbox" data-all aria-label="Select all records" .checked=${isAll} @change=${() => selection.choose(isAll ? [] : all)} />`
}

/** @param {DraftRow} row @param {DraftRow[]} rows @param {RowActions} actions */
function check(row, rows, { selection }) {
  const rowAt = (/** @type {number} */ at) => rows.slice(at, at + 1).find((each) => !isQueued(each))
  const toggle = (/** @type {MouseEvent} */ { shiftKey }) => selection.toggle(rows.indexOf(row), shiftKey, rowAt)
  return html`<input type="checkbox" aria-label="Select ${row.record.type} ${row.record.name}" .checked=${selection.has(row)} @click=${toggle} />`
}

/** @param {DraftRow} row @param {RowActions} actions */
function rowButtons({ record, state, key }, actions) {
  const what = `${record.type} ${record.name}`
  const { draft } = actions.store
  const reset = () => actions.change(setRecord(draft, key), state === 'added' ? 'new' : key)
  const remove = () => actions.change(setRecord(draft, key, null), key)
  return [
    state === 'kept' ? nothing : iconButton('undo', `Undo: ${what}`, reset),
    state === 'removed' ? nothing : iconButton('edit', `Edit ${what}`, () => actions.edit(key)),
    state === 'kept' || state === 'updated' ? iconButton('trash', `Delete ${what}`, remove) : nothing,
  ]
}

/** What can be done to the selected records at once. @param {DraftRow[]} all @param {RowActions} actions */
export function bulkBar(all, actions) {
  const { selection } = actions
  const { draft } = actions.store
  const rows = all.filter((row) => selection.has(row))
  if (rows.length === 0) return nothing
  const change = (/** @type {Draft} */ next) => actions.change(next, 'all')
  const choices = ttls.map((ttl) => [`${ttl}`, formatTtl(ttl)])
  const setTtl = (/** @type {string} */ ttl) =>
    change(
      rows
        .filter(({ state }) => state !== 'removed')
        .reduce((next, row) => editRow(next, row, { ...row.record, ttl: Number(ttl) }), draft),
    )
  const remove = () => change(rows.reduce((next, { key, original }) => setRecord(next, key, original && null), draft))
  return html`
    <div class="draft-bar" role="region" aria-label="Selection">
      <span>${formatCount(rows.length, 'record')} selected</span>
      <span class="spacer"></span>
      ${select('TTL of the selected records', [['', 'Set TTL…'], ...choices], '', setTtl)}
      <button class="button" @click=${remove}>${icon('trash')} Delete</button>
      <button class="button" @click=${() => selection.choose([])}>Clear selection</button>
    </div>`
}

/** The value of a record, with the preference of a mail server; a long one is folded. @param {Api.RecordInput} record */
export const recordValue = ({ type, address, mx_pref: pref }) => html`
  ${type === 'MX' && pref !== undefined ? html`<span class="preference" title="Preference">${pref}</span> ` : nothing}${
    address.length > 160
      ? html`<details class="fold"><summary><span class="address">${address.slice(0, 72)}…</span> <small>${address.length} characters</small></summary>${address}</details>`
      : html`<span class="address">${address}</span>`
  }`
