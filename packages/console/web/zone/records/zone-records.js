import { getZone, getZoneFile, patchZone } from '../../api/domain-service.js'
import { html, nothing } from '../../core/html.js'
import { mayEdit } from '../../core/session.js'
import { Resource, View } from '../../core/view.js'
import { saveText } from '../../ui/clipboard.js'
import { inputHandler, optionsOf, searchBox } from '../../ui/form.js'
import { formatCount } from '../../ui/format.js'
import { icon } from '../../ui/icons.js'
import { empty, notice, show } from '../../ui/states.js'
import { toast } from '../../ui/toast.js'
import {
  addChanges,
  addRecord,
  countEdits,
  editRow,
  emptyDraft,
  rebase,
  removeRecord,
  resetRow,
  rowsOf,
  toPatch,
} from '../draft.js'
import { openReview } from '../review/zone-review.js'
import { draftOf, keepDraft } from '../zone-drafts.js'
import { recordTable } from './record-table.js'
import { emailTypes } from './record-types.js'
import { openZoneFile } from './zone-file-dialog.js'
import './record-form.js'

/**
 * @import { TaggedZone } from '../../api/domain-service.js'
 * @import { RecordInput, Zone } from '../../api/schema.d.ts'
 * @import { Draft, DraftRow } from '../draft.js'
 */

/** The records of one domain. Edits gather as a draft; Review shows what they change, Apply sends them together. */
class ZoneRecords extends View {
  #domain = ''
  #zone = new Resource(this, (signal) => this.#load(signal))
  /** @type {Draft} */
  #draft = emptyDraft
  /** @type {string[]} */
  #notes = []
  #search = ''
  #type = ''
  /** @type {string | undefined} the key of the row that is edited, or `new` */
  #editing

  /** @param {string} domain */
  set domain(domain) {
    if (domain === this.#domain) return
    this.#domain = domain
    this.#draft = draftOf(domain)?.draft ?? emptyDraft
    this.#notes = []
    this.#editing = undefined
    this.#zone.value = undefined
    void this.#zone.reload()
  }

  // A draft that was made for an older zone is carried over to the one that was loaded.
  /** @param {AbortSignal} signal */
  async #load(signal) {
    const tagged = await getZone(this.#domain, { signal })
    const kept = draftOf(this.#domain)
    if (kept && kept.base.etag !== tagged.etag) this.#carryOver(kept.base.zone, tagged.zone)
    keepDraft(this.#domain, tagged, this.#draft)
    return tagged
  }

  /** @param {Zone} base @param {Zone} zone @returns {string[]} */
  #carryOver(base, zone) {
    const { draft, notes } = rebase(this.#draft, base, zone)
    this.#draft = draft
    this.#notes = notes
    return notes
  }

  template() {
    return show(this.#zone, (tagged) => this.#records(tagged), 8)
  }

  /** @param {TaggedZone} tagged */
  #records({ zone }) {
    const isEditable = mayEdit('domains') && zone.uses_registrar_dns
    const rows = rowsOf(zone, this.#draft)
    const shown = rows.filter((row) => this.#isShown(row))
    return html`
      <div class="records">
        ${zone.uses_registrar_dns ? nothing : notice('This domain uses other nameservers. Its records here are not in use and cannot be changed.', 'warn')}
        ${this.#notes.length > 0 ? notice(html`<p>The zone changed meanwhile:</p><ul>${this.#notes.map((note) => html`<li>${note}</li>`)}</ul>`, 'warn') : nothing}
        ${this.#toolbar(zone, isEditable)}
        ${this.#editing === 'new' ? html`<div class="panel">${this.#form(undefined)}</div>` : nothing}
        <p class="sr-only" role="status">${formatCount(shown.length, 'record')}</p>
        ${
          shown.length > 0
            ? recordTable({
                rows: shown,
                domain: this.#domain,
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
    const chosen = this.#draft.emailType ?? live
    return html`
      <label class="inline-field">
        <span class="muted">Mail handling</span>
        <select class="short" ?disabled=${!isEditable} .value=${chosen}
          @change=${inputHandler((value) => this.#change({ ...this.#draft, emailType: value === live ? undefined : value }))}>
          ${optionsOf([...(live ? [] : [/** @type {[string, string]} */ (['', 'unknown'])]), ...Object.entries(emailTypes)], chosen)}
        </select>
      </label>`
  }

  /** @param {DraftRow | undefined} row */
  #form(row) {
    const { zone } = this.#zone.value ?? {}
    const others = rowsOf(
      zone ?? { domain: '', uses_registrar_dns: true, email_type: null, hosts: [] },
      this.#draft,
    )
      .filter((each) => each.state !== 'removed' && each.key !== row?.key)
      .map(({ record }) => record)
    return html`
      <record-form
        .domain=${this.#domain}
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
    const count = countEdits(this.#draft)
    if (count === 0) return nothing
    return html`
      <div class="draft-bar" role="region" aria-label="Draft">
        <span>${formatCount(count, 'change')} not applied yet</span>
        <span class="spacer"></span>
        <button class="button" @click=${() => this.#change(emptyDraft)}>Discard</button>
        <button class="button primary" data-key="r" @click=${this.#review}>Review</button>
      </div>`
  }

  #actions = {
    onEdit: (/** @type {DraftRow} */ row) => this.#edit(row.key),
    onRemove: (/** @type {DraftRow} */ row) => this.#change(removeRecord(this.#draft, row.key)),
    onReset: (/** @type {DraftRow} */ row) => this.#change(resetRow(this.#draft, row)),
  }

  /** @param {DraftRow | undefined} row @param {RecordInput} record */
  #save(row, record) {
    this.#editing = undefined
    this.#change(row ? editRow(this.#draft, row, record) : addRecord(this.#draft, record))
  }

  /** @param {Draft} draft */
  #change(draft) {
    this.#draft = draft
    this.#notes = []
    if (this.#zone.value) keepDraft(this.#domain, this.#zone.value, draft)
    this.update()
  }

  /** @param {string | undefined} key */
  #edit(key) {
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
  #isShown({ record, state }) {
    if (state === 'added') return true
    if (this.#type && record.type !== this.#type) return false
    const words = this.#search.trim().toLowerCase()
    return (
      words === '' || record.name.includes(words) || record.address.toLowerCase().includes(words)
    )
  }

  #review = async () => {
    const base = this.#zone.value
    if (!base) return
    const outcome = await openReview({
      title: `Review the changes to ${this.#domain}`,
      domain: this.#domain,
      base,
      send: (options) => patchZone(this.#domain, toPatch(this.#draft), options),
      rebase: (from, to) => this.#carryOver(from, to),
      setEmailType: (emailType) => {
        this.#draft = { ...this.#draft, emailType }
      },
    })
    if (!outcome) return this.update()
    this.#draft = emptyDraft
    this.#notes = []
    keepDraft(this.#domain, base, emptyDraft)
    return this.#zone.reload()
  }

  #import = async () => {
    const base = this.#zone.value
    if (!base) return
    const changes = await openZoneFile(this.#domain, base)
    if (!changes) return
    const draft = addChanges(this.#draft, changes)
    this.#change(draft)
    toast(`${formatCount(countEdits(draft), 'change')} in the draft: review them, then apply`)
  }

  #export = async () => {
    try {
      saveText(`${this.#domain}.zone`, await getZoneFile(this.#domain))
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'bad')
    }
  }
}

customElements.define('zone-records', ZoneRecords)
