import { call } from '../api/transport.js'
import { offeredServices, urlOf } from '../core/services.js'
import { session } from '../core/session.js'

/**
 * Logging in at an OpenID provider: the browser goes there by way of each service, one after the other, and comes back
 * with a code that only this tab can redeem.
 * @import { ServiceName } from '../core/services.js'
 * @import { LoginAnswer, LoginMethods } from '../api/schema.d.ts'
 */

const storedName = 'single-sign-on'

/** How each offered service lets people log in; a service that does not answer is left out. */
export async function readMethods() {
  const found = await Promise.allSettled(
    offeredServices().map(async (service) => {
      const { body } = await call(service, '/api/auth/methods')
      return { service, methods: /** @type {LoginMethods} */ (body) }
    }),
  )
  return found.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
}

/** Leaves the page for the provider of the first of these services. @param {ServiceName[]} services @param {string} hash to come back to */
export async function beginSingleSignOn([service, ...next], hash = location.hash) {
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
  history.replaceState(null, '', `${location.pathname}${hash}`)
  try {
    const json = { code, verifier }
    const { body } = await call(service, '/api/auth/oidc/token', { method: 'POST', json })
    session.accept(service, /** @type {LoginAnswer} */ (body))
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
