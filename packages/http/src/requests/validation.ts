import type { FastifyInstance, FastifyRequest, FastifySerializerCompiler, preHandlerHookHandler } from 'fastify'
import { z } from 'zod'
import { type Fault, validationFailed } from '../http-error.ts'

interface Part {
  key: 'params' | 'query' | 'body'
  place: string
  schema: z.ZodType
}

/**
 * Compilers for Fastify. The validator accepts everything, and a hook validates instead, as Fastify would stop at the
 * first invalid part. Pass them at construction, or Fastify loads its JSON Schema compilers.
 */
export const zodCompilers: object = {
  buildValidator: () => () => (value: unknown) => ({ value }),
  buildSerializer: () => encodeResponse,
}

// Applies defaults and codecs; a response that its schema rejects is a bug, answered with 500.
const encodeResponse: FastifySerializerCompiler<z.ZodType> =
  ({ schema }) =>
  (data) =>
    JSON.stringify(z.encode(schema, data))

/**
 * Serializes without the check by the schema, which would take longer than all else for long lists. Only for handlers
 * that name every field: TypeScript checks their types.
 */
export const uncheckedJson: FastifySerializerCompiler<unknown> = () => (data) => JSON.stringify(data)

/**
 * Validates path, query and body of each route by its zod schemas, so that one 400 names every fault. A route without a
 * query schema accepts no query parameters; a hidden one, of a foreign protocol, is validated only by schemas of its own.
 * A handler answers with the success status of its route, if that is only one.
 */
export function validateRequests(app: FastifyInstance) {
  app.addHook('onRoute', (route) => {
    if (!route.schema) return
    // Copy: routes and apps may share a schema object, and hooks add to it.
    const schema = { ...route.schema }
    route.schema = schema
    if (!schema.hide) schema.querystring ??= noQuery
    const hasBody = route.method !== 'GET' && route.method !== 'HEAD'
    const parts = [
      partOf('params', '/path', schema.params),
      partOf('query', '/query', schema.querystring),
      hasBody ? partOf('body', '', schema.body) : [],
    ].flat()
    const [status, ...others] = Object.keys(schema.responses ?? {})
    const check = checkRequest(parts, others.length === 0 ? Number(status) : undefined)
    route.preHandler = [check, ...[route.preHandler ?? []].flat()]
  })
}

const noQuery = z.strictObject({})

/** The options of a public route that is not documented. */
export const hiddenRoute = { schema: { hide: true, querystring: noQuery }, config: { access: 'public' } } as const

/** The faults of a zod error, as JSON pointers and messages in the contract's wording. */
export function toFaults(error: z.ZodError, place = ''): Fault[] {
  return error.issues.flatMap((issue) => {
    const path = pointerTo(place, issue.path)
    if (isMissing(issue)) return [{ path, message: 'is missing' }]
    if (issue.code !== 'unrecognized_keys') return [{ path, message: issue.message }]
    return issue.keys.map((key) => ({ path: pointerTo(path, [key]), message: 'is not known here' }))
  })
}

/**
 * A value by a schema, for handlers that read bodies themselves. `place` begins the pointers of faults.
 * @throws {HttpError} `validation_failed`.
 */
export function parseInput<Schema extends z.ZodType>(schema: Schema, value: unknown, place = ''): z.output<Schema> {
  const { data, error } = schema.safeParse(value, { error: describeIssue, reportInput: true })
  if (error) throw validationFailed(toFaults(error, place))
  return data as z.output<Schema>
}

const partOf = (key: Part['key'], place: string, schema: unknown): Part | [] =>
  schema instanceof z.ZodType ? { key, place, schema } : []

