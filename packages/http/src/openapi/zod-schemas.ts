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

/** The OpenAPI 3.1 document of these routes, from the schemas that validate requests. */
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
          token: {
            type: 'http',
            scheme: 'bearer',
            description:
              'The access_token of a login, or an API token. API tokens are also accepted as the password of Basic and as X-Api-Key.',
          },
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

// zod omits defaults and examples of schemas with a transform.
const zodToJsonConfig: Parameters<typeof createJsonSchemaTransform>[0]['zodToJsonConfig'] = {
  override: ({ zodSchema, jsonSchema }) => {
    const { def } = zodSchema._zod
    if (def.type === 'default') jsonSchema.default ??= def.defaultValue
    const meta = z.globalRegistry.get(zodSchema)
    if (Array.isArray(meta?.examples)) jsonSchema.examples ??= meta.examples
    if (def.type === 'undefined') jsonSchema.type = 'null' // A response without a body.
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

interface RouteSchema extends OperationDoc {
  hide?: boolean
  params?: unknown
  body?: unknown
  consumes?: readonly string[]
  response?: object
}

// Adds the errors that follow from a route's access and input.
function describeRoute({ schema, route }: Route) {
  const { requestHeaders, responses, errors = [], ...rest }: RouteSchema = schema ?? {}
  if (rest.hide) return rest
  const isOpen = (route.config?.access ?? 'public') === 'public'
  const documentation: OperationDoc = {
    requestHeaders,
    responses,
    errors: [...errors, ...inputErrors(rest)],
  }
  return {
    security: isOpen ? [] : [{ token: [] }],
    ...rest,
    // Brings in the schema of problems; their statuses follow from the errors.
    response: { default: anyProblem, ...rest.response },
    'x-documentation': documentation,
  }
}

const anyProblem = {
  description: 'Any other error, such as',
  content: { 'application/problem+json': { schema: Problem } },
}

const inputErrors = ({ params, body, consumes }: RouteSchema) => [
  validationFailed([{ path: '/query/colour', message: 'is not known here' }]),
  ...(params ? [new HttpError(414, 'url_too_long', 'A part of the path is too long')] : []),
  ...(body && !consumes
    ? [
        malformedBody('The body is not valid JSON'),
        new HttpError(413, 'body_too_large', 'The body is too large for this endpoint'),
        new HttpError(
          415,
          'unsupported_media_type',
          'Unsupported content type: send application/json',
        ),
      ]
    : []),
]
