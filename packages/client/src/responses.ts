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
    const { detail, status, code, request_id, errors = [], missing } = problem
    const faults = errors.map(({ path, message }) => `${path}: ${message}`)
    super([detail, ...faults.filter((fault) => !detail.includes(fault))].join('\n  '))
    this.name = 'ProblemError'
    this.status = status
    this.code = code
    this.requestId = request_id
    this.errors = errors
    this.missing = Array.isArray(missing) ? missing.map(String) : []
    const retryAfter = headers?.get('retry-after')
    this.retryAfter = retryAfter ? Number(retryAfter) : undefined
  }

  /** The error of a response. A body that is not a problem, as of a proxy, is described by the status. */
  static of(body: unknown, { status, statusText, headers }: Response): ProblemError {
    if (typeof body === 'object' && body !== null && 'code' in body && 'detail' in body)
      return new ProblemError(body as Problem, headers) // As the services send it.
    const detail = `The server responded with ${status} ${statusText}`.trim()
    return new ProblemError({ status, code: 'unexpected_response', detail }, headers)
  }

  static async from(response: Response): Promise<ProblemError> {
    return ProblemError.of(await response.json().catch(() => undefined), response)
  }
}

/** The data of an openapi-fetch result. @throws {ProblemError} for an error response. */
export async function unwrap<Data>(
  result: Promise<{ data?: Data; error?: unknown; response: Response }>,
): Promise<Data> {
  const { data, error, response } = await result
  if (!response.ok) throw ProblemError.of(error, response)
  // A 204 has no body: its type is undefined.
  return data as Data
}

/**
 * The pages of a list with cursor pagination (`next`): concurrent inserts and deletes neither skip nor repeat other rows.
 * `read` gets what its query must have: `pages((position) => unwrap(files.api.GET('/api/files', { params: { query: position } })))`.
 */
export async function* pages<Page extends { next: string | null }>(
  read: (position: { after?: string }) => Promise<Page>,
): AsyncGenerator<Page> {
  for (let position = {}; ; ) {
    const page = await read(position)
    yield page
    if (!page.next) return
    position = { after: page.next }
  }
}
