import type { HeaderDoc, ResponseDoc } from '../fastify-types.ts'
import { HttpError, problemOf } from '../problem-details.ts'

/** The documentation of a route, passed through the generator as an extension field. */
export interface OperationDoc {
  requestHeaders?: Record<string, HeaderDoc> | undefined
  responses?: Record<number, ResponseDoc> | undefined
  errors?: readonly Error[]
}

interface Schema {
  examples?: unknown[]
  properties?: Record<string, object>
}

interface Media {
  schema?: { $ref?: string; type?: string; format?: string }
  example?: unknown
  examples?: Record<string, unknown>
}

interface Response {
  description?: string
  headers?: Record<string, unknown>
  content?: Record<string, Media>
}

interface Operation {
  parameters?: { name: string; in: string }[]
  requestBody?: { content?: Record<string, Media> }
  responses?: Record<string, Response>
  security?: Record<string, unknown>[]
  'x-documentation'?: OperationDoc
}

interface Document {
  paths?: Record<string, Record<string, Operation>>
  components?: {
    schemas?: Record<string, Schema>
    securitySchemes?: Record<string, unknown>
  }
}

/**
 * Completes the generated document in place: the documentation of the routes, one spelling of each path, an example of
 * each body, the error codes. Removes unused schemas.
 */
export function completeDocument<Generated extends object>(generated: Generated): Generated {
  const document: Document = generated
  normalizePaths(document)
  listErrorCodes(document)
  for (const operation of operationsOf(document)) {
    documentOperation(operation)
    for (const media of mediaOf(operation)) inlineExample(media, document)
  }
  dropUnused(document)
  return generated
}

// Any operation can fail with these, before its handler runs.
const sharedCodes = [
  'bad_request',
  'body_too_large',
  'headers_too_large',
  'internal_error',
  'malformed_body',
  'malformed_request',
  'malformed_url',
  'method_not_allowed',
  'not_found',
  'outcome_unknown',
  'request_timeout',
  'unavailable',
  'unsupported_media_type',
  'url_too_long',
  'validation_failed',
]

function listErrorCodes(document: Document) {
  const code = document.components?.schemas?.Problem?.properties?.code
  if (!code) return
  const documented = operationsOf(document).flatMap((operation) =>
    (operation['x-documentation']?.errors ?? []).flatMap((error) =>
      error instanceof HttpError ? error.code : [],
    ),
  )
  Object.assign(code, { enum: [...new Set([...sharedCodes, ...documented])].sort() })
}

const operationsOf = ({ paths = {} }: Document) =>
  Object.values(paths).flatMap((operations) => Object.values(operations))

const mediaOf = ({ requestBody, responses = {} }: Operation) =>
  [requestBody, ...Object.values(responses)].flatMap((each) => Object.values(each?.content ?? {}))

// HEAD works wherever GET does, and a trailing slash is optional: both are left out. The router's `*` gets a name.
function normalizePaths({ paths = {} }: Document) {
  for (const [url, operations] of Object.entries(paths)) {
    delete operations.head
    for (const parameter of Object.values(operations).flatMap((each) => each.parameters ?? [])) {
      if (parameter.name === '*') parameter.name = 'path'
    }
    const named = url.replace('{*}', '{path}')
    const isDuplicate = url.endsWith('/') && url.slice(0, -1) in paths
    if (named !== url || isDuplicate) delete paths[url]
    if (named !== url) paths[named] = operations
  }
}

function documentOperation(operation: Operation) {
  const { requestHeaders = {}, responses = {}, errors = [] } = operation['x-documentation'] ?? {}
  delete operation['x-documentation']
  const { default: anyProblem = {}, ...generated } = operation.responses ?? {}
  const documented = documentResponses(generated, responses)
  const failures = errors.filter((error) => error instanceof HttpError)
  for (const [status, alike] of Object.entries(Object.groupBy(failures, (each) => each.status))) {
    documented[status] = documentFailures(alike ?? [], anyProblem, documented[status])
  }
  const unexpected = new HttpError(500, 'internal_error', 'Internal error')
  documented.default = documentFailures([unexpected], anyProblem, anyProblem)
  operation.responses = documented
  operation.parameters = [
    ...(operation.parameters ?? []),
    ...headerParameters(requestHeaders),
  ].sort((a, b) => places.indexOf(a.in) - places.indexOf(b.in))
}

