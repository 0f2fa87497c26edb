import { getZoneFile, patchZone } from '../../api/domain-service.js'
import { html, nothing } from '../../core/html.js'
import { mayEdit } from '../../core/session.js'
import { View } from '../../core/view.js'
import { saveText } from '../../ui/clipboard.js'
import { inputHandler, optionsOf, searchBox } from '../../ui/form.js'
import { formatAge, formatCount } from '../../ui/format.js'
import { icon } from '../../ui/icons.js'
import { empty, notice, show } from '../../ui/states.js'
import { toast } from '../../ui/toast.js'
import {
  addChanges,
  addRecord,
  countEdits,
  editRow,
  emptyDraft,
  removeRecord,
  resetRow,
  rowsOf,
  toPatch,
} from '../draft.js'
import { openReview } from '../review/zone-review.js'
import { ZoneStore } from '../zone-store.js'
import { recordTable } from './record-table.js'
import { emailTypes } from './record-types.js'
import { openZoneFile } from './zone-file-dialog.js'
import './record-form.js'

/**
 * @import { TaggedZone } from '../../api/domain-service.js'
 * @import { RecordInput, Zone } from '../../api/schema.d.ts'
 * @import { DraftRow } from '../draft.js'
 */

/** The records of one domain. Edits gather as a draft; Review shows what they change, Apply sends them together. */
class ZoneRecords extends View {
  #store = new ZoneStore(this)
  #search = ''
  #type = ''
  /** @type {string | undefined} the key of the row that is edited, or `new` */
  #editing

