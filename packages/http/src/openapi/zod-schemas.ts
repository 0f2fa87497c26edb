import swagger from '@fastify/swagger'
import Fastify, { type FastifyContextConfig, type RouteOptions } from 'fastify'
import {
  createJsonSchemaTransform,
  createJsonSchemaTransformObject,
} from 'fastify-type-provider-zod'
import { z } from 'zod'
import { HttpError, malformedBody, Problem, validationFailed } from '../problem-details.ts'
import { zodCompilers } from '../requests/validation.ts'
import type { About } from './about.ts'
import { completeDocument, type OperationDoc } from './document.ts'

// Relative to the document, for proxies that serve this under a prefix. @fastify/swagger would reject it as an option.
const servers = [{ url: '.', description: 'this service' }]

/** The description of these routes in OpenAPI 3.1, from the schemas that validate. */
export async function generateDocument(
  { tags = [], ...info }: About,
  routes: RouteOptions[],
): Promise<object> {
  const app = Fastify({ schemaController: { compilersFactory: zodCompilers } })
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { ...info, license: { name: 'MIT', identifier: 'MIT' } },
      tags,
      components: {
        securitySchemes: {
          token: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
          metrics_token: { type: 'http', scheme: 'bearer', description: 'METRICS_TOKEN' },
        },
      },
    },
    transform: (input) => toJsonSchema({ ...input, schema: describeRoute(input) }),
    transformObject: (input) => ({ ...completeDocument(addSchemas(input)), servers }),
  })
  for (const { method, url, schema = {}, config = {} } of routes) {
    app.route({ method, url, schema, config, handler: () => undefined })
  }
  await app.ready()
  return app.swagger()
}

// What zod leaves out where a schema transforms: the default, which is a text or number all the same, and the examples.
const zodToJsonConfig: Parameters<typeof createJsonSchemaTransform>[0]['zodToJsonConfig'] = {
  override: ({ zodSchema, jsonSchema }) => {
    const { def } = zodSchema._zod
    if (def.type === 'default') jsonSchema.default ??= def.defaultValue
    const told = z.globalRegistry.get(zodSchema)
    if (Array.isArray(told?.examples)) jsonSchema.examples ??= told.examples
    if (def.type === 'undefined') jsonSchema.type = 'null' // An answer without a body.
    if (jsonSchema.type === 'integer') delete jsonSchema.pattern
  },
}
const toJsonSchema = createJsonSchemaTransform({ zodToJsonConfig })
const addSchemas = createJsonSchemaTransformObject({ zodToJsonConfig })

interface Route {
  url: string
  schema: object | undefined
  route: { config?: FastifyContextConfig }
}

interface Given extends OperationDoc {
  hide?: boolean
  params?: unknown
  body?: unknown
  consumes?: readonly string[]
  response?: object
}

// Every route may fail in the ways that its access and input allow; said here once, not in each route.
function describeRoute({ schema, route }: Route) {
  const { requestHeaders, responses, errors = [], ...given }: Given = schema ?? {}
  if (given.hide) return given
  const isOpen = (route.config?.access ?? 'public') === 'public'
  const told: OperationDoc = {
    requestHeaders,
    responses,
    errors: [...errors, ...inputErrors(given)],
  }
  return {
    security: isOpen ? [] : [{ token: [] }],
    ...given,
    // Problems of each status follow from the failures; this one brings their schema in.
    response: { default: anyProblem, ...given.response },
    'x-told': told,
  }
}

const anyProblem = {
  description: 'Any other failure, such as',
  content: { 'application/problem+json': { schema: Problem } },
}

const inputErrors = ({ params, body, consumes }: Given) => [
  validationFailed([{ path: '/query/colour', message: 'is not known here' }]),
  ...(params ? [new HttpError(414, 'url_too_long', 'A part of the path is too long')] : []),
  ...(body && !consumes
    ? [
        malformedBody('The body is not valid JSON'),
        new HttpError(413, 'body_too_large', 'The body is too large for this endpoint'),
        new HttpError(
          415,
          'unsupported_media_type',
          'This content type is not taken here: send application/json',
        ),
      ]
    : []),
]
