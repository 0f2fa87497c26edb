import { session } from '../core/session.js'
import { ApiError } from './problem.js'
import { call } from './transport.js'

/**
 * @import { ServiceName } from '../core/services.js'
 * @import { Answer, CallOptions } from './transport.js'
 * @import { Body, Method, Options, PathOf } from './schema.d.ts'
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
export const request = (service, path, options = {}) =>
  withLogin(service, (authorization) =>
    call(service, path, { ...options, headers: { ...options.headers, authorization } }),
  )

/**
 * Sends something with the caller's `Authorization`, again after each new login.
 * @template Result
 * @param {ServiceName} service
 * @param {(authorization: string) => Promise<Result>} send
 */
export async function withLogin(service, send) {
  for (;;) {
    try {
      return await send(`Bearer ${session.loginOf(service)?.token ?? ''}`)
    } catch (error) {
      const isRefused = error instanceof ApiError && error.status === 401
      if (!isRefused || !(await session.renew(service))) throw error
    }
  }
}

/**
 * The body of a GET, by the service's own description of its API.
 * @template {ServiceName} Service
 * @template {PathOf<Service>} Path
 * @param {Service} service
 * @param {Path} path
 * @param {Options<Path>} [options]
 * @returns {Promise<Body<Service, Path, 'get'>>}
 */
export const get = (service, path, options) => send(service, 'get', path, options)

/**
 * @template {ServiceName} Service
 * @template {Method} Verb
 * @template {PathOf<Service>} Path
 * @param {Service} service
 * @param {Verb} method
 * @param {Path} path
 * @param {Options<Path>} [options]
 * @returns {Promise<Body<Service, Path, Verb>>}
 */
export async function send(service, method, path, options = {}) {
  const { params, ...rest } = /** @type {Options<string>} */ (options)
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodePath(String(params?.[name])))
  const { body } = await request(service, filled, { ...rest, method: method.toUpperCase() })
  return /** @type {Body<Service, Path, Verb>} */ (body)
}

/** Each segment by itself: slashes stay. @param {string} path */
export const encodePath = (path) => path.split('/').map(encodeURIComponent).join('/')
