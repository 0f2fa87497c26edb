import type { FastifyInstance, RouteOptions } from 'fastify'
import { serveDocsPage } from './docs-page.ts'

export interface About {
  title: string
  version: string
  /** Markdown. */
  description: string
  /** The groups of operations, in the order in which they are shown. */
  tags?: { name: string; description: string }[]
}

/** GET /openapi.json, made when it is first asked for, of every route that is made after this; and the page /docs. */
export function serveOpenapi(app: FastifyInstance, about: About) {
  const routes: RouteOptions[] = []
  app.addHook('onRoute', (route) => {
    if (route.schema && !route.schema.hide && route.method !== 'HEAD') routes.push({ ...route })
  })
  let made: Promise<object> | undefined
  const config = { access: 'public' } as const
  app.get('/openapi.json', { schema: { hide: true }, config }, () => {
    made ??= generate(about, routes)
    return made
  })
  serveDocsPage(app, about.title)
}

// What generates is a third of a start, and most services are never asked.
async function generate(about: About, routes: RouteOptions[]): Promise<object> {
  const { generateDocument } = await import('./zod-schemas.ts')
  return generateDocument(about, routes)
}
