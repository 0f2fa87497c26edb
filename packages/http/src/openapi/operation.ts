import type { RouteOptions } from 'fastify'
import { z } from 'zod'
import { bodyTooLarge, HttpError, malformedBody, unsupportedMediaType, validationFailed } from '../http-error.ts'
import { Problem, problemOf, urlTooLong } from '../problem-details.ts'
import type { HeaderDoc, ResponseDoc } from '../route-schema.ts'
import { exampleOf, type JsonSchema, type JsonSchemas } from './json-schemas.ts'

export type DocumentedRoute = Pick<RouteOptions, 'method' | 'url' | 'schema' | 'config'>

/** The schemas of a document for requests (`input`) and for responses (`output`). */
export interface BothSides {
  input: JsonSchemas
  output: JsonSchemas
}

interface Media {
  schema: JsonSchema
  example?: unknown
  examples?: Record<string, { value: unknown }>
}

interface Response {
  description: string
  headers?: Record<string, object>
  content?: Record<string, Media>
}

export function describeOperation(route: DocumentedRoute, sides: BothSides) {
  const { operationId, summary, description, tags, security } = route.schema ?? {}
  const { params, querystring, body } = requestSchemas(route)
  const isOpen = (route.config?.access ?? 'public') === 'public'
  return {
    operationId,
    summary,
    description,
    tags,
    parameters: [
      ...parameters(params, 'path', sides.input),
      ...parameters(querystring, 'query', sides.input),
      ...headerParameters(route.schema?.requestHeaders ?? {}),
    ],
    ...(body ? { requestBody: describeBody(body, route, sides.input) } : {}),
    security: security ?? (isOpen ? [] : [{ token: [] }]),
    responses: describeResponses(route, sides.output),
  }
}

export function requestSchemas({ schema = {} }: DocumentedRoute) {
  const { params, querystring, body } = schema
  return { params: asZod(params), querystring: asZod(querystring), body: asZod(body) }
}

/** The schemas of the bodies of a route's responses. */
export const responseSchemas = ({ schema = {} }: DocumentedRoute) =>
  Object.values(schema.responses ?? {}).flatMap(({ body }) => body ?? [])

/** The errors of a route: the declared ones, and those that its kind of input implies. */
export const failuresOf = ({ schema = {} }: DocumentedRoute): HttpError[] =>
  [
    ...(schema.errors ?? []),
    validationFailed([{ path: '/query/colour', message: 'is not known here' }]),
    ...(schema.params ? [urlTooLong] : []),
    ...(schema.body && !schema.consumes ? bodyErrors : []),
  ].filter((error) => error instanceof HttpError)

const bodyErrors = [malformedBody('The body is not valid JSON'), bodyTooLarge(), unsupportedMediaType()]

const asZod = (schema: unknown) => (schema instanceof z.ZodType ? schema : undefined)

// OpenAPI needs a name for the router's wildcard `*`.
function parameters(schema: z.ZodType | undefined, place: 'path' | 'query', input: JsonSchemas) {
  const { properties = {}, required = [] } = schema ? input.of(schema) : {}
  return Object.entries(properties).map(([name, { description, examples, ...rest }]) => ({
    name: name === '*' ? 'path' : name,
    in: place,
    ...(description ? { description } : {}),
    required: place === 'path' || required.includes(name),
    schema: rest,
    ...(examples ? { example: examples[0] } : {}),
  }))
}

// The example goes into the description: the docs page would send an `example` by default.
const headerParameters = (headers: Record<string, HeaderDoc>) =>
  Object.entries(headers).map(([name, { description, example }]) => ({
    name,
    in: 'header',
    description: `${description}. For example \`${example}\``,
    schema: { type: 'string' },
  }))

function describeBody(body: z.ZodType, { schema }: DocumentedRoute, input: JsonSchemas) {
  const types = schema?.consumes ?? ['application/json']
  const media = mediaOf(input.of(body), input)
  const required = body.def.type === 'any' || !body.safeParse(undefined).success
  return { required, content: Object.fromEntries(types.map((type) => [type, media])) }
}

// The example is beside the schema, for tools that do not follow references.
function mediaOf(json: JsonSchema, { components }: JsonSchemas): Media {
  const { examples: _examples, ...schema } = json
  const example = exampleOf(json, components)
  return { schema, ...(example === undefined ? {} : { example }) }
}

function describeResponses(route: DocumentedRoute, output: JsonSchemas): Record<string, Response> {
  const documented = describeSuccesses(route, output)
  const failures = Object.groupBy(failuresOf(route), ({ status }) => status)
  for (const [status, alike = []] of Object.entries(failures)) {
    documented[status] = describeFailures(alike, output, documented[status])
  }
  documented.default = describeFailures([internalError], output, {
    description: 'Any other error, such as',
  })
  return documented
}

const internalError = new HttpError(500, 'internal_error', 'Internal error')

function describeSuccesses(route: DocumentedRoute, output: JsonSchemas): Record<string, Response> {
  return Object.fromEntries(
    Object.entries(route.schema?.responses ?? {}).map(([status, doc]) => {
      const { description, body } = doc
      // The schema of a text is that of its own media type.
      const isJson = body && !(doc.content && body instanceof z.ZodString)
      const content = {
        ...(isJson ? { 'application/json': mediaOf(output.of(body), output) } : {}),
        ...(doc.content ? { [doc.content]: mediaOfDoc(doc) } : {}),
      }
      const headers = describeHeaders({ ...doc.headers, 'x-request-id': requestId })
      return [status, { description, headers, ...(isJson || doc.content ? { content } : {}) }]
    }),
  )
}

const mediaOfDoc = ({ example }: ResponseDoc): Media =>
  example === undefined ? { schema: { type: 'string', format: 'binary' } } : { schema: { type: 'string' }, example }

// One example response per problem code.
function describeFailures(
  failures: HttpError[],
  output: JsonSchemas,
  success: Response = { description: '' },
): Response {
  const byCode = new Map(failures.map((failure) => [failure.code, failure]))
  const codes = [...byCode.keys()].map((code) => `\`${code}\``).join(', ')
  const examples = [...byCode].map(([code, failure]) => [code, { value: problemOf(failure, requestId.example) }])
  const problem = { schema: output.of(Problem), examples: Object.fromEntries(examples) }
  return {
    description: success.description ? `${success.description} ${codes}` : codes,
    ...(success.headers && { headers: success.headers }),
    content: { ...success.content, 'application/problem+json': problem },
  }
}

const describeHeaders = (headers: Record<string, HeaderDoc>) =>
  Object.fromEntries(
    Object.entries(headers).map(([name, { description, example }]) => [
      name,
      { description, example, schema: { type: 'string' } },
    ]),
  )

const requestId = {
  description: 'The id of this request, also in the log; the one you sent, if any',
  example: '5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44',
}
