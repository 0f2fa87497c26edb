/** The body of an `application/problem+json` response (RFC 9457), as both services send it. */
export interface Problem {
  status: number
  code: string
  detail: string
  request_id?: string
  errors?: { path: string; message: string }[]
  /** With the code `contents_missing`: digests. */
  missing?: unknown
}

/** An error response. `message` is the problem's `detail`, then the validation faults that the detail does not name. */
export class ProblemError extends Error {
  readonly status: number
  /** The stable error code; see docs/errors.md. */
  readonly code: string
  readonly requestId: string | undefined
  /** The faults of a request that failed validation, each with its JSON Pointer; else empty. */
  readonly errors: { path: string; message: string }[]

  /** Digests in a manifest whose contents are not stored, up to 1,000; else empty. */
  readonly missing: string[]

  /** Seconds of `Retry-After`, if the response has it. */
  readonly retryAfter: number | undefined

  constructor(problem: Problem, headers?: { get(name: string): string | null }) {
    const faults = (problem.errors ?? [])
      .map(({ path, message }) => `${path}: ${message}`)
      .filter((fault) => !problem.detail.includes(fault))
    super([problem.detail, ...faults].join('\n  '))
    this.name = 'ProblemError'
    this.status = problem.status
    this.code = problem.code
    this.requestId = problem.request_id
    this.errors = problem.errors ?? []
    const retryAfter = headers?.get('retry-after')
    this.retryAfter = retryAfter ? Number(retryAfter) : undefined
    this.missing = Array.isArray(problem.missing) ? problem.missing.map(String) : []
  }

  /** Reads the error from a response. A body that is not a problem is described by its status. */
  static async from(response: Response): Promise<ProblemError> {
    const body: unknown = await response.json().catch(() => undefined)
    return new ProblemError(isProblem(body) ? body : describeStatus(response), response.headers)
  }
}

const isProblem = (body: unknown): body is Problem =>
  typeof body === 'object' && body !== null && 'code' in body && 'detail' in body

const describeStatus = ({ status, statusText }: Response): Problem => ({
  status,
  code: 'unexpected_response',
  detail: `The server responded with ${status} ${statusText}`.trim(),
})
