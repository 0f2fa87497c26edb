import { get, mayEdit } from '../../api/client.js'
import { focusOn, html, nothing, RouteView } from '../../core/view.js'
import { save } from '../../ui/copy.js'
import { searchBox, select } from '../../ui/form.js'
import { byHostName, formatAge, formatCount } from '../../ui/format.js'
import { Selection } from '../../ui/selection.js'
import { empty, icon, notice, show, toast } from '../../ui/states.js'
import { readAge } from '../../ui/table.js'
import { addRecord, countEdits, editRow, emptyDraft, rowsOf } from '../draft.js'
import { matchesRecord } from '../zone-diff.js'
import { openReview } from '../zone-review.js'
import { ZoneStore } from '../zone-store.js'
import { forgetForm, keptForm } from './record-form.js'
import { bulkBar, plainTable, recordTable } from './record-table.js'
import { emailTypes } from './record-types.js'
import { openZoneFile } from './zone-file-dialog.js'

/**
 * @import { TaggedZone } from '../zone-store.js'
 * @import { Draft, DraftRow } from '../draft.js'
 */

/** The records of one domain. Edits gather as a draft; Review shows what they change, Apply sends them together. */
export class ZoneRecords extends RouteView {
  /** Replaced by that of the domain. */
  store = new ZoneStore(this)
  /** @type {string | undefined} the key of the row that is edited, or `new` */
  #editing
  selection = new Selection(
    (/** @type {DraftRow} */ { key }) => key,
    () => this.update(),
  )
  /** @type {string | undefined} what has the focus after the next rendering */
  #focus

  opened() {
    const { signal } = this
    super.opened()
    const clock = setInterval(() => this.update(), 30_000) // The age that is shown.
    signal.addEventListener('abort', () => clearInterval(clock))
  }

