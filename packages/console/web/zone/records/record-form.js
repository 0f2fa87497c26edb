import { focusOn, html, nothing, View } from '../../core/view.js'
import { field } from '../../ui/form.js'
import { formatTtl } from '../../ui/format.js'
import { findFaults } from './record-rules.js'
import { recordTypes, ttls } from './record-types.js'

/**
 * @import { Field } from '../../ui/form.js'
 * @typedef {{ name: string, type: string, address: string, ttl: string, mx_pref: string }} Fields
 */

const typeOptions = Object.entries(recordTypes).map(([type, { title }]) => [type, `${type} — ${title}`])

/**
 * What is typed in the form of a zone, until it is saved or cancelled: it outlives the view and a reload.
 * @param {string} domain @returns {{ key: string, fields: Fields } | null} `key`: of its row, or `new`
 */
export const keptForm = (domain) => JSON.parse(sessionStorage.getItem(`form ${domain}`) ?? 'null')

/** @param {string} domain */
export const forgetForm = (domain) => sessionStorage.removeItem(`form ${domain}`)

/**
 * The form for one record, new or live. It validates while somebody types, and shows a fault once its field was touched.
 */
export class RecordForm extends View {
  domain = ''
  key = 'new'
  /** @type {Api.RecordInput | undefined} the record to edit; none: a new one */
  record
  /** @type {readonly Api.RecordInput[]} the other records of the zone */
  others = []
  save = (/** @type {Api.RecordInput} */ _record) => {}
  cancel = () => {}
  /** @type {Fields} */
  #fields = { name: '', type: 'A', address: '', ttl: '1800', mx_pref: '10' }
  /** @type {Set<string>} */
  #touched = new Set()

  opened() {
    const { name, type, address, ttl = 1800, mx_pref: pref = 10 } = this.record ?? this.#fields
    const kept = keptForm(this.domain)?.fields
    this.#fields = kept ?? { name, type, address, ttl: String(ttl), mx_pref: String(pref) }
    this.#touched = new Set(Object.entries(kept ?? {}).flatMap(([of, text]) => (text ? of : [])))
  }

  template() {
    const { type, name, ttl } = this.#fields
    const known = recordTypes[type]
    const full = name === '' || name === '@' ? this.domain : `${name}.${this.domain}`
    return html`
      <form class="record-form" aria-label=${this.record ? 'Edit the record' : 'Add a record'} novalidate @submit=${this.#submit} @keydown=${this.#key}>
        ${this.record ? html`<div class="field type-fixed"><span class="label">Type</span><strong>${type}</strong></div>` : this.#field('type', 'Type', { options: typeOptions })}
        ${this.#field('name', 'Name', { placeholder: '@ or www', hint: full, isFocused: true })}
        ${this.#field('address', known?.value ?? known?.title ?? 'Value', { placeholder: known?.placeholder, hint: this.#joinOffer() ?? known?.hint, rows: type === 'TXT' ? 3 : undefined })}
        ${type === 'MX' ? this.#field('mx_pref', 'Preference', { inputMode: 'numeric' }) : nothing}
        ${this.#field('ttl', 'TTL in seconds', { inputMode: 'numeric', list: 'ttls', hint: ttl === '' ? '' : formatTtl(toInteger(ttl)) })}
        <datalist id="ttls">${ttls.map((ttl) => html`<option value=${ttl}>${formatTtl(ttl)}</option>`)}</datalist>
        <div class="record-form-buttons">
          <button class="button primary">${this.record ? 'Change' : 'Add'}</button>
          <button class="button" type="button" @click=${() => this.cancel()}>Cancel</button>
        </div>
      </form>`
  }

  /** @param {keyof Fields} name @param {string} label @param {Partial<Field>} more */
  #field(name, label, more) {
    return html`<div class="${name}-field">${field({
      id: `record-${name}`,
      label,
      value: this.#fields[name],
      fault: this.#touched.has(name) ? this.#faults()[name] : undefined,
      onInput: (value) => this.#set(name, value),
      ...more,
    })}</div>`
  }

  // Other panels show a long text as quoted parts of 255 bytes (RFC 1035, 3.3). Here it is one text.
  #joinOffer() {
    const { type, address } = this.#fields
    if (type !== 'TXT' || !/^\s*"[^"]*"(?:\s*"[^"]*")*\s*$/.test(address)) return undefined
    const joined = [...address.matchAll(/"([^"]*)"/g)].map(([, part]) => part).join('')
    return html`The quotes would be part of the value.
      <button class="link-button" type="button" @click=${() => this.#set('address', joined)}>Remove them and join the parts</button>`
  }

  /** @param {keyof Fields} field @param {string} value */
  #set(field, value) {
    this.#fields = { ...this.#fields, [field]: value }
    this.#touched.add(field)
    const kept = JSON.stringify({ key: this.key, fields: this.#fields })
    sessionStorage.setItem(`form ${this.domain}`, kept)
    this.update()
  }

  /** @returns {Api.RecordInput} */
  #toRecord() {
    const { name, type, address, ttl, mx_pref: pref } = this.#fields
    return {
      name: name.trim().toLowerCase(),
      type,
      address: type === 'TXT' ? address : address.trim(),
      ttl: toInteger(ttl),
      ...(type === 'MX' ? { mx_pref: toInteger(pref) } : {}),
    }
  }

  /** @returns {Partial<Fields>} */
  #faults() {
    return findFaults(this.#toRecord(), this.domain, this.others)
  }

  /** Whether somebody typed in it. */
  get isChanged() {
    return this.#touched.size > 0
  }

  /** @param {Event} event */
  #submit = (event) => {
    event.preventDefault()
    this.finish()
  }

  /** Saves the record, or shows its first fault. @returns {boolean} whether it was saved */
  finish() {
    const [first] = Object.keys(this.#faults())
    if (!first) {
      this.save(this.#toRecord())
      return true
    }
    this.#touched = new Set(Object.keys(this.#fields))
    this.update()
    focusOn(this, `#record-${first}`)
    return false
  }

  // No record has a line break: Enter saves from the text area, too.
  /** @param {KeyboardEvent} event */
  #key = (event) => {
    const isTextArea = event.target instanceof HTMLTextAreaElement
    if (event.key === 'Enter' && isTextArea && !event.isComposing) this.#submit(event)
    if (event.key !== 'Escape') return
    event.stopPropagation()
    this.cancel()
  }
}

/** NaN where it is no whole number, so that the rules refuse it. @param {string} text */
const toInteger = (text) => (/^\d+$/.test(text.trim()) ? Number(text) : Number.NaN)

customElements.define('record-form', RecordForm)
