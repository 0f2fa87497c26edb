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

/** @param {string} service @param {string} url */
export const unreachable = (service, url) =>
  new ApiError({
    status: 0,
    code: 'unreachable',
    detail: navigator.onLine
      ? `The ${service} service at ${url} did not answer.`
      : 'This computer is offline.',
  })

/**
 * @param {number} status
 * @param {unknown} body
 * @param {(name: string) => string | null} header
 */
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

/**
 * What to show of any failure.
 * @param {unknown} error
 * @returns {{ detail: string, requestId?: string, errors: { path: string, message: string }[] }}
 */
export function describeError(error) {
  if (error instanceof ApiError) {
    return { detail: error.message, requestId: error.requestId, errors: error.errors }
  }
  return { detail: error instanceof Error ? error.message : String(error), errors: [] }
}
