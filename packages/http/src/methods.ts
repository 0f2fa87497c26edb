import type { FastifyInstance, HTTPMethods } from 'fastify'
import { METHODS } from './node-http.ts'
import { HttpError } from './problem.ts'

// CONNECT never reaches a route: Node hands it to another event.
const methods = METHODS.filter((method) => method !== 'CONNECT')

/**
 * Remembers every path as it is routed. The function that it returns is called after the last route: every other
 * method of these paths is then a 405 with `Allow` (RFC 9110, 15.5.6).
 */
export function trackMethods(app: FastifyInstance): () => void {
  const allowed = new Map<string, Set<string>>()
  app.addHook('onRoute', ({ method, url }) => {
    if (url === '*') return // Preflights of any path: no path that is known by it.
    const known = allowed.get(url) ?? new Set()
    for (const each of [method].flat()) known.add(each)
    allowed.set(url, known)
  })

  return () => {
    for (const method of methods) {
      if (!app.supportedMethods.includes(method)) app.addHttpMethod(method, { hasBody: false })
    }
    for (const [url, known] of [...allowed]) {
      const allow = [...known].sort().join(', ')
      const refused = methods.filter((method) => !known.has(method))
      app.route({
        method: refused as HTTPMethods[], // Each was made known to the framework above.
        url,
        schema: { hide: true },
        config: { access: 'public' } as object,
        onRequest: async (request) => {
          const detail = `${request.method} is not possible here: use ${allow}`
          throw new HttpError(405, 'method_not_allowed', detail, { headers: { allow } })
        },
        handler: () => undefined,
      })
    }
  }
}
