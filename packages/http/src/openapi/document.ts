import type { FastifyInstance } from 'fastify'
import { Problem } from '../problem-details.ts'
import { hiddenRoute } from '../requests/validation.ts'
import { serveDocsPage } from './docs-page.ts'
import { toJsonSchemas } from './json-schemas.ts'
import {
  type BothSides,
  type DocumentedRoute,
  describeOperation,
  failuresOf,
  requestSchemas,
  responseSchemas,
} from './operation.ts'

/** Description of a service for the OpenAPI document. */
export interface About {
  title: string
  version: string
  description: string
  /** The groups of operations, in the order in which they are shown. */
  tags?: { name: string; description: string }[]
}

/**
 * The OpenAPI 3.1 document of these routes, from the schemas that validate requests. HEAD works wherever GET does, and a
 * trailing slash is optional: both are left out.
 */
export function generateDocument({ tags = [], ...info }: About, all: DocumentedRoute[]): object {
  const urls = new Set(all.map(({ url }) => url))
  const routes = all.filter(({ url }) => !url.endsWith('/') || !urls.has(url.slice(0, -1)))
  const sides = convertSchemas(routes)
  listErrorCodes(sides, routes)
  return {
    openapi: '3.1.0',
    info: { ...info, contact: { name: 'The operators of this service' }, license: { name: 'MIT', identifier: 'MIT' } },
    // Relative to the document: a proxy may serve this app under a prefix.
    servers: [{ url: '.', description: 'this service' }],
    tags,
    paths: describePaths(routes, sides),
    components: { schemas: { ...sides.input.components, ...sides.output.components }, securitySchemes },
  }
}

type Paths = Record<string, Record<string, ReturnType<typeof describeOperation>>>

function describePaths(routes: DocumentedRoute[], sides: BothSides): Paths {
  const paths: Paths = {}
  for (const route of routes) {
    const path = route.url.replace(/:(\w+)/g, '{$1}').replace('*', '{path}')
    for (const method of [route.method].flat()) {
      if (method === 'HEAD') continue
      paths[path] = { ...paths[path], [method.toLowerCase()]: describeOperation(route, sides) }
    }
  }
  return paths
}

const convertSchemas = (routes: DocumentedRoute[]): BothSides => ({
  input: toJsonSchemas(
    'input',
    routes.flatMap((route) => Object.values(requestSchemas(route)).flatMap((each) => each ?? [])),
  ),
  output: toJsonSchemas('output', [Problem, ...routes.flatMap(responseSchemas)]),
})

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

function listErrorCodes({ output }: BothSides, routes: DocumentedRoute[]) {
  const codes = routes.flatMap((route) => failuresOf(route).map(({ code }) => code))
  const { code } = output.components.Problem?.properties ?? {}
  if (code) code.enum = [...new Set([...sharedCodes, ...codes])].sort()
}

const securitySchemes = {
  token: {
    type: 'http',
    scheme: 'bearer',
    description:
      'The access_token of a login, or an API token. API tokens are also accepted as the password of Basic and as X-Api-Key.',
  },
  metrics_token: { type: 'http', scheme: 'bearer', description: 'METRICS_TOKEN' },
}

/** GET /openapi.json and /docs, for every route registered later. Generated on first request: many processes never serve it. */
export function serveOpenapi(app: FastifyInstance, about: About) {
  const routes: DocumentedRoute[] = []
  app.addHook('onRoute', (route) => {
    if (route.schema && !route.schema.hide && route.method !== 'HEAD') routes.push({ ...route })
  })
  let document: object | undefined
  app.get('/openapi.json', hiddenRoute, async () => {
    document ??= generateDocument(about, routes)
    return document
  })
  serveDocsPage(app, about.title)
}
