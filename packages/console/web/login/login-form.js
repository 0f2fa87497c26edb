import { session } from '../api/client.js'
import { ApiError, call, offeredServices, titleOf, urlOf } from '../api/transport.js'
import { navigate } from '../core/router.js'
import { Attempt, focusOn, html, nothing, View } from '../core/view.js'
import { formField } from '../ui/form.js'
import { empty, errorNotice, notice } from '../ui/states.js'

/**
 * Asks for a name and a password and logs in at all `services` at once. One that accepts is enough; if none does, the
 * first refusal is shown.
 */
class LoginForm extends View {
  /** @type {Api.ServiceName[]} */
  services = offeredServices()
  username = ''
  #form = { username: '', password: '' }
  #attempt = new Attempt(() => this.update())
  /** @type {(Api.LoginMethods & { service: Api.ServiceName })[]} */
  #methods = []
  #isShown = false

  opened() {
    this.#form.username = this.username
    this.#attempt.error = session.refusal
    session.refusal = undefined
    void readMethods(this.services).then((methods) => {
      this.#methods = methods
      this.update()
    })
  }

  /** Only an `autofocus` that the page is loaded with counts. */
  rendered() {
    if (this.#isShown) return
    this.#isShown = true
    focusOn(this, '[autofocus]')
  }

  template() {
    const signsOn = this.#methods.filter(({ oidc }) => oidc)
    const hasPassword = this.#methods.length === 0 || this.#methods.some(({ password }) => password)
    const signOn = () => this.#attempt.run(() => beginSingleSignOn(signsOn.map(({ service }) => service)))
    const provider = signsOn[0]?.oidc?.name
    return html`
      ${provider ? html`<button class="button ${hasPassword ? '' : 'primary'} wide" @click=${signOn}>Continue with ${provider}</button>` : nothing}
      ${hasPassword ? this.#fields() : errorNotice(this.#attempt.error)}`
  }

  #fields() {
    const isNamed = this.username !== ''
    return html`
      <form class="login-form" novalidate @submit=${this.#submit}>
        ${formField(this.#form, 'username', 'User name', { autocomplete: 'username', isRequired: true, isFocused: !isNamed })}
        ${formField(this.#form, 'password', 'Password', { type: 'password', autocomplete: 'current-password', isRequired: true, isFocused: isNamed })}
        ${errorNotice(this.#attempt.error)}
        <button class="button primary wide" ?disabled=${this.#attempt.isBusy}>
          ${this.#attempt.isBusy ? 'Logging in…' : 'Log in'}
        </button>
        ${this.services.length < offeredServices().length ? html`<p class="note">For: ${this.services.map(titleOf)}</p>` : nothing}
      </form>`
  }

  /** @param {Event} event */
  #submit = async (event) => {
    event.preventDefault()
    if (this.#attempt.isBusy) return
    const isDone = await this.#attempt.run(async () => {
      const { username, password } = this.#form
      if (!username || !password) throw new Error('Enter your user name and your password.')
      const refusals = await session.logIn(this.services, username, password)
      const isWaited = this.services.some((service) => session.renewing.includes(service))
      if (refusals.length < this.services.length && !isWaited) return
      // A wrong password says more than a service that does not answer.
      throw refusals.find((each) => each instanceof ApiError && each.status > 0) ?? refusals[0]
    })
    if (!isDone) focusOn(this, this.#form.username ? '#field-password' : '#field-username')
  }
}

customElements.define('login-form', LoginForm)

const openInvite = async () => (await import('./account-dialogs.js')).openInviteDialog()

/** The whole page while nobody is logged in. */
export const loginPage = () => html`
  <main class="login-page" id="main">
    <div class="login-card">
      <img class="login-mark" src=${new URL('../favicon.svg', import.meta.url).href} alt="" width="40" height="40" />
      <h1>Domains and files</h1>
      ${
        offeredServices().length === 0
          ? notice('No service is configured: set DOMAIN_SERVICE_URL or STATIC_SERVICE_URL.', 'warn')
          : html`
            <p class="muted">Log in with the account of your services.</p>
            <login-form></login-form>
            <p class="note">
              Your password goes straight to
              ${offeredServices().map((service, at) => html`${at > 0 ? ' and ' : nothing}<code>${urlOf(service)}</code>`)}.
              This page keeps no password; closing the tab logs you out.
            </p>
            <button class="link-button" @click=${openInvite}>I have an invite</button>`
      }
    </div>
  </main>`

/** In place of a view whose service did not accept the login. @param {Api.ServiceName} service */
export const loginPanel = (service) => html`
  <div class="view narrow">
    ${empty('lock', `Log in to ${titleOf(service)}`, 'Your login was not accepted there. Use another account for this service.')}
    <login-form class="panel" .services=${[service]}></login-form>
  </div>`

/**
 * Logging in at an OpenID provider: the browser goes there by way of each service, one after the other, and comes back
 * with a code that only this tab can redeem.
 */

const storedName = 'single-sign-on'

/** How each of these services lets people log in; a service that does not answer is left out. @param {Api.ServiceName[]} services */
async function readMethods(services) {
  const found = services.map((service) =>
    call(service, '/api/auth/methods').then(
      ({ body }) => ({ service, .../** @type {Api.LoginMethods} */ (body) }),
      () => [],
    ),
  )
  return (await Promise.all(found)).flat()
}

/** Leaves the page for the provider of the first of these services. @param {Api.ServiceName[]} services @param {string} hash to come back to */
async function beginSingleSignOn([service, ...next], hash = location.hash) {
  if (!service) return
  const verifier = toBase64(crypto.getRandomValues(new Uint8Array(32)))
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))
  sessionStorage.setItem(storedName, JSON.stringify({ service, next, verifier, hash }))
  const query = new URLSearchParams({
    return_to: `${location.origin}/`,
    challenge: toBase64(new Uint8Array(digest)),
  })
  location.assign(`${urlOf(service)}/api/auth/oidc/login?${query}`)
}

/** After the way back: logs in with the code of the address, and goes on with the next service. */
export async function finishSingleSignOn() {
  const code = new URLSearchParams(location.search).get('code')
  const stored = sessionStorage.getItem(storedName)
  if (!code || !stored) return
  sessionStorage.removeItem(storedName)
  const { service, next, verifier, hash } = JSON.parse(stored)
  navigate(`${location.pathname}${hash}`, { replace: true })
  try {
    const json = { code, verifier }
    const { body } = await call(service, '/api/auth/oidc/token', { method: 'POST', json })
    session.accept(service, /** @type {Api.LoginAnswer} */ (body))
  } catch (error) {
    // The login page says so where nobody is logged in; else that service asks for a login.
    session.refusal = error
  }
  await beginSingleSignOn(next, hash)
}

/** @param {Uint8Array} bytes */
const toBase64 = (bytes) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '')
