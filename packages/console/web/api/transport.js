import { titleOf, urlOf } from '../core/services.js'
import { toApiError, unreachable } from './problem.js'

/**
 * @import { ServiceName } from '../core/services.js'
 * @typedef {{ method?: string, query?: Record<string, string | number | undefined>, json?: unknown, body?: BodyInit,
 *   headers?: Record<string, string | undefined>, signal?: AbortSignal, asBlob?: boolean }} CallOptions
 * @typedef {{ status: number, body: unknown, header: (name: string) => string | null }} Answer
 */

/**
 * One request to a service, without a token.
 * @param {ServiceName} service
 * @param {string} path
 * @param {CallOptions} [options]
 * @returns {Promise<Answer>}
 * @throws {ApiError} for every status from 400, and when no answer comes
 */
export async function call(service, path, options = {}) {
  const { method = 'GET', json, signal } = options
  const headers = new Headers()
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    if (value !== undefined) headers.set(name, value)
  }
  if (json !== undefined && !headers.has('content-type')) {
    headers.set('content-type', 'application/json')
  }
  const response = await fetch(toUrl(service, path, options.query), {
    method,
    headers,
    body: json === undefined ? options.body : JSON.stringify(json),
    signal,
  }).catch((error) => {
    throw signal?.aborted ? error : unreachable(titleOf(service).toLowerCase(), urlOf(service))
  })
  const body = options.asBlob && response.ok ? await response.blob() : await readBody(response)
  /** @param {string} name */
  const header = (name) => response.headers.get(name)
  if (!response.ok) throw toApiError(response.status, body, header)
  return { status: response.status, body, header }
}

/**
 * @param {ServiceName} service
 * @param {string} path
 * @param {Record<string, string | number | undefined>} [query]
 */
export function toUrl(service, path, query = {}) {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') search.set(name, String(value))
  }
  return `${urlOf(service)}${path}${search.size > 0 ? `?${search}` : ''}`
}

/** @param {Response} response */
async function readBody(response) {
  const text = await response.text()
  if (!response.headers.get('content-type')?.includes('json')) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
