import { call } from '../api/transport.js'

/**
 * @import { ServiceName } from './services.js'
 * @import { LoginAnswer } from '../api/schema.d.ts'
 * @typedef {{ token: string, username: string, role: string, expiresAt: number }} Login
 */

/**
 * Who is logged in where. Tokens are in `sessionStorage` too: they outlive a reload, and end with the tab.
 * Dispatches `change` after a login or logout, and `renew` when a service wants a new login.
 */
class Session extends EventTarget {
  /** @type {Map<ServiceName, Login>} */
  #logins = new Map(readStored())
  /** @type {Map<ServiceName, PromiseWithResolvers<boolean>>} */
  #renewals = new Map()

  /** @type {unknown} why single sign-on failed */
  refusal

  /** @param {ServiceName} service */
  loginOf(service) {
    return this.#logins.get(service)
  }

  get isEmpty() {
    return this.#logins.size === 0
  }

  /**
   * Logs in at each service at once and announces the outcome once, when all have answered.
   * @param {readonly ServiceName[]} services
   * @param {string} username
   * @param {string} password
   * @returns {Promise<unknown[]>} why services refused; as many as `services`: none accepted
   */
  async logIn(services, username, password) {
    const outcomes = await Promise.allSettled(
      services.map((service) => this.#logInAt(service, username, password)),
    )
    const refusals = outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
    if (refusals.length < services.length) this.dispatchEvent(new Event('change'))
    return refusals
  }

  /** @param {ServiceName} service @param {string} username @param {string} password */
  async #logInAt(service, username, password) {
    const { body } = await call(service, '/api/auth/login', {
      method: 'POST',
      json: { username, password },
    })
    this.accept(service, /** @type {LoginAnswer} */ (body))
  }

  /** @param {ServiceName} service @param {LoginAnswer} answer of a login */
  accept(service, answer) {
    this.#logins.set(service, {
      token: answer.access_token,
      username: answer.user.username,
      role: answer.user.role,
      expiresAt: Date.now() + answer.expires_in * 1000,
    })
    this.#store()
    this.#settle(service, true)
  }

  #store() {
    sessionStorage.setItem(storedName, JSON.stringify([...this.#logins]))
  }

  /** Ends the logins here at once, and at each service that can be reached. */
  logOut() {
    for (const [service, { token }] of this.#logins) {
      const headers = { authorization: `Bearer ${token}` }
      call(service, '/api/auth/logout', { method: 'POST', headers }).catch(() => {}) // It ends by itself.
    }
    this.#logins.clear()
    sessionStorage.removeItem(storedName)
    for (const service of [...this.#renewals.keys()]) this.#settle(service, false)
    this.dispatchEvent(new Event('change'))
  }

  /**
   * Asks for a new login over the present view, once however many requests wait for it.
   * @param {ServiceName} service
   * @returns {Promise<boolean>} false: the person gave up
   */
  renew(service) {
    const running = this.#renewals.get(service)
    if (running) return running.promise
    /** @type {PromiseWithResolvers<boolean>} */
    const renewal = Promise.withResolvers()
    this.#renewals.set(service, renewal)
    this.dispatchEvent(new Event('renew'))
    return renewal.promise
  }

  /** @returns {ServiceName[]} the services that wait for a new login */
  get renewing() {
    return [...this.#renewals.keys()]
  }

  /** @param {ServiceName} service */
  giveUp(service) {
    this.#settle(service, false)
  }

  /** @param {ServiceName} service @param {boolean} isRenewed */
  #settle(service, isRenewed) {
    this.#renewals.get(service)?.resolve(isRenewed)
    this.#renewals.delete(service)
  }
}

const storedName = 'logins'

/** Where `sessionStorage` has changes that are not applied yet. */
export const draftsName = 'drafts'

/** @returns {[ServiceName, Login][]} */
function readStored() {
  /** @type {[ServiceName, Login][]} */
  const stored = JSON.parse(sessionStorage.getItem(storedName) ?? '[]')
  return stored.filter(([, { expiresAt }]) => expiresAt > Date.now())
}

export const session = new Session()

/** @param {ServiceName} service */
export const mayEdit = (service) => (session.loginOf(service)?.role ?? 'viewer') !== 'viewer'

/** @param {ServiceName} service */
export const isAdmin = (service) => session.loginOf(service)?.role === 'admin'
