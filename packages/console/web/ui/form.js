import { html, nothing } from '../core/view.js'

/**
 * One place for form fields: label, control, hint and fault, tied together for screen readers.
 * @typedef {{ id: string, label: string, value: string, onInput: (value: string) => void, hint?: unknown,
 *   fault?: string, placeholder?: string, type?: string, isRequired?: boolean, autocomplete?: string,
 *   inputMode?: string, list?: string, isFocused?: boolean, isDisabled?: boolean }} TextField
 */

/** @param {TextField} field */
export const textField = (field) => html`
  <div class="field">
    <label for=${field.id}>${field.label}</label>
    <input
      id=${field.id}
      name=${field.id}
      type=${field.type ?? 'text'}
      .value=${field.value}
      placeholder=${field.placeholder ?? nothing}
      autocomplete=${/** @type {any} */ (field.autocomplete ?? 'off')}
      inputmode=${/** @type {any} */ (field.inputMode ?? nothing)}
      list=${field.list ?? nothing}
      spellcheck="false"
      ?required=${field.isRequired}
      ?disabled=${field.isDisabled}
      ?autofocus=${field.isFocused}
      aria-invalid=${field.fault ? 'true' : 'false'}
      aria-describedby="${field.id}-note"
      @input=${inputHandler(field.onInput)}
    />
    ${note(field)}
  </div>`

/**
 * A text field of `form[name]`, without spaces around, unless it is a password.
 * @template {string} Name
 * @param {Record<Name, string>} form
 * @param {Name} name
 * @param {string} label
 * @param {Partial<TextField> & { rows?: number, onChange?: () => void, draw?: typeof textField }} [field]
 */
export const formField = (form, name, label, { onChange, draw = textField, ...field } = {}) =>
  draw({
    id: `field-${name}`,
    label,
    value: form[name],
    onInput: (value) => {
      form[name] = field.type === 'password' ? value : value.trim()
      onChange?.()
    },
    ...field,
  })

/** @param {TextField & { rows?: number }} field */
export const textArea = (field) => html`
  <div class="field">
    <label for=${field.id}>${field.label}</label>
    <textarea
      id=${field.id}
      rows=${field.rows ?? 6}
      .value=${field.value}
      placeholder=${field.placeholder ?? nothing}
      spellcheck="false"
      aria-invalid=${field.fault ? 'true' : 'false'}
      aria-describedby="${field.id}-note"
      @input=${inputHandler(field.onInput)}
    ></textarea>
    ${note(field)}
  </div>`

/**
 * @param {{ id: string, label: string, value: string, options: (string | [value: string, label: string])[],
 *   onInput: (value: string) => void, hint?: unknown, fault?: string, isDisabled?: boolean }} field
 */
export const selectField = (field) => html`
  <div class="field">
    <label for=${field.id}>${field.label}</label>
    <select
      id=${field.id}
      .value=${field.value}
      ?disabled=${field.isDisabled}
      aria-describedby="${field.id}-note"
      @change=${inputHandler(field.onInput)}
    >
      ${optionsOf(field.options, field.value)}
    </select>
    ${note(field)}
  </div>`

/**
 * A choice of `form[name]`.
 * @template {string} Name
 * @param {Record<Name, string>} form
 * @param {Name} name
 * @param {string} label
 * @param {(string | [value: string, label: string])[]} options
 */
export const formSelect = (form, name, label, options) =>
  selectField({
    id: `field-${name}`,
    label,
    value: form[name],
    options,
    onInput: (value) => {
      form[name] = value
    },
  })

/** @param {(string | [value: string, label: string])[]} options @param {string} chosen */
export const optionsOf = (options, chosen) =>
  options.map((option) => {
    const [value, label] = typeof option === 'string' ? [option, option] : option
    return html`<option value=${value} ?selected=${value === chosen}>${label}</option>`
  })

/**
 * @param {string} label
 * @param {boolean} isChecked
 * @param {(isChecked: boolean) => unknown} onChange
 * @param {string} [hint]
 */
export const checkbox = (label, isChecked, onChange, hint) => html`
  <label class="checkbox">
    <input
      type="checkbox"
      .checked=${isChecked}
      @change=${(/** @type {Event} */ event) =>
        onChange(/** @type {HTMLInputElement} */ (event.target).checked)}
    />
    <span>${label}${hint ? html`<small>${hint}</small>` : nothing}</span>
  </label>`

/**
 * The search box of a view: `/` focuses it, Esc empties it.
 * @param {{ label: string, value: string, onInput: (value: string) => void }} field
 */
export const searchBox = ({ label, value, onInput }) => html`
  <input
    class="search"
    type="search"
    data-search
    aria-label=${label}
    placeholder=${label}
    .value=${value}
    autocomplete="off"
    spellcheck="false"
    @input=${inputHandler(onInput)}
  />`

/**
 * A choice of which all are shown.
 * @param {string} label
 * @param {Record<string, string>} options labels by value
 * @param {string} chosen
 * @param {(value: string) => void} onChoose
 */
export const segments = (label, options, chosen, onChoose) => html`
  <div class="segments" role="group" aria-label=${label}>
    ${Object.entries(options).map(
      ([value, words]) =>
        html`<button aria-pressed=${value === chosen} @click=${() => onChoose(value)}>${words}</button>`,
    )}
  </div>`

/** @param {(value: string) => void} onInput */
export const inputHandler = (onInput) => (/** @type {Event} */ event) =>
  onInput(/** @type {HTMLInputElement} */ (event.target).value)

/** @param {{ id: string, hint?: unknown, fault?: string }} field */
const note = ({ id, hint, fault }) => html`
  <p class="note ${fault ? 'fault' : ''}" id="${id}-note">${fault ?? hint ?? nothing}</p>`
