import { session } from '../core/session.js'
import { ApiError } from './problem.js'
import { call } from './transport.js'

/**
 * @import { ServiceName } from '../core/services.js'
 * @import { Answer, CallOptions } from './transport.js'
 */

/**
 * One request with the caller's token. When the token is refused, the person logs in again over the present view, and
 * the request is sent once more: nothing that was typed is lost.
 * @param {ServiceName} service
 * @param {string} path
 * @param {CallOptions} [options]
 * @returns {Promise<Answer>}
 * @throws {ApiError}
 */
export async function request(service, path, options = {}) {
  for (;;) {
    try {
      return await call(service, path, withToken(service, options))
    } catch (error) {
      const isRefused = error instanceof ApiError && error.status === 401
      if (!isRefused || !(await session.renew(service))) throw error
    }
  }
}

/** @param {ServiceName} service @param {CallOptions} options */
const withToken = (service, options) => ({
  ...options,
  headers: { ...options.headers, authorization: `Bearer ${session.loginOf(service)?.token ?? ''}` },
})
