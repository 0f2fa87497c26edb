import type { FastifyInstance, preHandlerHookHandler } from 'fastify'
import { serializerCompiler } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { type Fault, validationFailed } from '../problem-details.ts'
import { describeIssue, isMissing } from './validation-messages.ts'

type Part = 'params' | 'querystring' | 'body'

const places: Record<Part, string> = { params: '/path', querystring: '/query', body: '' }

/**
 * What the framework makes of schemas. It would stop at the first part that is wrong: it is told that all is well, and
 * a hook decides. Handed to it as it is made, since else it loads compilers of its own for JSON Schema.
 */
export const zodCompilers: object = {
  buildValidator: () => () => (value: unknown) => ({ value }),
  buildSerializer: () => serializerCompiler,
}

/**
 * Checks path, query and body of each route against its zod schemas, all three before it answers, so that one
 * answer names every fault. A route without a query schema takes no query parameters.
 */
export function validateRequests(app: FastifyInstance) {
  app.addHook('onRoute', (route) => {
    const schema = route.schema
    if (!schema || schema.hide) return
    schema.querystring ??= z.strictObject({})
    const check = checkRequest({
      params: asSchema(schema.params),
      querystring: asSchema(schema.querystring),
      body: route.method === 'GET' || route.method === 'HEAD' ? undefined : asSchema(schema.body),
    })
    route.preHandler = [check, ...[route.preHandler ?? []].flat()]
  })
}

/** The faults of a zod error as the contract words them: a pointer and what must be. */
function toFaults(error: z.ZodError, place = ''): Fault[] {
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
    const faults = parts.flatMap(({ key, place, schema }) => {
      const result = schema.safeParse(request[key], { error: describeIssue, reportInput: true })
      if (result.success) request[key] = result.data
      return result.success ? [] : toFaults(result.error, place)
    })
    done(faults.length > 0 ? validationFailed(faults) : undefined)
  }
}

const asSchema = (schema: unknown) => (schema instanceof z.ZodType ? schema : undefined)

// RFC 6901: `~` and `/` inside a name are written `~0` and `~1`.
const pointerTo = (place: string, path: readonly PropertyKey[]) =>
  place + path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
