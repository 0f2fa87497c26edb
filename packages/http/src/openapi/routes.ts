import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { noQuery } from '../requests/validation.ts'
import { serveDocsPage } from './docs-page.ts'
import { type About, generateDocument } from './document.ts'
import type { DocumentedRoute } from './operation.ts'

/**
 * GET /openapi.json and the page /docs, for every route registered later. The document is generated on first request, as
 * many processes never serve it.
 */
export function serveOpenapi(app: FastifyInstance, about: About) {
  const routes: DocumentedRoute[] = []
  app.addHook('onRoute', (route) => {
    if (route.schema && !route.schema.hide && route.method !== 'HEAD') routes.push({ ...route })
  })
  let document: object | undefined
  const route = {
    schema: { hide: true, querystring: noQuery },
    config: { access: 'public' },
  } as const
  app.get('/openapi.json', route, async () => {
    document ??= generateDocument(about, routes)
    return document
  })
  serveDocsPage(app, about.title)
}

const Root = z
  .object({
    service: z.string(),
    version: z.string(),
    docs: z.string().meta({ description: 'path of the page to read and try the API' }),
    openapi: z.string().meta({ description: 'path of the OpenAPI document' }),
  })
  .meta({
    id: 'ServiceInfo',
    examples: [
      { service: 'Domain service', version: '0.1.0', docs: 'docs', openapi: 'openapi.json' },
    ],
  })

/** GET /: names the service and its documentation. A browser is redirected to the docs page. */
export function serveRoot(app: FastifyInstance, { title, version }: About) {
  app.get(
    '/',
    {
      schema: {
        operationId: 'getServiceInfo',
        summary: 'What is this service?',
        description: 'A client that prefers HTML, such as a browser, is redirected to the docs.',
        tags: ['operations'],
        responses: {
          200: { description: 'Name, version and documentation' },
          302: { description: 'To the docs, for a browser' },
        },
        response: { 200: Root, 302: z.undefined() },
      },
      config: { access: 'public' },
    },
    async (request, reply) => {
      reply.header('vary', 'accept').header('cache-control', 'no-cache')
      // Relative redirect: a proxy may serve this app under a prefix.
      if (request.headers.accept?.includes('text/html')) return reply.redirect('docs')
      return reply.send({ service: title, version, docs: 'docs', openapi: 'openapi.json' })
    },
  )
}