  /** @param {string} domain */
  set domain(domain) {
    if (domain === this.#store.domain) return
    this.#editing = undefined
    this.#store.open(domain)
  }

  opened() {
    const { signal } = this
    this.#store.refresh()
    addEventListener('focus', () => this.#store.refresh(), { signal })
    const clock = setInterval(() => this.update(), 30_000) // The age that is shown.
    signal.addEventListener('abort', () => clearInterval(clock))
  }

  template() {
    return show(this.#store.zone, (tagged) => this.#records(tagged), 8)
  }

  /** @param {TaggedZone} tagged */
  #records({ zone, readAt }) {
    const isEditable = mayEdit('domains') && zone.uses_registrar_dns
    const rows = rowsOf(zone, this.#store.draft)
    const shown = rows.filter((row) => this.#isShown(row))
    return html`
      <div class="records">
        ${zone.uses_registrar_dns ? nothing : notice('This domain uses other nameservers. Its records here are not in use and cannot be changed.', 'warn')}
        ${this.#store.notes.length > 0 ? notice(html`<p>The zone changed meanwhile:</p><ul>${this.#store.notes.map((note) => html`<li>${note}</li>`)}</ul>`, 'warn') : nothing}
        ${this.#toolbar(zone, isEditable)}
        ${this.#age(readAt)}
        ${this.#editing === 'new' ? html`<div class="panel">${this.#form(undefined)}</div>` : nothing}
        <p class="sr-only" role="status">${formatCount(shown.length, 'record')}</p>
        ${
          shown.length > 0
            ? recordTable({
                rows: shown,
                domain: this.#store.domain,
                editing: this.#editing,
                editor: (row) => this.#form(row),
                actions: isEditable ? this.#actions : undefined,
              })
            : this.#nothingShown(rows.length === 0, isEditable)
        }
        ${this.#emailType(zone, isEditable)}
        ${isEditable ? this.#draftBar() : nothing}
      </div>`
  }

  /** @param {number} readAt */
  #age(readAt) {
    return html`
      <p class="note">
        Read from the registrar ${formatAge(new Date(readAt).toISOString())}
        <button class="link-button" ?disabled=${this.#store.zone.isLoading} @click=${() => this.#store.readNow()}>Read it now</button>
      </p>`
  }

  /** @param {Zone} zone @param {boolean} isEditable */
  #toolbar(zone, isEditable) {
    const types = [...new Set(zone.hosts.map(({ type }) => type))].sort()
    return html`
      <div class="toolbar">
        ${searchBox({ label: 'Filter records', value: this.#search, onInput: (value) => this.#filter({ search: value }) })}
        <select class="short" aria-label="Filter by type" .value=${this.#type} @change=${inputHandler((value) => this.#filter({ type: value }))}>
          ${optionsOf([['', 'All types'], ...types], this.#type)}
        </select>
        <span class="spacer"></span>
        <button class="button" @click=${this.#export}>${icon('download')} Export</button>
        ${
          isEditable
            ? html`
              <button class="button" @click=${this.#import}>${icon('upload')} Import</button>
              <button class="button primary" data-key="n" @click=${() => this.#edit('new')}>${icon('plus')} Add record</button>`
            : nothing
        }
      </div>`
  }

  /** @param {Zone} zone @param {boolean} isEditable */
  #emailType(zone, isEditable) {
    const live = zone.email_type ?? ''
    const chosen = this.#store.draft.emailType ?? live
    return html`
      <label class="inline-field">
        <span class="muted">Mail handling</span>
        <select class="short" ?disabled=${!isEditable} .value=${chosen}
          @change=${inputHandler((value) => this.#store.change({ ...this.#store.draft, emailType: value === live ? undefined : value }))}>
          ${optionsOf([...(live ? [] : [/** @type {[string, string]} */ (['', 'unknown'])]), ...Object.entries(emailTypes)], chosen)}
        </select>
      </label>`
  }

  /** @param {DraftRow | undefined} row */
  #form(row) {
    const { zone } = this.#store.zone.value ?? {}
    const others = rowsOf(
      zone ?? { domain: '', uses_registrar_dns: true, email_type: null, hosts: [] },
      this.#store.draft,
    )
      .filter((each) => each.state !== 'removed' && each.key !== row?.key)
      .map(({ record }) => record)
    return html`
      <record-form
        .domain=${this.#store.domain}
        .record=${row?.record}
        .others=${others}
        @save=${(/** @type {CustomEvent<RecordInput>} */ event) => this.#save(row, event.detail)}
        @cancel=${() => this.#edit(undefined)}
      ></record-form>`
  }

  /** @param {boolean} isEmptyZone @param {boolean} isEditable */
  #nothingShown(isEmptyZone, isEditable) {
    if (!isEmptyZone) {
      return empty({
        icon: 'search',
        title: 'No record matches',
        action: html`<button class="button" @click=${() => this.#filter({ search: '', type: '' })}>Show all</button>`,
      })
    }
    return empty({
      icon: 'globe',
      title: 'No records yet',
      text: isEditable
        ? 'Add a record, or import a zone file from another provider.'
        : 'Nothing answers under this domain.',
    })
  }

  #draftBar() {
    const count = countEdits(this.#store.draft)
    if (count === 0) return nothing
    return html`
      <div class="draft-bar" role="region" aria-label="Draft">
        <span>${formatCount(count, 'change')} not applied yet</span>
        <span class="spacer"></span>
        <button class="button" @click=${this.#discard}>Discard</button>
        <button class="button primary" data-key="r" @click=${this.#review}>Review</button>
      </div>`
  }

  #discard = () => {
    const { draft } = this.#store
    this.#store.change(emptyDraft)
    const undo = () => this.#store.change(draft)
    toast(html`Draft discarded. <button class="link-button" @click=${undo}>Undo</button>`)
  }

  #actions = {
    onEdit: (/** @type {DraftRow} */ row) => this.#edit(row.key),
    onRemove: (/** @type {DraftRow} */ row) =>
      this.#store.change(removeRecord(this.#store.draft, row.key)),
    onReset: (/** @type {DraftRow} */ row) => this.#store.change(resetRow(this.#store.draft, row)),
  }

  /** @param {DraftRow | undefined} row @param {RecordInput} record */
  #save(row, record) {
    this.#editing = undefined
    this.#store.change(
      row ? editRow(this.#store.draft, row, record) : addRecord(this.#store.draft, record),
    )
  }

  /** @param {string | undefined} key */
  #edit(key) {
    if (key !== undefined && !this.#finishForm()) return
    this.#editing = key
    this.update()
    if (key === undefined) return
    queueMicrotask(() => queueMicrotask(() => this.#focusForm()))
  }

  #focusForm() {
    /** @type {HTMLElement | null} */
    const field = this.querySelector(this.#editing === 'new' ? '#record-type' : '#record-address')
    field?.focus()
  }

  /** @param {{ search?: string, type?: string }} filter */
  #filter({ search = this.#search, type = this.#type }) {
    this.#search = search
    this.#type = type
    this.update()
  }

  /** @param {DraftRow} row */
  #isShown({ key, record, state }) {
    if (state === 'added' || key === this.#editing) return true
    if (this.#type && record.type !== this.#type) return false
    const words = this.#search.trim().toLowerCase()
    return (
      words === '' || record.name.includes(words) || record.address.toLowerCase().includes(words)
    )
  }

  /** Takes what is typed in an open form into the draft. False: it has faults, and stays open. */
  #finishForm() {
    /** @type {import('./record-form.js').RecordForm | null} */
    const form = this.querySelector('record-form')
    return !form?.isChanged || form.finish()
  }

  #review = async () => {
    if (!this.#finishForm()) return
    const base = this.#store.zone.value
    if (!base) return
    const outcome = await openReview({
      title: `Review the changes to ${this.#store.domain}`,
      domain: this.#store.domain,
      base,
      send: (options) => patchZone(this.#store.domain, toPatch(this.#store.draft), options),
      draft: () => this.#store.draft,
      change: (draft, newer) => this.#store.change(draft, newer),
    })
    if (!outcome) return this.update()
    return this.#store.applied()
  }

  #import = async () => {
    const base = this.#store.zone.value
    if (!base) return
    const changes = await openZoneFile(this.#store.domain, base)
    if (!changes) return
    const draft = addChanges(this.#store.draft, changes)
    this.#store.change(draft)
    toast(`${formatCount(countEdits(draft), 'change')} in the draft: review them, then apply`)
  }

  #export = async () => {
    try {
      saveText(`${this.#store.domain}.zone`, await getZoneFile(this.#store.domain))
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'bad')
    }
  }
}

customElements.define('zone-records', ZoneRecords)
