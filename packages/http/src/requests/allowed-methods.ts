import type { FastifyInstance, HTTPMethods } from 'fastify'
import findMyWay from 'find-my-way'
import { HttpError } from '../problem-details.ts'

/** How long each part of a path may be. */
export const maxParamLength = 1024

/**
 * Remembers every path as it is routed. The function that it returns is called after the last route: every other
 * method of these paths is then a 405 with `Allow` (RFC 9110, 15.5.6).
 */
export function trackMethods(app: FastifyInstance): () => void {
  const allowed = new Map<string, Set<string>>()
  const widerPaths = new Map<string, string>()
  app.addHook('onRoute', ({ method, url, config }) => {
    if (url === '*') return // Preflights of any path: no path that is known by it.
    const known = allowed.get(url) ?? new Set()
    for (const each of [method].flat()) known.add(each)
    allowed.set(url, known)
    if (config?.otherMethods) widerPaths.set(url, config.otherMethods)
  })
  const methodsOf = (url: string) =>
    new Set([...(allowed.get(url) ?? []), ...(allowed.get(widerPaths.get(url) ?? '') ?? [])])

  return () => {
    const methods = [...new Set([...allowed.values()].flatMap((known) => [...known]))]
    const paths = findMyWay({ maxParamLength })
    for (const url of [...allowed.keys()]) {
      const known = methodsOf(url)
      const allow = [...known].sort().join(', ')
      paths.on('GET', url, () => undefined, allow)
      // Without a route of its own it would get to a wider path that has this method.
      app.route({
        method: methods.filter((method) => !known.has(method)) as HTTPMethods[], // Each is a route's.
        url,
        schema: { hide: true },
        config: { access: 'public' },
        onRequest: async (request) => {
          throw methodNotAllowed(request.method, allow)
        },
        handler: () => undefined,
      })
    }
    // The thirty methods that no route has need none here: each would have to learn all paths, at every start.
    app.addHook('onRequest', ({ is404, method, raw }, _reply, done) => {
      const allow =
        !is404 || methods.includes(method) ? null : paths.find('GET', raw.url ?? '')?.store
      done(allow ? methodNotAllowed(method, allow) : undefined)
    })
  }
}

function methodNotAllowed(method: string, allow: string) {
  const detail = `${method} is not possible here: use ${allow}`
  return new HttpError(405, 'method_not_allowed', detail, { headers: { allow } })
}