function checkRequest(parts: Part[], status: number | undefined): preHandlerHookHandler {
  return (request, reply, done) => {
    const faults: Fault[] = request.url.includes('%00') ? findNulls(request) : []
    for (const { key, place, schema } of parts) {
      const result = schema.safeParse(request[key], { error: describeIssue, reportInput: true })
      if (result.success) request[key] = result.data
      else {
        faults.push(...toFaults(result.error, place))
        request[key] = withoutRejected(request[key], result.error)
      }
    }
    if (faults.length === 0) {
      if (status) reply.code(status)
      return done()
    }
    const { moreFaults } = request.routeOptions.config
    done(validationFailed(addFaults(faults, moreFaults?.(request) ?? [])))
  }
}

// PostgreSQL refuses U+0000 in a text, and SQLite cuts some there. Paths are left to their routes, which refuse more.
const findNulls = ({ params, query }: FastifyRequest): Fault[] =>
  Object.entries({ '/path': params, '/query': query }).flatMap(([place, values]) =>
    Object.entries(values ?? {})
      .filter(([name, value]) => !pathNames.has(name) && String(value).includes('\0'))
      .map(([name]) => ({ path: pointerTo(place, [name]), message: 'must not contain U+0000' })),
  )

const pathNames = new Set(['*', 'path', 'prefix', 'folder'])

// Sets rejected values to undefined. Unknown fields stay.
function withoutRejected(value: unknown, { issues }: z.ZodError): unknown {
  for (const { code, path } of issues) {
    if (code === 'unrecognized_keys') continue
    const last = path.at(-1)
    if (last === undefined) return undefined
    const parent = path.slice(0, -1).reduce<unknown>((at, key) => Object(at)[key], value)
    if (typeof parent === 'object') Reflect.set(Object(parent), last, undefined)
  }
  return value
}

// Keeps the first fault of each path.
function addFaults(faults: Fault[], more: Fault[]): Fault[] {
  const paths = new Set(faults.map(({ path }) => path))
  const isNew = (path: string) => paths.size < paths.add(path).size
  return [...faults, ...more.filter(({ path }) => isNew(path))]
}

/** The JSON Pointer (RFC 6901) of what is at a path below a place. */
export const pointerTo = (place: string, path: readonly PropertyKey[]) =>
  place + path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

/**
 * Messages for zod issues in the contract's wording: what the value must be. A message given in the schema takes
 * precedence. Pass as `error` to `safeParse`, with `reportInput: true`.
 */
export const describeIssue: z.core.$ZodErrorMap = (issue) => {
  if (isMissing(issue)) return 'is missing'
  switch (issue.code) {
    case 'invalid_type':
      return types[issue.expected] ?? 'has the wrong type'
    case 'invalid_value':
      return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map(String).join(', ')}`
    case 'too_small':
      return issue.origin === 'string' && issue.minimum === 1
        ? 'must not be empty'
        : describeBound(issue.origin, 'at least', issue.minimum)
    case 'too_big':
      return describeBound(issue.origin, 'at most', issue.maximum)
    case 'invalid_format':
      return issue.format === 'datetime' ? 'must be an RFC 3339 time such as 2026-11-20T19:20:00Z' : 'is malformed'
    case 'unrecognized_keys':
      return `has unknown fields: ${issue.keys.join(', ')}`
    default:
      return 'is not valid'
  }
}

// JSON and queries cannot contain `undefined`. False if the parse did not set `reportInput`.
const isMissing = (issue: { code?: string | undefined; input?: unknown }) =>
  'input' in issue &&
  issue.input === undefined &&
  ['invalid_type', 'invalid_value', 'invalid_union'].includes(issue.code ?? '')

const types: Record<string, string> = {
  string: 'must be a string',
  number: 'must be a number',
  int: 'must be a whole number',
  boolean: 'must be true or false',
  array: 'must be a list',
  object: 'must be an object',
  record: 'must be an object',
}

const units: Record<string, string> = { string: 'character', array: 'item' }

function describeBound(origin: string, words: string, limit: number | bigint) {
  const unit = units[origin]
  return unit ? `must have ${words} ${limit} ${unit}${limit === 1 ? '' : 's'}` : `must be ${words} ${limit}`
}
