import { ApiError, call } from './transport.js'

/** @import { CallOptions } from './transport.js' */

/** @typedef {{ token: string, username: string, role: string, domains?: string[], folders?: string[], writes?: string, expiresAt: number }} Login `domains`, `folders`: only these */

/**
 * Who is logged in where. Tokens are in `sessionStorage` too: they outlive a reload, and end with the tab.
 * Dispatches `change` after a login or logout, and `renew` when a service wants a new login.
 */
class Session extends EventTarget {
  /** @type {Map<Api.ServiceName, Login>} */
  #logins = new Map(readStored())
  /** @type {Map<Api.ServiceName, PromiseWithResolvers<boolean>>} */
  #renewals = new Map()

  /** @type {unknown} why single sign-on failed */
  refusal

  /** @param {Api.ServiceName} service */
  loginOf(service) {
    return this.#logins.get(service)
  }

  get isEmpty() {
    return this.#logins.size === 0
  }

  /**
   * Logs in at each service at once and announces the outcome once, when all have answered.
   * @param {readonly Api.ServiceName[]} services
   * @param {string} username
   * @param {string} password
   * @returns {Promise<unknown[]>} why services refused; as many as `services`: none accepted
   */
  async logIn(services, username, password) {
    const outcomes = await Promise.allSettled(
      services.map(async (service) => {
        const options = { method: 'POST', json: { username, password } }
        const { body } = await call(service, '/api/auth/login', options)
        this.accept(service, /** @type {Api.LoginAnswer} */ (body))
      }),
    )
    const refusals = outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
    if (refusals.length < services.length) this.dispatchEvent(new Event('change'))
    return refusals
  }

  /** @param {Api.ServiceName} service @param {Api.LoginAnswer} answer of a login */
  accept(service, answer) {
    this.#logins.set(service, {
      token: answer.access_token,
      ...answer.user,
      expiresAt: Date.now() + answer.expires_in * 1000,
    })
    sessionStorage.setItem(storedName, JSON.stringify([...this.#logins]))
    this.settle(service, true)
  }

  /**
   * Ends the logins here at once, and at each service that can be reached.
   * @param {'true'} [everywhere] all logins of this person, also in other browsers: here once the services have done so
   * @throws {ApiError} only where it is to be everywhere
   */
  async logOut(everywhere) {
    for (const [service, { token }] of this.#logins) {
      const options = { method: 'POST', headers: { authorization: `Bearer ${token}` } }
      const ending = call(service, '/api/auth/logout', { ...options, query: { everywhere } })
      // It ends by itself; where services share their users, the first has ended it at the second.
      const ended = ending.catch((error) => {
        if (everywhere && error.status !== 401) throw error
      })
      if (everywhere) await ended
    }
    this.#logins.clear()
    sessionStorage.clear() // Drafts and unfinished uploads too: nothing of that person stays.
    for (const service of this.renewing) this.settle(service)
    this.dispatchEvent(new Event('change'))
  }

  /**
   * Asks for a new login over the present view, once however many requests wait for it.
   * @param {Api.ServiceName} service
   * @param {string} refused the token that has ended; there may be a newer one by now
   * @returns {Promise<boolean>} false: the person gave up
   */
  async renew(service, refused) {
    if ((this.loginOf(service)?.token ?? refused) !== refused) return true
    const running = this.#renewals.get(service)
    if (running) return running.promise
    /** @type {PromiseWithResolvers<boolean>} */
    const renewal = Promise.withResolvers()
    this.#renewals.set(service, renewal)
    this.dispatchEvent(new Event('renew'))
    return renewal.promise
  }

  /** @returns {Api.ServiceName[]} the services that wait for a new login */
  get renewing() {
    return [...this.#renewals.keys()]
  }

  /** Ends the waiting for a login. @param {Api.ServiceName} service @param {boolean} [isRenewed] */
  settle(service, isRenewed = false) {
    this.#renewals.get(service)?.resolve(isRenewed)
    this.#renewals.delete(service)
  }
}

const storedName = 'logins'

/** Where `sessionStorage` has changes that are not applied yet. */
export const draftsName = 'drafts'

/** @returns {[Api.ServiceName, Login][]} */
function readStored() {
  /** @type {[Api.ServiceName, Login][]} */
  const stored = JSON.parse(sessionStorage.getItem(storedName) ?? '[]')
  return stored.filter(([, { expiresAt }]) => expiresAt > Date.now())
}

export const session = new Session()

/** @param {Api.ServiceName} service */
export const mayEdit = (service) => (session.loginOf(service)?.role ?? 'viewer') !== 'viewer'

/** Whether this person's writes of zones wait for another one's approval. */
export const mustPropose = () => session.loginOf('domains')?.writes === 'propose'

/** @param {Api.ServiceName} service */
export const isAdmin = (service) => session.loginOf(service)?.role === 'admin'

/** Whether this person is an admin without limits. @param {Api.ServiceName} service */
export function managesUsers(service) {
  const { domains, folders, writes } = session.loginOf(service) ?? {}
  return isAdmin(service) && !domains && !folders && !writes
}

/**
 * One request with the caller's token. When the token is refused, the person logs in again over the present view, and
 * the request is sent once more: nothing that was typed is lost.
 * @param {Api.ServiceName} service
 * @param {string} path
 * @param {CallOptions} [options]
 * @throws {ApiError}
 */
export const request = (service, path, options = {}) =>
  withLogin(service, (authorization) =>
    call(service, path, { ...options, headers: { ...options.headers, authorization } }),
  )

/**
 * Sends something with the caller's `Authorization`, again after each new login.
 * @template Result
 * @param {Api.ServiceName} service
 * @param {(authorization: string) => Promise<Result>} send
 */
export async function withLogin(service, send) {
  for (;;) {
    const { token = '' } = session.loginOf(service) ?? {}
    try {
      return await send(`Bearer ${token}`)
    } catch (error) {
      const isRefused = error instanceof ApiError && error.status === 401 && error.code !== 'invalid_credentials'
      if (!isRefused) throw error
      if (!(await session.renew(service, token))) throw Object.assign(error, { message: 'You are not logged in.' })
    }
  }
}

/**
 * Something that the registrar says, and when it was asked. `fresh`: not from the service's cache.
 * @param {string} path
 * @param {CallOptions & { fresh?: boolean }} options
 */
export async function readRegistrar(path, { fresh = false, ...options }) {
  const headers = fresh ? { 'cache-control': 'no-cache' } : {}
  const answer = await request('domains', path, { ...options, headers })
  return { ...answer, readAt: Date.now() - Number(answer.header('age') ?? 0) * 1000 }
}

/** The body of a GET. @type {Api.Get} */
export const get = (service, path, options) => send(service, 'get', path, options)

/** One request, by the service's own description of its API. @type {Api.Send} */
export const send = async (service, method, path, options) => {
  const { params, ...rest } = /** @type {Api.Options<string>} */ (options ?? {})
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodePath(String(params?.[name])))
  const { body } = await request(service, filled, { ...rest, method: method.toUpperCase() })
  return /** @type {any} */ (body)
}

/** Slashes stay. @param {string} path @throws {Error} where it has dots that a browser resolves */
export function encodePath(path) {
  if (/(^|\/)\.\.?(\/|$)/.test(path)) throw Error(`This is no path: ${path}`)
  return path.split('/').map(encodeURIComponent).join('/')
}