function documentResponses(
  generated: Record<string, Response>,
  responses: Record<number, ResponseDoc>,
): Record<string, Response> {
  const statuses = Object.keys({ ...generated, ...responses })
  return Object.fromEntries(
    statuses.map((status) => {
      const doc = responses[Number(status)]
      const content = doc?.content ? { [doc.content]: mediaOfDoc(doc) } : generated[status]?.content
      const response = {
        description: doc?.description ?? generated[status]?.description ?? '',
        headers: describeHeaders({ ...doc?.headers, 'x-request-id': requestId }),
        ...(content ? { content } : {}),
      }
      return [status, response]
    }),
  )
}

// The example is prose: the docs page would send an `example`.
const headerParameters = (headers: Record<string, HeaderDoc>) =>
  Object.entries(headers).map(([name, { description, example }]) => ({
    name,
    in: 'header',
    description: `${description}. For example \`${example}\``,
    schema: { type: 'string' },
  }))

const places = ['path', 'query', 'header']

const bytes = { type: 'string', format: 'binary' }

const mediaOfDoc = ({ example }: ResponseDoc): Media =>
  example === undefined ? { schema: bytes } : { schema: { type: 'string' }, example }

// One example per code, as it is sent.
function documentFailures(
  failures: HttpError[],
  anyProblem: Response,
  success: Response = {},
): Response {
  const byCode = new Map(failures.map((failure) => [failure.code, failure]))
  const codes = [...byCode.keys()].map((code) => `\`${code}\``).join(', ')
  const examples = [...byCode].map(([code, failure]) => [
    code,
    { value: problemOf(failure, requestId.example) },
  ])
  const headers = failures.flatMap((failure) =>
    Object.entries(failure.headers).map(([name, example]) => [
      name,
      { description: failureHeaders[name] ?? '', example },
    ]),
  )
  const [media = {}] = Object.values(anyProblem.content ?? {})
  const problems = { ...media, examples: Object.fromEntries(examples) }
  return {
    description: success.description ? `${success.description} ${codes}` : codes,
    headers: { ...success.headers, ...describeHeaders(Object.fromEntries(headers)) },
    content: { ...success.content, 'application/problem+json': problems },
  }
}

const failureHeaders: Record<string, string> = {
  'retry-after': 'Seconds to wait before the next attempt',
  'www-authenticate': 'The challenge (RFC 6750)',
  etag: 'The current entity tag',
  'accept-ranges': 'The unit of ranges',
  'content-range': 'The length of the file',
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

// For readers that do not follow references.
function inlineExample(media: Media, { components }: Document) {
  const name = media.schema?.$ref?.split('/').at(-1)
  const example = name && components?.schemas?.[name]?.examples?.[0]
  if (example && !media.example && !media.examples) media.example = example
}

// The generator emits each named schema as input and as output; most are used as one of them.
function dropUnused(document: Document) {
  const { schemas = {}, securitySchemes = {} } = document.components ?? {}
  for (let before = -1; before !== Object.keys(schemas).length; ) {
    before = Object.keys(schemas).length
    const text = JSON.stringify(document)
    for (const name of Object.keys(schemas)) {
      if (!text.includes(`"#/components/schemas/${name}"`)) delete schemas[name]
    }
  }
  const used = new Set(
    operationsOf(document).flatMap(({ security = [] }) => security.flatMap(Object.keys)),
  )
  for (const name of Object.keys(securitySchemes)) if (!used.has(name)) delete securitySchemes[name]
}
