import {
  describeIssue,
  HttpError,
  limitValues,
  malformedBody,
  problemOf,
  requestProblem,
  toFaults,
  validationFailed,
} from '@domains-and-files/http'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'

// JSON as other programs speak it: bodies of any media type, keys in any case, `error` in failures.

/** A schema of objects whose keys clients write in any case: known keys get the spelling of the schema. */
export function anyCase<Schema extends z.ZodObject>(schema: Schema) {
  const spelling = new Map(Object.keys(schema.shape).map((key) => [key.toLowerCase(), key]))
  return z.preprocess((value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [spelling.get(key.toLowerCase()) ?? key, each]),
    )
  }, schema)
}

/**
 * @param maxValues default: as in every JSON body.
 * @throws {HttpError} malformed_body for anything but JSON of the right kind, body_too_large for more values, else
 * validation_failed.
 */
export function parseBody<Schema extends z.ZodType>(schema: Schema, body: unknown, maxValues?: number) {
  const value = parseJson(body)
  limitValues(value, maxValues)
  const parsed = schema.safeParse(value, { error: describeIssue, reportInput: true })
  if (parsed.success) return parsed.data
  const faults = toFaults(parsed.error)
  const [kind] = faults.filter(({ path }) => path === '')
  throw kind ? malformedBody(`The body: ${kind.message}`) : validationFailed(faults)
}

function parseJson(body: unknown): unknown {
  try {
    return JSON.parse(typeof body === 'string' ? body : '')
  } catch {
    throw malformedBody('The body is not valid JSON')
  }
}

/**
 * An error handler for clients that look for `error` in JSON: the problem's fields stand beside it.
 * @param wordOf the word that these clients expect; by default the code of the problem.
 */
export const answerJsonError =
  (wordOf: (error: HttpError) => string = ({ code }) => code) =>
  (error: FastifyError | HttpError, request: FastifyRequest, reply: FastifyReply) => {
    const failure = requestProblem(error, reply)
    return reply
      .code(failure.status)
      .headers(failure.headers)
      .send({ error: wordOf(failure), ...problemOf(failure, request.id) })
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
