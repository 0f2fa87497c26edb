import type { FastifyInstance, RouteOptions } from 'fastify'
import { noQuery } from '../requests/validation.ts'
import type { About } from './about.ts'
import { serveDocsPage } from './docs-page.ts'

/**
 * GET /openapi.json and the page /docs, for every route registered later. The document is generated on first request:
 * that takes a third of a start, and most services are never asked.
 */
export function serveOpenapi(app: FastifyInstance, about: About) {
  const routes: RouteOptions[] = []
  app.addHook('onRoute', (route) => {
    if (route.schema && !route.schema.hide && route.method !== 'HEAD') routes.push({ ...route })
  })
  let generated: Promise<object> | undefined
  const route = {
    schema: { hide: true, querystring: noQuery },
    config: { access: 'public' },
  } as const
  app.get('/openapi.json', route, () => {
    generated ??= generate(about, routes)
    return generated
  })
  serveDocsPage(app, about.title)
}

async function generate(about: About, routes: RouteOptions[]): Promise<object> {
  const { generateDocument } = await import('./zod-schemas.ts')
  return generateDocument(about, routes)
}
