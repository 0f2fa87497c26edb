import {
  type App,
  HttpError,
  problemOf,
  receiveBody,
  requestProblem,
  validationFailed,
} from '@domains-and-files/http'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'

// JSON as other programs speak it: bodies of any media type, keys in any case, `error` in failures.

/** A JSON object whose keys are compared without regard to case. */
export interface LenientBody {
  /** The value at a key in lower case. */
  values: ReadonlyMap<string, unknown>
  /** Keys as the client wrote them, by their lower case. */
  spelling: ReadonlyMap<string, string>
}

/**
 * Takes JSON bodies under any content type: curl sends `application/x-www-form-urlencoded` by default. Call it on a
 * scope of its own.
 */
export function takeAnyJson(scope: App) {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', async (request: FastifyRequest) =>
    (await receiveBody(request)).toString(),
  )
}

/** @throws {HttpError} malformed_body for anything but a JSON object. */
export function readLenientBody(body: unknown): LenientBody {
  const value = parseJson(body)
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new HttpError(400, 'malformed_body', 'The body must be a JSON object')
  const entries = Object.entries(value)
  return {
    values: new Map(entries.map(([key, each]) => [key.toLowerCase(), each])),
    spelling: new Map(entries.map(([key]) => [key.toLowerCase(), key])),
  }
}

/** @throws {HttpError} malformed_body. */
export function parseJson(body: unknown): unknown {
  try {
    return JSON.parse(typeof body === 'string' ? body : '')
  } catch {
    throw new HttpError(400, 'malformed_body', 'The body is not valid JSON')
  }
}

/** The text at a key; undefined where there is none, or another type. */
export function textAt({ values }: LenientBody, key: string): string | undefined {
  const value = values.get(key)
  return typeof value === 'string' ? value : undefined
}

/**
 * An error handler for clients that look for `error` in JSON: the problem's fields stand beside it.
 * @param wordOf the word that these clients expect; by default the code of the problem.
 */
export const answerJsonError =
  (wordOf: (error: HttpError) => string = ({ code }) => code) =>
  (error: FastifyError | HttpError, request: FastifyRequest, reply: FastifyReply) => {
    const failure = requestProblem(error, request)
    reply.problemCode = failure.code
    return reply
      .code(failure.status)
      .headers(failure.headers)
      .type('application/json')
      .send(JSON.stringify({ error: wordOf(failure), ...problemOf(failure, request.id) }))
  }

/**
 * For `catch`: throws the error, its pointers to records of an `ensure` edit replaced by pointers into the request, which
 * has another form.
 */
export const moveFaults =
  (pointerOf: (index: number, field: string) => string | undefined) =>
  (error: unknown): never => {
    if (!(error instanceof HttpError && error.code === 'validation_failed')) throw error
    throw validationFailed(
      (error.errors ?? []).map((fault) => {
        const [, index, field = ''] = /^\/present\/(\d+)\/(\w+)$/.exec(fault.path) ?? []
        const path = index === undefined ? undefined : pointerOf(Number(index), field)
        return { ...fault, path: path ?? fault.path }
      }),
    )
  }
