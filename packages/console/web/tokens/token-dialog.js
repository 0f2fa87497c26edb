import { get, send } from '../api/client.js'
import { html, nothing } from '../core/html.js'
import { offeredServices, urlOf } from '../core/services.js'
import { isAdmin, mayEdit, session } from '../core/session.js'
import { View } from '../core/view.js'
import { openDialog } from '../ui/dialog.js'
import { selectField, textField } from '../ui/form.js'
import { errorNotice } from '../ui/states.js'
import { purposes, splitList, toTokenInput } from './purposes.js'
import { tokenSettings } from './token-settings.js'

/** @import { MadeToken, Purpose } from './purposes.js' */

const day = 86_400

/** Makes a token for a purpose and shows it once, with the settings to type in. @returns {Promise<boolean>} whether one was made */
export async function openTokenDialog() {
  let isMade = false
  await openDialog({
    title: 'New API token',
    draw: ({ close }) => html`
      <token-dialog
        .close=${close}
        .onMade=${() => {
          isMade = true
        }}
      ></token-dialog>`,
  })
  return isMade
}

class TokenDialog extends View {
  close = () => {}
  onMade = () => {}
  #purpose = ''
  #name = ''
  #days = '90'
  #answers = { domain: '', names: '' }
  /** @type {string[]} */
  #domains = []
  #isBusy = false
  /** @type {unknown} */
  #error
  /** @type {MadeToken | undefined} */
  #made

  opened() {
    this.#purpose = this.#offered()[0]?.[0] ?? ''
    if (session.loginOf('domains')) void this.#suggestDomains()
  }

  // Names to choose from; without them the name is typed.
  async #suggestDomains() {
    try {
      const query = { page_size: 100 }
      const { domains } = await get('domains', '/api/domains', { query, signal: this.signal })
      this.#domains = domains.map(({ name }) => name)
    } catch {
      this.#domains = []
    }
    this.update()
  }

  #offered() {
    return Object.entries(purposes).filter(
      ([, { service, role }]) =>
        offeredServices().includes(service) &&
        session.loginOf(service) &&
        (role === 'viewer' || mayEdit(service)),
    )
  }

  template() {
    const purpose = purposes[this.#purpose]
    if (this.#made && purpose) return tokenSettings(purpose, this.#made, this.close)
    return html`
      <form class="dialog-form" novalidate @submit=${this.#submit}>
        <div class="dialog-body">
          <fieldset class="purposes">
            <legend>What is it for?</legend>
            ${this.#offered().map(
              ([key, { title, hint }]) => html`
                <label class="purpose">
                  <input type="radio" name="purpose" value=${key} .checked=${key === this.#purpose} @change=${() => this.#choose(key)} />
                  <span>${title}<small>${hint}</small></span>
                </label>`,
            )}
          </fieldset>
          ${purpose ? this.#questions(purpose) : nothing} ${errorNotice(this.#error)}
        </div>
        <footer class="dialog-footer">
          <button class="button" type="button" @click=${() => this.close()}>Cancel</button>
          <button class="button primary" ?disabled=${this.#isBusy}>${this.#isBusy ? 'Making…' : 'Make the token'}</button>
        </footer>
      </form>`
  }

  /** @param {Purpose} purpose */
  #questions(purpose) {
    const { asks, service, role } = purpose
    /** @type {[string, string][]} */
    const terms = [
      ['30', '30 days'],
      ['90', '90 days'],
      ['365', '1 year'],
      ...(isAdmin(service) ? [/** @type {[string, string]} */ (['0', 'Never'])] : []),
    ]
    return html`
      ${
        asks.includes('domain')
          ? html`<div class="field-pair">
            ${this.#text('domain', 'Domain', role ? 'Empty: all of your domains' : 'The domain that the name belongs to', 'example.com')}
            ${asks.includes('names') ? this.#text('names', 'Host names', 'Without the domain; several with commas', 'home') : nothing}
          </div>
          <datalist id="domain-names">${this.#domains.map((name) => html`<option value=${name}></option>`)}</datalist>`
          : nothing
      }
      <div class="field-pair">
        ${textField({
          id: 'token-name',
          label: 'Name of the token',
          value: this.#name,
          hint: 'The history shows it beside your name.',
          placeholder: 'Router at home',
          onInput: (value) => {
            this.#name = value
            this.update()
          },
        })}
        ${selectField({
          id: 'token-days',
          label: 'Valid for',
          value: this.#days,
          options: terms,
          onInput: (value) => {
            this.#days = value
          },
        })}
      </div>`
  }

  /** @param {'domain' | 'names'} field @param {string} label @param {string} hint @param {string} placeholder */
  #text(field, label, hint, placeholder) {
    return textField({
      id: `token-${field}`,
      label,
      value: this.#answers[field],
      hint,
      placeholder,
      list: field === 'domain' ? 'domain-names' : undefined,
      onInput: (value) => {
        this.#answers = { ...this.#answers, [field]: value.trim().toLowerCase() }
        this.update()
      },
    })
  }

  /** @param {string} key */
  #choose(key) {
    this.#purpose = key
    this.update()
  }

  /** @param {Purpose} purpose */
  #missing({ asks, role }) {
    if (asks.includes('domain') && !role && !this.#answers.domain) return 'Write the domain.'
    if (asks.includes('names') && splitList(this.#answers.names).length === 0)
      return 'Write at least one host name, such as home.'
    return this.#name.trim() ? undefined : 'Give the token a name, so that you know it again.'
  }

  /** @param {Event} event */
  #submit = async (event) => {
    event.preventDefault()
    const purpose = purposes[this.#purpose]
    if (!purpose || this.#isBusy) return
    const missing = this.#missing(purpose)
    this.#error = missing ? new Error(missing) : undefined
    this.#isBusy = !missing
    this.update()
    if (!missing) await this.#make(purpose)
  }

  /** @param {Purpose} purpose */
  async #make(purpose) {
    try {
      const json = toTokenInput(purpose, {
        name: this.#name.trim(),
        expiresIn: Number(this.#days) * day,
        answers: this.#answers,
      })
      const { token } = await send(purpose.service, 'post', '/api/tokens', { json })
      this.#made = { token, url: urlOf(purpose.service), answers: this.#answers }
      this.onMade()
    } catch (error) {
      this.#error = error
    }
    this.#isBusy = false
    this.update()
  }
}

customElements.define('token-dialog', TokenDialog)
