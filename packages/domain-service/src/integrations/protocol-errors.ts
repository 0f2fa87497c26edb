import { HttpError, problemOf } from '@domains-and-files/http'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'

/**
 * An error handler for clients that look for `error` in JSON: the problem's fields stand beside it.
 * @param wordOf the word that these clients expect; by default the code of the problem.
 */
export const answerJsonError =
  (wordOf: (error: HttpError) => string = ({ code }) => code) =>
  (error: FastifyError | HttpError, request: FastifyRequest, reply: FastifyReply) => {
    const failure = toHttpError(error, request)
    reply.problemCode = failure.code
    return reply
      .code(failure.status)
      .headers(failure.headers)
      .type('application/json')
      .send(JSON.stringify({ error: wordOf(failure), ...problemOf(failure, request.id) }))
  }

/** What a client may know of an error; bugs are logged. */
export function toHttpError(error: FastifyError | HttpError, request: FastifyRequest): HttpError {
  if (error instanceof HttpError) {
    if (error.status >= 500)
      request.log.warn(
        { code: error.code, detail: error.message, cause: error.cause },
        'request refused',
      )
    return error
  }
  const { statusCode = 500 } = error
  if (statusCode < 500)
    return new HttpError(statusCode, 'malformed_body', 'The request is not valid')
  request.log.error({ err: error }, 'request failed')
  return new HttpError(500, 'internal_error', 'Something went wrong on our side')
}
