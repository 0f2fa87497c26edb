// Apart from the schema of their responses: worker threads throw these, and to load zod takes a third of their start.

/** One fault of the input: a JSON Pointer into the body, or `/query/<name>`, `/path/<name>`. */
export interface Fault {
  path: string
  message: string
}

interface Extras {
  headers?: Record<string, string> | undefined
  /** Seconds until it may succeed, for the header Retry-After. */
  retryAfter?: number
  errors?: Fault[] | undefined
  cause?: unknown
  /** More members of the problem (RFC 9457, 3.2), in snake_case. */
  members?: Record<string, unknown> | undefined
}

/** An error for the client: status, stable code, and a `detail` that says what to do. */
export class HttpError extends Error {
  readonly status: number
  readonly code: string
  readonly headers: Record<string, string>
  readonly errors: Fault[] | undefined
  readonly members: Record<string, unknown> | undefined

  constructor(status: number, code: string, detail: string, extras: Extras = {}) {
    const { headers = {}, retryAfter, errors, cause, members } = extras
    super(detail, { cause })
    this.status = status
    this.code = code
    this.headers = retryAfter === undefined ? headers : { ...headers, 'retry-after': String(retryAfter) }
    this.errors = errors
    this.members = members
  }
}

/** One 400 listing all validation errors, capped at 1,000. */
export const validationFailed = (errors: Fault[]) =>
  new HttpError(400, 'validation_failed', summarize(errors), {
    errors: errors.slice(0, 1000),
  })

export const forbidden = (detail: string) => new HttpError(403, 'forbidden', detail)

/** 503 for a while: the request may succeed after `retryAfter` seconds. */
export const unavailable = (retryAfter: number, detail: string, cause?: unknown) =>
  new HttpError(503, 'unavailable', detail, { retryAfter, cause })

export const malformedBody = (detail: string, cause?: unknown) =>
  new HttpError(400, 'malformed_body', detail, { cause })

function summarize(errors: Fault[]): string {
  const [first, ...rest] = errors
  const more = rest.length > 0 ? ` (and ${rest.length} more, see errors)` : ''
  return `${first?.path || 'The body'}: ${first?.message}${more}`
}

export const malformedUrl = () => new HttpError(400, 'malformed_url', 'The URL is not valid percent-encoded UTF-8')

export const bodyTooLarge = () => new HttpError(413, 'body_too_large', 'The body is too large for this endpoint')

/** @param types - what the endpoint takes */
export const unsupportedMediaType = (types: readonly string[] = ['application/json']) =>
  new HttpError(415, 'unsupported_media_type', `Unsupported content type: send ${types.join(' or ')}`)

// RFC 9110, 15.5.16.
export const unsupportedCoding = () =>
  new HttpError(415, 'unsupported_media_type', 'The body is not decompressed: send it without Content-Encoding', {
    headers: { 'accept-encoding': 'identity' },
  })
