import { html, nothing } from '../core/view.js'

/**
 * @typedef {{ id: string, label: string, value: string, onInput: (value: string) => void, hint?: unknown,
 *   fault?: string, placeholder?: string, type?: string, isRequired?: boolean, autocomplete?: string,
 *   inputMode?: string, list?: string, isFocused?: boolean, isDisabled?: boolean, rows?: number,
 *   options?: Option[] }} Field
 * @typedef {string | string[]} Option its value, and a label where that is another
 */

/**
 * One place for form fields: label, control, hint and fault, tied together for screen readers. With `options` a choice, with
 * `rows` an area of text.
 * @param {Field} shown
 */
export function field(shown) {
  const { id, label, hint, fault, options, rows } = shown
  const control = options ? choice : rows ? textArea : textInput
  return html`
    <div class="field">
      <label for=${id}>${label}</label>
      ${control(shown, `${id}-note`)}
      <p class="note ${fault ? 'fault' : ''}" id="${id}-note">${fault ?? hint ?? nothing}</p>
    </div>`
}

/** @param {Field} field @param {string} note */
const textInput = (field, note) => html`
  <input id=${field.id} name=${field.id} type=${field.type ?? 'text'} .value=${field.value} placeholder=${field.placeholder ?? nothing}
    autocomplete=${/** @type {any} */ (field.autocomplete ?? 'off')} inputmode=${/** @type {any} */ (field.inputMode ?? nothing)}
    list=${field.list ?? nothing} spellcheck="false" ?required=${field.isRequired} ?disabled=${field.isDisabled} ?autofocus=${field.isFocused}
    aria-invalid=${field.fault ? 'true' : 'false'} aria-describedby=${note} @input=${inputHandler(field.onInput)} />`

/** @param {Field} field @param {string} note */
const textArea = (field, note) => html`
  <textarea id=${field.id} rows=${field.rows} .value=${field.value} placeholder=${field.placeholder ?? nothing} spellcheck="false"
    aria-invalid=${field.fault ? 'true' : 'false'} aria-describedby=${note} @input=${inputHandler(field.onInput)}></textarea>`

/** @param {Field} field @param {string} note */
const choice = (field, note) => html`
  <select id=${field.id} .value=${field.value} ?disabled=${field.isDisabled} aria-describedby=${note} @change=${inputHandler(field.onInput)}>
    ${optionsOf(field.options ?? [], field.value)}
  </select>`

/**
 * A field of `form[name]`, without spaces around, unless it is a password.
 * @template {string} Name
 * @param {{ [Key in Name]: string }} form
 * @param {Name} name
 * @param {string} label
 * @param {Partial<Field> & { onChange?: () => void }} [more]
 */
export const formField = (form, name, label, { onChange, ...more } = {}) =>
  field({
    id: `field-${name}`,
    label,
    value: form[name],
    onInput: (value) => {
      form[name] = /** @type {any} */ (more.type === 'password' ? value : value.trim())
      onChange?.()
    },
    ...more,
  })

/**
 * A choice in a toolbar.
 * @param {string} label
 * @param {Option[]} options
 * @param {string} chosen
 * @param {(value: string) => unknown} onChoose
 * @param {boolean} [isDisabled]
 */
export const select = (label, options, chosen, onChoose, isDisabled) => html`
  <select class="short" aria-label=${label} .value=${chosen} ?disabled=${isDisabled} @change=${inputHandler(onChoose)}>
    ${optionsOf(options, chosen)}
  </select>`

/** @param {Option[]} options @param {string} chosen */
const optionsOf = (options, chosen) =>
  options.map((option) => {
    const [value = '', label = value] = [option].flat()
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
      @change=${(/** @type {Event} */ event) => onChange(/** @type {HTMLInputElement} */ (event.target).checked)}
    />
    <span>${label}${hint ? html`<small>${hint}</small>` : nothing}</span>
  </label>`

/**
 * The search box of a view: `/` focuses it, Esc empties it.
 * @param {{ label: string, value: string, onInput: (value: string) => void }} field
 */
export const searchBox = ({ label, value, onInput }) => html`
  <input class="search" type="search" data-search aria-label=${label} placeholder=${label} .value=${value}
    autocomplete="off" spellcheck="false" @input=${inputHandler(onInput)} />`

/**
 * The parts of a view, or choices of which all are shown.
 * @param {string} label
 * @param {Record<string, string>} titles by value
 * @param {string} current
 * @param {(value: string) => string} hrefOf
 */
export const links = (label, titles, current, hrefOf, className = 'segments') => html`
  <nav class=${className} aria-label=${label}>
    ${Object.entries(titles).map(([value, title]) => html`<a href=${hrefOf(value)} aria-current=${value === current ? 'page' : nothing}>${title}</a>`)}
  </nav>`

/** @param {(value: string) => unknown} onInput */
const inputHandler = (onInput) => (/** @type {Event} */ event) =>
  onInput(/** @type {HTMLInputElement} */ (event.target).value)
