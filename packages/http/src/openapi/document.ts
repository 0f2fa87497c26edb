import type { HeaderDoc, ResponseDoc } from '../fastify-types.ts'
import { HttpError, problemOf } from '../problem-details.ts'

/** What a route told of itself, on its way through the generator. */
export interface OperationDoc {
  requestHeaders?: Record<string, HeaderDoc> | undefined
  responses?: Record<number, ResponseDoc> | undefined
  errors?: readonly Error[]
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
  'x-told'?: OperationDoc
}

interface Description {
  paths?: Record<string, Record<string, Operation>>
  components?: {
    schemas?: Record<string, { examples?: unknown[] }>
    securitySchemes?: Record<string, unknown>
  }
}

/** Completes what the generator made: what the routes told, each path once, an example of each body, nothing unused. */
export function completeDocument<Given extends object>(given: Given): Given {
  const description: Description = given
  tidyPaths(description)
  for (const operation of operationsOf(description)) {
    tellMore(operation)
    for (const media of mediaOf(operation)) showExample(media, description)
  }
  dropUnused(description)
  return given
}

const operationsOf = ({ paths = {} }: Description) =>
  Object.values(paths).flatMap((operations) => Object.values(operations))

const mediaOf = ({ requestBody, responses = {} }: Operation) =>
  [requestBody, ...Object.values(responses)].flatMap((each) => Object.values(each?.content ?? {}))

// Said once: HEAD answers wherever GET does, and a path alike with and without its last slash. The rest of a path,
// `*` to the router, has a name.
function tidyPaths({ paths = {} }: Description) {
  for (const [url, operations] of Object.entries(paths)) {
    delete operations.head
    for (const parameter of Object.values(operations).flatMap((each) => each.parameters ?? [])) {
      if (parameter.name === '*') parameter.name = 'path'
    }
    const named = url.replace('{*}', '{path}')
    const isSaid = url.endsWith('/') && url.slice(0, -1) in paths
    if (named !== url || isSaid) delete paths[url]
    if (named !== url) paths[named] = operations
  }
}

function tellMore(operation: Operation) {
  const { requestHeaders = {}, responses: documented = {}, errors = [] } = operation['x-told'] ?? {}
  delete operation['x-told']
  const { default: others = {}, ...given } = operation.responses ?? {}
  const responses: Record<string, Response> = {}
  for (const status of Object.keys({ ...given, ...documented })) {
    const told = documented[Number(status)]
    const content = told?.content ? { [told.content]: mediaOfDoc(told) } : given[status]?.content
    responses[status] = {
      description: told?.description ?? given[status]?.description ?? '',
      headers: tellHeaders({ ...told?.headers, 'x-request-id': requestId }),
      ...(content ? { content } : {}),
    }
  }
  const refused = errors.filter((failure) => failure instanceof HttpError)
  for (const [status, alike] of Object.entries(Object.groupBy(refused, (each) => each.status))) {
    responses[status] = tellFailures(alike ?? [], others, responses[status])
  }
  const unforeseen = new HttpError(500, 'internal_error', 'Something went wrong on our side')
  operation.responses = { ...responses, default: tellFailures([unforeseen], others, others) }
  operation.parameters = [
    ...(operation.parameters ?? []),
    ...Object.entries(requestHeaders).map(([name, { description, example }]) => ({
      name,
      in: 'header',
      // As words: the docs page would send an example.
      description: `${description}. For example \`${example}\``,
      schema: { type: 'string' },
    })),
  ].sort((a, b) => places.indexOf(a.in) - places.indexOf(b.in))
}

const places = ['path', 'query', 'header']

const bytes = { type: 'string', format: 'binary' }

const mediaOfDoc = ({ example }: ResponseDoc): Media =>
  example === undefined ? { schema: bytes } : { schema: { type: 'string' }, example }

// Each problem as it is answered, by its code.
function tellFailures(failures: HttpError[], others: Response, given: Response = {}): Response {
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
  const [media = {}] = Object.values(others.content ?? {})
  const problems = { ...media, examples: Object.fromEntries(examples) }
  return {
    description: given.description ? `${given.description} ${codes}` : codes,
    headers: { ...given.headers, ...tellHeaders(Object.fromEntries(headers)) },
    content: { ...given.content, 'application/problem+json': problems },
  }
}

const failureHeaders: Record<string, string> = {
  'retry-after': 'Seconds to wait before the next try',
  'www-authenticate': 'How to ask (RFC 6750)',
  etag: 'What is there now',
  'accept-ranges': 'The unit of ranges',
  'content-range': 'How long the file is',
}

const tellHeaders = (headers: Record<string, HeaderDoc>) =>
  Object.fromEntries(
    Object.entries(headers).map(([name, { description, example }]) => [
      name,
      { description, example, schema: { type: 'string' } },
    ]),
  )

const requestId = {
  description: 'The id of this request, in the log too; yours if you sent one',
  example: '5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44',
}

// What the schema behind a reference gives as example is shown at once, for readers who do not follow references.
function showExample(media: Media, { components }: Description) {
  const name = media.schema?.$ref?.split('/').at(-1)
  const example = name && components?.schemas?.[name]?.examples?.[0]
  if (example && !media.example && !media.examples) media.example = example
}

// Each named schema is made in two forms, one as it is sent and one as it is answered; most are used in one.
function dropUnused(description: Description) {
  const { schemas = {}, securitySchemes = {} } = description.components ?? {}
  for (let before = -1; before !== Object.keys(schemas).length; ) {
    before = Object.keys(schemas).length
    const text = JSON.stringify(description)
    for (const name of Object.keys(schemas)) {
      if (!text.includes(`"#/components/schemas/${name}"`)) delete schemas[name]
    }
  }
  const asked = new Set(
    operationsOf(description).flatMap(({ security = [] }) => security.flatMap(Object.keys)),
  )
  for (const name of Object.keys(securitySchemes))
    if (!asked.has(name)) delete securitySchemes[name]
}
