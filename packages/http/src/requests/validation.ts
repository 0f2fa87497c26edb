import type { FastifyInstance, FastifySerializerCompiler, preHandlerHookHandler } from 'fastify'
import { z } from 'zod'
import { type Fault, validationFailed } from '../problem-details.ts'
import { describeIssue, isMissing } from './validation-messages.ts'

type Part = 'params' | 'querystring' | 'body'

const places: Record<Part, string> = { params: '/path', querystring: '/query', body: '' }

/**
 * Compilers for Fastify. The validator accepts everything: Fastify would stop at the first invalid part, so a hook
 * validates. Passed at construction: otherwise Fastify loads its JSON Schema compilers.
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
 * Validates path, query and body of each route by its zod schemas, so that one 400 names every fault. A route without a
 * query schema accepts no query parameters; a hidden one, of a foreign protocol, is validated only by schemas of its own.
 */
export function validateRequests(app: FastifyInstance) {
  app.addHook('onRoute', (route) => {
    const schema = route.schema
    if (!schema) return
    if (!schema.hide) schema.querystring ??= noQuery
    const check = checkRequest({
      params: asSchema(schema.params),
      querystring: asSchema(schema.querystring),
      body: route.method === 'GET' || route.method === 'HEAD' ? undefined : asSchema(schema.body),
    })
    route.preHandler = [check, ...[route.preHandler ?? []].flat()]
  })
}

/** The query schema of a route without query parameters. */
export const noQuery = z.strictObject({})

/** The faults of a zod error: JSON pointers and messages, as the contract words them. */
export function toFaults(error: z.ZodError, place = ''): Fault[] {
  return error.issues.flatMap((issue) => {
    const path = pointerTo(place, issue.path)
    if (isMissing(issue)) return [{ path, message: 'is missing' }]
    if (issue.code !== 'unrecognized_keys') return [{ path, message: issue.message }]
    return issue.keys.map((key) => ({ path: pointerTo(path, [key]), message: 'is not known here' }))
  })
}

function checkRequest(schemas: Record<Part, z.ZodType | undefined>): preHandlerHookHandler {
  const parts = (Object.keys(schemas) as Part[]).flatMap((part) => {
    const schema = schemas[part]
    return schema
      ? [{ key: part === 'querystring' ? ('query' as const) : part, place: places[part], schema }]
      : []
  })
  return (request, _reply, done) => {
    const faults: Fault[] = []
    for (const { key, place, schema } of parts) {
      const result = schema.safeParse(request[key], { error: describeIssue, reportInput: true })
      if (result.success) request[key] = result.data
      else faults.push(...toFaults(result.error, place))
    }
    if (faults.length === 0) return done()
    const { moreFaults } = request.routeOptions.config
    done(validationFailed(addFaults(faults, moreFaults?.(request) ?? [])))
  }
}

// The first fault of each place.
function addFaults(faults: Fault[], more: Fault[]): Fault[] {
  const paths = new Set(faults.map(({ path }) => path))
  const isNew = (path: string) => paths.size < paths.add(path).size
  return [...faults, ...more.filter(({ path }) => isNew(path))]
}

const asSchema = (schema: unknown) => (schema instanceof z.ZodType ? schema : undefined)

// RFC 6901: `~` and `/` in a name become `~0` and `~1`.
const pointerTo = (place: string, path: readonly PropertyKey[]) =>
  place + path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
