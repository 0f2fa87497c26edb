import {
  codeOf,
  DatabaseFullError,
  DatabaseUnavailableError,
  OutcomeUnknownError,
  storageFailure,
} from '@domains-and-files/persistence'
import type { FastifyBaseLogger, FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { HttpError, unavailable, unsupportedMediaType, validationFailed } from './http-error.ts'

// An ES import of `node:http` evaluates every export and so loads the WebSocket client, a tenth of the start time.
export const { STATUS_CODES, validateHeaderName, validateHeaderValue } = process.getBuiltinModule('node:http')

export const Problem = z
  .looseObject({
    type: z.literal('about:blank'),
    title: z.string(),
    status: z.int(),
    code: z.string().describe('stable and machine-readable'),
    detail: z.string().describe('one sentence a person can act on'),
    request_id: z.string().describe('also in every log line of the request'),
    errors: z
      .array(
        z.object({
          path: z.string().describe('a JSON Pointer into the body, or /query/<name>, /path/<name>'),
          message: z.string(),
        }),
      )
      .optional()
      .describe('only for validation_failed: every fault'),
    paths: z.array(z.string()).optional().describe('files and directories that are missing, or were changed since'),
  })
  .meta({ id: 'Problem', description: 'RFC 9457 problem details; some codes have more members' })

/** The error handler of every app: sends problem details (RFC 9457). */
export function answerError(error: FastifyError | HttpError, request: FastifyRequest, reply: FastifyReply) {
  // The client has left, and the framework closed the stream; the access log records it as aborted.
  if (error.code === 'ERR_STREAM_PREMATURE_CLOSE' && reply.raw.destroyed) return reply.hijack()
  const problem = requestProblem(error, reply)
  // A Buffer: for a string Fastify would add a charset parameter, which JSON does not define (RFC 8259, 11).
  return reply
    .code(problem.status)
    .headers(problem.headers)
    .type('application/problem+json')
    .send(Buffer.from(JSON.stringify(problemOf(problem, request.id))))
}

/** What a reply says of an error, including the framework's own errors. Logs like `toProblem`. */
export function requestProblem(error: FastifyError | HttpError, reply: FastifyReply): HttpError {
  const { request } = reply
  const problem = toProblem(translate(error, request) ?? error, request.log)
  // Keep the connection open to read and discard the rest of the body: if Fastify closed it now, the client would get a
  // TCP reset instead of this response.
  if (['body_too_large', 'unavailable'].includes(problem.code)) reply.removeHeader('connection')
  reply.problemCode = problem.code
  return problem
}

/** The response to an error. Logs statuses from 500. An unexpected error becomes a bare 500, logged with its stack. */
export function toProblem(error: unknown, log: Pick<FastifyBaseLogger, 'error' | 'warn'>): HttpError {
  // `suppressed` is the original error; `error` is a later failure to close a resource, often on the same failing disk.
  if (error instanceof SuppressedError) return toProblem(error.suppressed, log)
  const problem = error instanceof HttpError ? error : databaseProblem(error)
  if (!problem) {
    log.error({ err: error }, 'request failed')
    return new HttpError(500, 'internal_error', 'Internal error: report it with the request_id')
  }
  const { status, code, message: detail, cause } = problem
  if (status >= 500) log.warn({ code, detail, err: cause }, 'request refused')
  return problem
}

export function problemOf(failure: HttpError, requestId: string): z.infer<typeof Problem> {
  const { status, code, message: detail, errors, members } = failure
  const title = STATUS_CODES[status] ?? 'Error'
  return {
    type: 'about:blank',
    title,
    status,
    code,
    detail,
    request_id: requestId,
    ...(errors && { errors }),
    ...members,
  }
}

/** The problem of a failure of a database or of the disk, for any route; undefined for every other error. */
export function databaseProblem(failure: unknown): HttpError | undefined {
  const error = storageFailure(failure)
  if (error instanceof DatabaseUnavailableError) {
    const detail = 'The storage fails or cannot be reached, so nothing was changed: try again in a moment'
    return unavailable(2, detail, error.cause)
  }
  if (error instanceof OutcomeUnknownError) {
    const detail = 'The database failed while it stored this: read what is stored before you try again'
    return new HttpError(503, 'outcome_unknown', detail, { retryAfter: 5, cause: error.cause })
  }
  if (error instanceof DatabaseFullError) {
    const detail = 'The disk is full, so nothing was stored: free space on it'
    return new HttpError(507, 'insufficient_storage', detail, { cause: error.cause })
  }
  // PostgreSQL: character_not_in_repertoire, here U+0000.
  return codeOf(error) === '22021'
    ? validationFailed([{ path: '', message: 'a text must not contain U+0000' }])
    : undefined
}

/** An error of Fastify and its plugins, or (`expose`) of http-errors, which @fastify/static sends. */
type PluginError = Partial<FastifyError> & { expose?: boolean }

// Their messages may quote the input, so they are replaced. Errors of other libraries may have a status, too: of what
// an upstream answered.
function translate({ code = '', expose, statusCode: status = 500 }: PluginError, request: FastifyRequest) {
  if (!(code.startsWith('FST_') || expose) || status < 400 || status >= 500) return undefined
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return unsupportedMediaType(request.routeOptions.schema?.consumes)
  if (code === 'FST_ERR_MAX_PARAM_LENGTH') return urlTooLong
  return new HttpError(status, codes[status] ?? 'bad_request', STATUS_CODES[status] ?? 'Bad Request')
}

export const urlTooLong = new HttpError(414, 'url_too_long', 'A part of the path is too long')

const codes: Record<number, string> = {
  400: 'malformed_body',
  404: 'not_found',
  413: 'body_too_large',
  415: 'unsupported_media_type',
}
