/** Where the browser reaches the two services. @type {Map<Api.ServiceName, string>} */
const urls = new Map()

/** What the server says of this page: what each view imports, and limits of uploads. */
export const config = {
  /** @type {Record<string, string[]>} */
  modules: {},
  upload_part_bytes: Infinity,
  max_upload_bytes: Infinity,
}

/** Reads /config.json. A service that is not configured is not offered. */
export async function loadServices() {
  const response = await fetch('config.json')
  if (!response.ok) throw new Error('The configuration of this page could not be loaded.')
  const { domain_service_url: domains, static_service_url: files, ...rest } = await response.json()
  Object.assign(config, rest)
  if (domains) urls.set('domains', domains)
  if (files) urls.set('files', files)
}

export const offeredServices = () => [...urls.keys()]

/** @param {Api.ServiceName} service */
export const urlOf = (service) => urls.get(service) ?? ''

/** How a person knows a service. @param {Api.ServiceName} service */
export const titleOf = (service) => (service === 'domains' ? 'Domains' : 'Files')

/** What to do about a failure, by its code, where the service's own sentence does not say so. @type {Record<string, string>} */
const advices = {
  unreachable: 'What you typed is not lost.',
  forbidden: 'Ask an admin for the right to do this.',
  history_gone: 'It is older than the history that this service keeps.',
  insufficient_storage: 'Delete files, or ask whoever runs the service for more room.',
  too_many_uploads: 'Finish or cancel other uploads of yours first.',
}

// The line, or a proxy while the service behind it starts again.
const passing = [0, 408, 502, 503, 504]

/**
 * A refused or failed request. `message` is a sentence for people; `code` is the stable name (RFC 9457 body), or
 * `unreachable` where no answer came.
 */
export class ApiError extends Error {
  /**
   * @param {number} status 0: no answer came
   * @param {any} body of some codes with more fields than these
   * @param {(name: string) => string | null} [header]
   */
  constructor(status, body, header = () => null) {
    const problem = body ?? {}
    const detail = String(problem.detail ?? problem.title ?? `The service answered ${status}.`)
    super(/[.!?]$/.test(detail) ? detail : `${detail}.`)
    this.status = status
    this.body = problem
    this.code = String(problem.code ?? `http_${status}`)
    this.advice = advices[this.code]
    /** @type {string | undefined} */
    this.requestId = problem.request_id ?? header('x-request-id') ?? undefined
    /** @type {{ path: string, message: string }[]} */
    this.errors = Array.isArray(problem.errors) ? problem.errors : []
    /** In how many seconds to try again, where it passes by itself. */
    this.retryAfter = Number(header('retry-after')) || (passing.includes(status) ? 5 : undefined)
  }
}

/** @param {Api.ServiceName} service */
export function unreachable(service) {
  const detail = `The ${service} service at ${urlOf(service)} did not answer.`
  const code = 'unreachable'
  return new ApiError(0, { code, detail: navigator.onLine ? detail : 'This computer is offline.' })
}

/** What to show of any failure. @param {unknown} error */
export function explain(error) {
  if (error instanceof ApiError) return error
  return new ApiError(400, { code: '', detail: error instanceof Error ? error.message : error })
}

/**
 * @typedef {{ method?: string, query?: Record<string, string | number | undefined>, json?: unknown, body?: BodyInit,
 *   headers?: Record<string, string | undefined>, signal?: AbortSignal, asBlob?: boolean }} CallOptions
 * @typedef {{ status: number, body: unknown, header: (name: string) => string | null }} Answer
 */

/**
 * One request to a service, without a token.
 * @param {Api.ServiceName} service
 * @param {string} path
 * @param {CallOptions} [options]
 * @throws {ApiError} for every status from 400, and when no answer comes
 */
export async function call(service, path, options = {}) {
  const { method = 'GET', json, signal } = options
  const type = json === undefined ? undefined : 'application/json'
  const headers = given({ 'content-type': type, ...options.headers })
  /** @param {unknown} error @returns {never} also where the answer is cut */
  const fail = (error) => {
    throw signal?.aborted ? error : unreachable(service)
  }
  const query = new URLSearchParams(given(options.query)).toString()
  const response = await fetch(`${urlOf(service)}${path}${query && `?${query}`}`, {
    method,
    headers,
    body: json === undefined ? options.body : JSON.stringify(json),
    signal,
  }).catch(fail)
  const isBlob = options.asBlob && response.ok
  const body = await (isBlob ? response.blob() : readBody(response)).catch(fail)
  const header = response.headers.get.bind(response.headers)
  if (!response.ok) throw new ApiError(response.status, body, header)
  return { status: response.status, body, header }
}

/** Those values that are given, as texts. @param {Record<string, string | number | undefined>} [values] */
const given = (values = {}) =>
  Object.entries(values).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [/** @type {[string, string]} */ ([name, `${value}`])],
  )

/** @param {Response} response @returns {Promise<unknown>} */
async function readBody(response) {
  const text = await response.text()
  try {
    return response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : text
  } catch {
    return '' // A proxy that calls anything JSON.
  }
}