  template() {
    const { base } = this.store
    return [show(base, (tagged) => this.#records(tagged), 8), base.value ? nothing : this.#lastKnown()]
  }

  get address() {
    return this.store.domain
  }

  reload() {
    this.store.refresh()
  }

  entered() {
    this.#editing = keptForm(this.store.domain)?.key
    this.selection.choose([])
  }

  #lastKnown() {
    const { domain, known } = this.store
    const [first] = known
    if (!first) return nothing
    return html`
      <div class="last-known">
        <h2>As it was last read, ${formatAge(first.read_at)}</h2>
        ${plainTable(known, domain)}
      </div>`
  }

  rendered() {
    if (this.#focus && focusOn(this, this.#focus)) this.#focus = undefined
  }

  /** @param {TaggedZone} tagged */
  #records({ zone, readAt }) {
    const { store } = this
    const isEditable = mayEdit('domains') && zone.uses_registrar_dns
    const sorted = { ...zone, hosts: zone.hosts.toSorted(byHostName) }
    const rows = rowsOf(sorted, store.draft, store.pending)
    const shown = rows.filter((row) => this.#isShown(row))
    // Also that of a record which somebody else removed.
    const isApart = this.#editing && !rows.some(({ key }) => key === this.#editing)
    const table = {
      rows: shown,
      domain: store.domain,
      editing: this.#editing,
      editor: (/** @type {DraftRow} */ row) => this.#form(row, rows),
      actions: isEditable ? this : undefined,
    }
    return html`
      <div class="records">
        ${zone.uses_registrar_dns ? nothing : notice('This domain uses other nameservers. Its records here are not in use and cannot be changed.', 'warn')}
        ${store.notes.length > 0 ? notice(html`<p>The zone changed meanwhile:</p><ul>${store.notes.map((note) => html`<li>${note}</li>`)}</ul>`, 'warn') : nothing}
        ${store.pending.count > 0 ? notice(html`${formatCount(store.pending.count, 'change')} waiting for the registrar: <a href="#/changes?domain=${store.domain}">see Changes</a>`) : nothing}
        ${store.pending.proposed > 0 ? notice(html`${formatCount(store.pending.proposed, 'change')} waiting for an approval: <a href="#/changes?domain=${store.domain}&status=proposed">see Changes</a>`) : nothing}
        ${this.#toolbar(zone, isEditable)}
        ${readAge(readAt, store.base)}
        ${isApart && isEditable ? html`<div class="panel">${this.#form(undefined, rows)}</div>` : nothing}
        <p class="sr-only" role="status">${formatCount(shown.length, 'record')}</p>
        ${shown.length > 0 ? recordTable(table) : this.#nothingShown(rows.length === 0, isEditable)}
        ${this.#emailType(zone, isEditable)}
        ${isEditable ? this.#bars(rows) : nothing}
      </div>`
  }

  /** @param {Api.Zone} zone @param {boolean} isEditable */
  #toolbar(zone, isEditable) {
    const { search = '', type = '' } = this.values('search', 'type')
    const types = [...new Set(zone.hosts.map(({ type }) => type))].sort()
    return html`
      <div class="toolbar">
        ${searchBox({ label: 'Filter records', value: search, onInput: this.search })}
        ${select('Filter by type', [['', 'All types'], ...types], type, (type) => this.open({ type }))}
        <span class="spacer"></span>
        <button class="button" @click=${this.#export}>${icon('download')} Export</button>
        ${
          isEditable
            ? html`
              <button class="button" @click=${this.#import}>${icon('upload')} Import</button>
              <button class="button primary" data-key="n" @click=${() => this.edit('new')}>${icon('plus')} Add record</button>`
            : nothing
        }
      </div>`
  }

  /** @param {Api.Zone} zone @param {boolean} isEditable */
  #emailType(zone, isEditable) {
    const live = zone.email_type ?? ''
    const chosen = this.store.draft.emailType ?? live
    const options = Object.entries(live ? emailTypes : { '': 'unknown', ...emailTypes })
    const choose = (/** @type {string} */ type) =>
      this.store.change({ ...this.store.draft, emailType: type === live ? undefined : type })
    return html`
      <label class="inline-field">
        <span class="muted">Mail handling</span>
        ${select('Mail handling', options, chosen, choose, !isEditable)}
      </label>`
  }

  /** @param {DraftRow | undefined} row @param {DraftRow[]} rows */
  #form(row, rows) {
    const others = rows.filter((each) => each.state !== 'removed' && each.key !== row?.key)
    return html`
      <record-form
        .domain=${this.store.domain}
        .key=${row?.key ?? 'new'}
        .record=${row?.record}
        .others=${others.map(({ record }) => record)}
        .save=${(/** @type {Api.RecordInput} */ record) => this.#save(row, record)}
        .cancel=${() => this.edit()}
      ></record-form>`
  }

  /** @param {boolean} isEmptyZone @param {boolean} isEditable */
  #nothingShown(isEmptyZone, isEditable) {
    const hint = 'Add a record, or import a zone file from another provider.'
    if (isEmptyZone) return empty('globe', 'No records yet', isEditable ? hint : '')
    const showAll = () => this.open({ search: '', type: '' })
    const button = html`<button class="button" @click=${showAll}>Show all</button>`
    return empty('search', 'No record matches', '', button)
  }

  /** @param {DraftRow[]} rows */
  #bars(rows) {
    const count = countEdits(this.store.draft)
    const words = count > 0 ? `${formatCount(count, 'change')} not applied yet` : ''
    return html`
      <p class="sr-only" role="status">${words}</p>
      <div class="bars">
        ${bulkBar(rows, this)}
        ${
          count > 0
            ? html`<div class="draft-bar" role="region" aria-label="Draft">
              <span>${words}</span>
              <span class="spacer"></span>
              <button class="button" @click=${this.#discard}>Discard</button>
              <button class="button primary" data-key="r" @click=${this.#review}>Review</button>
            </div>`
            : nothing
        }
      </div>`
  }

  #discard = () => {
    const { draft } = this.store
    this.change(emptyDraft, 'new')
    const undo = () => this.store.change(draft)
    toast(html`Draft discarded. <button class="link-button" @click=${undo}>Undo</button>`)
  }

  /** @param {Draft} draft @param {string} key of the row where the keyboard goes on */
  change(draft, key) {
    this.#focus = selectorOf(key)
    this.selection.choose([])
    this.store.change(draft)
    this.update()
  }

  /** @param {DraftRow | undefined} row @param {Api.RecordInput} record */
  #save(row, record) {
    const { draft } = this.store
    this.#editing = undefined
    forgetForm(this.store.domain)
    const next = row ? editRow(draft, row, record) : addRecord(draft, record)
    this.change(next, row?.key ?? 'new')
  }

  /** @param {string} [key] of the row that gets the form; none: none */
  edit(key) {
    if (key !== undefined && !this.#finishForm()) return
    forgetForm(this.store.domain) // It was cancelled, or is in the draft.
    if (key === undefined) this.#focus = selectorOf(this.#editing ?? '')
    else this.#focus = key === 'new' ? '#record-type' : '#record-address'
    this.#editing = key
    this.update()
    queueMicrotask(() => this.update()) // The fields are there once the form has rendered.
  }

  /** @param {DraftRow} row */
  #isShown({ key, record, state }) {
    if (state === 'added' || key === this.#editing) return true
    const { search = '', type = record.type } = this.values('search', 'type')
    return record.type === type && matchesRecord(record, this.store.domain, search)
  }

  /** Takes what is typed in an open form into the draft. False: it has faults, and stays open. */
  #finishForm() {
    const form = this.querySelector('record-form')
    return !form?.isChanged || form.finish()
  }

  #review = async () => {
    if (!this.#finishForm()) return
    if (await openReview(`Review the changes to ${this.store.domain}`, this.store)) this.#focus = selectors.new
    this.update()
  }

  #import = async () => {
    const before = countEdits(this.store.draft)
    const draft = await openZoneFile(this.store)
    if (!draft) return
    this.store.change(draft)
    const count = countEdits(draft) - before
    if (count === 0) toast('Everything in it is there already')
    else toast(`${formatCount(count, 'change')} in the draft: review them, then apply`)
  }

  #export = () => {
    const { domain } = this.store
    const options = { params: { domain }, headers: { accept: 'text/dns' }, asBlob: true }
    const load = () => /** @type {any} */ (get('domains', '/api/domains/{domain}/dns/zonefile', options))
    return save(`${domain}.zone`, load)
  }
}

/** @type {Record<string, string>} */
const selectors = { new: '[data-key=n]', all: 'input[data-all]' }

/** @param {string} key */
const selectorOf = (key) => selectors[key] ?? `[data-record="${key}"]`

customElements.define('zone-records', ZoneRecords)
