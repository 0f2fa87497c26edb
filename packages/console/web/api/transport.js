/** The two services: how a person knows them, and where the browser reaches them. */
const titles = { domains: 'Domains', files: 'Files' }

/** @type {Map<Api.ServiceName, string>} */
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

/** @returns {Api.ServiceName[]} */
export const offeredServices = () => [...urls.keys()]

/** @param {Api.ServiceName} service */
export const urlOf = (service) => urls.get(service) ?? ''

/** @param {Api.ServiceName} service */
export const titleOf = (service) => titles[service]

/**
 * A refused or failed request. `detail` is a sentence for people; `code` is the stable name (RFC 9457 body), or
 * `unreachable` where no answer came.
 */
export class ApiError extends Error {
  /**
   * @param {{ status: number, code: string, detail: string, requestId?: string,
   *   errors?: { path: string, message: string }[], retryAfter?: number, body?: Record<string, any> }} problem
   */
  constructor({ status, code, detail, requestId, errors, retryAfter, body = {} }) {
    super(detail)
    this.status = status
    this.code = code
    this.requestId = requestId
    this.errors = errors ?? []
    this.retryAfter = retryAfter
    /** More than these fields: of some codes. */
    this.body = body
  }
}

/** @param {Api.ServiceName} service */
export const unreachable = (service) =>
  new ApiError({
    status: 0,
    code: 'unreachable',
    detail: navigator.onLine
      ? `The ${service} service at ${urlOf(service)} did not answer.`
      : 'This computer is offline.',
  })

/** @param {number} status @param {unknown} body @param {(name: string) => string | null} header */
export function toApiError(status, body, header) {
  const problem = /** @type {Record<string, any>} */ (
    typeof body === 'object' && body !== null ? body : {}
  )
  return new ApiError({
    status,
    code: String(problem.code ?? `http_${status}`),
    detail: sentence(String(problem.detail ?? problem.title ?? `The service answered ${status}.`)),
    requestId: problem.request_id ?? header('x-request-id') ?? undefined,
    errors: Array.isArray(problem.errors) ? problem.errors : [],
    retryAfter: Number(header('retry-after')) || undefined,
    body: problem,
  })
}

/** @param {string} text */
const sentence = (text) => (/[.!?]$/.test(text) ? text : `${text}.`)

/** What to do about a failure, by its code, where the service's own sentence does not say so. @type {Record<string, string>} */
const advices = {
  unreachable: 'Nothing is lost: this page tries again by itself.',
  forbidden: 'Ask an admin for the right to do this.',
  history_gone: 'It is older than the history that this service keeps.',
  insufficient_storage: 'Delete files, or ask whoever runs the service for more room.',
  too_many_uploads: 'Finish or cancel other uploads of yours first.',
}

// Of a proxy, while the service behind it starts again.
const passing = [0, 502, 503, 504]

/**
 * What to show of any failure, and in how many seconds to try again where it passes by itself.
 * @param {unknown} error
 * @returns {{ code: string, detail: string, advice?: string, requestId?: string, retryAfter?: number,
 *   errors: { path: string, message: string }[] }}
 */
export function explain(error) {
  if (!(error instanceof ApiError)) {
    return { code: '', detail: error instanceof Error ? error.message : String(error), errors: [] }
  }
  const { code, message: detail, requestId, errors, status } = error
  const retryAfter = error.retryAfter ?? (passing.includes(status) ? 5 : undefined)
  return { code, detail, advice: advices[code], requestId, retryAfter, errors }
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
 * @returns {Promise<Answer>}
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
  /** @param {string} name */
  const header = (name) => response.headers.get(name)
  if (!response.ok) throw toApiError(response.status, body, header)
  return { status: response.status, body, header }
}

/** Those values that are given, as texts. @param {Record<string, string | number | undefined>} [values] */
const given = (values = {}) =>
  Object.entries(values).flatMap(([name, value]) =>
    value === undefined || value === ''
      ? []
      : [/** @type {[string, string]} */ ([name, `${value}`])],
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
