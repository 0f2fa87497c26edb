import { html, nothing } from '../../core/html.js'
import { formatTtl } from '../../ui/format.js'
import { icon } from '../../ui/icons.js'
import { moveBetweenRows } from '../../ui/table.js'

/**
 * The rows of a zone with what the draft does to each.
 * @import { RecordInput } from '../../api/schema.d.ts'
 * @import { DraftRow } from '../draft.js'
 * @typedef {{ onEdit: (row: DraftRow) => void, onRemove: (row: DraftRow) => void, onReset: (row: DraftRow) => void }} RowActions
 */

const labels = { kept: '', added: 'new', updated: 'changed', removed: 'removed' }

/**
 * @param {{ rows: DraftRow[], domain: string, editing: string | undefined, editor: (row: DraftRow) => unknown,
 *   actions: RowActions | undefined }} table without `actions` it is read only
 */
export const recordTable = ({ rows, domain, editing, editor, actions }) => html`
  <div class="table-frame" @keydown=${moveBetweenRows}>
    <table class="rows records-table">
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Type</th>
          <th scope="col">Value</th>
          <th scope="col">TTL</th>
          <th scope="col"><span class="sr-only">Actions</span></th>
        </tr>
      </thead>
      <tbody>
        ${rows.map((row) =>
          row.key === editing
            ? html`<tr class="editor-row"><td colspan="5">${editor(row)}</td></tr>`
            : recordRow(row, domain, actions),
        )}
      </tbody>
    </table>
  </div>`

/** @param {DraftRow} row @param {string} domain @param {RowActions | undefined} actions */
function recordRow(row, domain, actions) {
  const { record, state } = row
  const name = html`<span class="host">${record.name}</span><span class="host-rest">${record.name === '@' ? ` ${domain}` : `.${domain}`}</span>`
  return html`
    <tr class="record ${state}">
      <th scope="row">
        ${
          actions && state !== 'removed'
            ? html`<button class="row-button" data-row @click=${() => actions.onEdit(row)}>${name}</button>`
            : html`<span class="row-button">${name}</span>`
        }
        ${state === 'kept' ? nothing : html`<span class="chip ${tones[state]}">${labels[state]}</span>`}
      </th>
      <td><span class="type-tag">${record.type}</span></td>
      <td class="value">${recordValue(record)}</td>
      <td class="muted ttl">${formatTtl(record.ttl ?? 1800)}</td>
      <td class="actions">${actions ? rowButtons(row, actions) : nothing}</td>
    </tr>`
}

const tones = { kept: '', added: 'good', updated: 'accent', removed: 'bad' }

/** @param {DraftRow} row @param {RowActions} actions */
function rowButtons(row, actions) {
  const { record, state } = row
  const what = `${record.type} ${record.name}`
  const undo = html`
    <button class="icon-button" aria-label="Undo: ${what}" title="Undo" @click=${() => actions.onReset(row)}>${icon('undo')}</button>`
  if (state === 'removed') return undo
  return html`
    ${state === 'kept' ? nothing : undo}
    <button class="icon-button" aria-label="Edit ${what}" title="Edit" @click=${() => actions.onEdit(row)}>${icon('edit')}</button>
    ${
      state === 'added'
        ? nothing
        : html`<button class="icon-button" aria-label="Delete ${what}" title="Delete" @click=${() => actions.onRemove(row)}>${icon('trash')}</button>`
    }`
}

/** The value of a record, with the preference of a mail server. @param {RecordInput} record */
export const recordValue = ({ type, address, mx_pref: pref }) => html`
  ${type === 'MX' && pref !== undefined ? html`<span class="preference" title="Preference">${pref}</span>` : nothing}<span class="address">${address}</span>`
