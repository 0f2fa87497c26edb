import { ApiError } from '../api/problem.js'
import { html, nothing } from '../core/html.js'
import { offeredServices, titleOf } from '../core/services.js'
import { session } from '../core/session.js'
import { View } from '../core/view.js'
import { textField } from '../ui/form.js'
import { errorNotice } from '../ui/states.js'
import { beginSingleSignOn, readMethods } from './single-sign-on.js'

/**
 * @import { LoginMethods } from '../api/schema.d.ts'
 * @import { ServiceName } from '../core/services.js'
 */

/**
 * Asks for a name and a password and logs in at all `services` at once. One that accepts is enough; if none does, the
 * first refusal is shown.
 */
class LoginForm extends View {
  /** @type {ServiceName[]} */
  services = offeredServices()
  username = ''
  #password = ''
  #isBusy = false
  /** @type {unknown} */
  #error

  /** @type {{ service: ServiceName, methods: LoginMethods }[]} */
  #methods = []

  opened() {
    this.#error = session.refusal
    session.refusal = undefined
    void readMethods().then((methods) => {
      this.#methods = methods.filter(({ service }) => this.services.includes(service))
      this.update()
    })
  }

  template() {
    const signsOn = this.#methods.filter(({ methods }) => methods.oidc)
    const hasPassword =
      this.#methods.length === 0 || this.#methods.some(({ methods }) => methods.password)
    return html`
      ${
        signsOn[0]?.methods.oidc
          ? html`<button class="button ${hasPassword ? '' : 'primary'} wide" @click=${() => this.#signOn(signsOn.map(({ service }) => service))}>
              Continue with ${signsOn[0].methods.oidc.name}
            </button>`
          : nothing
      }
      ${hasPassword ? this.#form() : errorNotice(this.#error)}`
  }

  /** @param {ServiceName[]} services */
  async #signOn(services) {
    try {
      await beginSingleSignOn(services)
    } catch (error) {
      this.#error = error
      this.update()
    }
  }

  #form() {
    return html`
      <form class="login-form" novalidate @submit=${this.#submit}>
        ${textField({
          id: 'username',
          label: 'User name',
          value: this.username,
          autocomplete: 'username',
          isRequired: true,
          isFocused: this.username === '',
          onInput: (value) => {
            this.username = value
          },
        })}
        ${textField({
          id: 'password',
          label: 'Password',
          type: 'password',
          value: this.#password,
          autocomplete: 'current-password',
          isRequired: true,
          isFocused: this.username !== '',
          onInput: (value) => {
            this.#password = value
          },
        })}
        ${errorNotice(this.#error)}
        <button class="button primary wide" ?disabled=${this.#isBusy}>
          ${this.#isBusy ? 'Logging in…' : 'Log in'}
        </button>
        ${
          this.services.length === 1 && offeredServices().length > 1
            ? html`<p class="note">For: ${titleOf(this.services[0] ?? 'files')}</p>`
            : nothing
        }
      </form>`
  }

  /** @param {Event} event */
  #submit = async (event) => {
    event.preventDefault()
    if (this.#isBusy) return
    this.#error = undefined
    if (!this.username || !this.#password) {
      this.#error = new Error('Enter your user name and your password.')
      return this.update()
    }
    this.#isBusy = true
    this.update()
    const refusals = await session.logIn(this.services, this.username, this.#password)
    this.#isBusy = false
    if (refusals.length === this.services.length) {
      // A wrong password says more than a service that does not answer.
      this.#error =
        refusals.find((each) => each instanceof ApiError && each.status > 0) ?? refusals[0]
    }
    this.update()
    if (this.#error) this.querySelector('input')?.focus()
  }
}

customElements.define('login-form', LoginForm)
