import { html, nothing } from '../../core/html.js'
import { View } from '../../core/view.js'
import { inputHandler, optionsOf, selectField, textField } from '../../ui/form.js'
import { findFaults } from './record-rules.js'
import { recordTypes, ttls } from './record-types.js'

/**
 * @import { RecordInput } from '../../api/schema.d.ts'
 * @typedef {{ name: string, type: string, address: string, ttl: string, mxPref: string }} Fields
 */

/**
 * The form for one record, new or live. It validates while somebody types, shows a fault once its field was touched,
 * and dispatches `save` (detail: the record) and `cancel`.
 */
export class RecordForm extends View {
  domain = ''
  /** @type {RecordInput | undefined} the record to edit; none: a new one */
  record
  /** @type {readonly RecordInput[]} the other records of the zone */
  others = []
  /** @type {Fields} */
  #fields = { name: '', type: 'A', address: '', ttl: '1800', mxPref: '10' }
  /** @type {Set<string>} */
  #touched = new Set()
  #hasOwnTtl = false

  opened() {
    const { record } = this
    if (!record) return
    const { name, type, address, ttl = 1800, mx_pref: pref = 10 } = record
    this.#fields = { name, type, address, ttl: String(ttl), mxPref: String(pref) }
  }

  template() {
    const { type } = this.#fields
    const known = recordTypes[type]
    const faults = this.#faults()
    return html`
      <form class="record-form" aria-label=${this.record ? 'Edit the record' : 'Add a record'} novalidate @submit=${this.#save} @keydown=${this.#leave}>
        ${this.record ? html`<div class="field type-fixed"><span class="label">Type</span><strong>${type}</strong></div>` : this.#typeField()}
        ${this.#text('name', 'Name', { placeholder: '@ or www', fault: faults.name, hint: this.#fullName() })}
        ${this.#text('address', known?.value ?? 'Value', { placeholder: known?.placeholder, fault: faults.address, hint: this.#joinOffer() ?? known?.hint })}
        ${type === 'MX' ? this.#text('mxPref', 'Preference', { fault: faults.mx_pref, inputMode: 'numeric' }) : nothing}
        ${this.#ttlField(faults.ttl)}
        <div class="record-form-buttons">
          <button class="button primary">${this.record ? 'Change' : 'Add'}</button>
          <button class="button" type="button" @click=${this.#cancel}>Cancel</button>
        </div>
      </form>`
  }

  #typeField() {
    /** @type {[string, string][]} */
    const options = Object.entries(recordTypes).map(([type, { title }]) => [
      type,
      `${type} — ${title}`,
    ])
    return html`<div class="type-field">${selectField({
      id: 'record-type',
      label: 'Type',
      value: this.#fields.type,
      options,
      onInput: (type) => this.#set('type', type),
    })}</div>`
  }

  /**
   * @param {'name' | 'address' | 'mxPref'} field
   * @param {string} label
   * @param {{ placeholder?: string, fault?: string, hint?: unknown, inputMode?: string }} more
   */
  #text(field, label, { fault, ...more }) {
    return html`<div class="${field}-field">${textField({
      id: `record-${field}`,
      label,
      value: this.#fields[field],
      fault: this.#touched.has(field) ? fault : undefined,
      isFocused: field === 'name',
      onInput: (value) => this.#set(field, value),
      ...more,
    })}</div>`
  }

  /** @param {string | undefined} fault */
  #ttlField(fault) {
    const { ttl } = this.#fields
    const isListed = ttls.some(([seconds]) => String(seconds) === ttl)
    if (this.#hasOwnTtl) {
      return html`<div class="ttl-field">${textField({
        id: 'record-ttl',
        label: 'TTL in seconds',
        value: ttl,
        fault,
        inputMode: 'numeric',
        onInput: (value) => this.#set('ttl', value),
      })}</div>`
    }
    /** @type {[string, string][]} */
    const options = ttls.map(([seconds, label]) => [String(seconds), label])
    if (!isListed) options.push([ttl, `${ttl} seconds`])
    return html`<div class="ttl-field field">
      <label for="record-ttl">TTL</label>
      <select id="record-ttl" .value=${ttl} @change=${inputHandler((value) => this.#chooseTtl(value))}>
        ${optionsOf([...options, ['other', 'Other…']], ttl)}
      </select>
    </div>`
  }

  /** @param {string} value */
  #chooseTtl(value) {
    if (value === 'other') {
      this.#hasOwnTtl = true
      this.update()
    } else this.#set('ttl', value)
  }

  // Other panels show a long text as quoted parts of 255 bytes (RFC 1035, 3.3). Here it is one text.
  #joinOffer() {
    const { type, address } = this.#fields
    if (type !== 'TXT' || !/^\s*"[^"]*"(?:\s*"[^"]*")*\s*$/.test(address)) return undefined
    const joined = [...address.matchAll(/"([^"]*)"/g)].map(([, part]) => part).join('')
    return html`The quotes would be part of the value.
      <button class="link-button" type="button" @click=${() => this.#set('address', joined)}>Remove them and join the parts</button>`
  }

  #fullName() {
    const { name } = this.#fields
    if (name === '' || name === '@') return this.domain
    return `${name}.${this.domain}`
  }

  /** @param {keyof Fields} field @param {string} value */
  #set(field, value) {
    this.#fields = { ...this.#fields, [field]: value }
    this.#touched.add(field)
    this.update()
  }

  /** @returns {RecordInput} */
  #toRecord() {
    const { name, type, address, ttl, mxPref } = this.#fields
    const isText = type === 'TXT'
    return {
      name: name.trim().toLowerCase(),
      type,
      address: isText ? address : address.trim(),
      ttl: toInteger(ttl),
      ...(type === 'MX' ? { mx_pref: toInteger(mxPref) } : {}),
    }
  }

  #faults() {
    return findFaults(this.#toRecord(), this.domain, this.others)
  }

  /** Whether somebody typed in it. */
  get isChanged() {
    return this.#touched.size > 0
  }

  /** @param {Event} event */
  #save = (event) => {
    event.preventDefault()
    this.finish()
  }

  /** Saves the record, or shows its first fault. @returns {boolean} whether it was saved */
  finish() {
    const faults = this.#faults()
    for (const field of ['name', 'address', 'mxPref']) this.#touched.add(field)
    this.update()
    const [first] = Object.keys(faults)
    if (!first) {
      this.dispatchEvent(new CustomEvent('save', { detail: this.#toRecord() }))
      return true
    }
    const id = `#record-${first === 'mx_pref' ? 'mxPref' : first}`
    /** @type {HTMLElement | null} */
    const field = this.querySelector(id)
    field?.focus()
    return false
  }

  #cancel = () => this.dispatchEvent(new CustomEvent('cancel'))

  /** @param {KeyboardEvent} event */
  #leave = (event) => {
    if (event.key !== 'Escape') return
    event.stopPropagation()
    this.#cancel()
  }
}

/** NaN where it is no whole number, so that the rules refuse it. @param {string} text */
const toInteger = (text) => (/^\d+$/.test(text.trim()) ? Number(text) : Number.NaN)

customElements.define('record-form', RecordForm)
