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
