import type { FastifyInstance, HTTPMethods } from 'fastify'
import findMyWay from 'find-my-way'
import { HttpError } from '../problem-details.ts'

/** Maximum length of one path parameter. */
export const maxParamLength = 1024

/**
 * Collects the methods of every path. Call the returned function after the last route: all other methods of these paths
 * then get 405 with `Allow` (RFC 9110, 15.5.6).
 */
export function trackMethods(app: FastifyInstance): () => void {
  const allowed = new Map<string, Set<string>>()
  const widerPaths = new Map<string, string>()
  app.addHook('onRoute', ({ method, url, config }) => {
    if (url === '*') return // CORS preflights of any path.
    const known = allowed.get(url) ?? new Set()
    for (const each of [method].flat()) known.add(each)
    allowed.set(url, known)
    if (config?.otherMethods) widerPaths.set(url, config.otherMethods)
  })
  const methodsOf = (url: string) =>
    new Set([...(allowed.get(url) ?? []), ...(allowed.get(widerPaths.get(url) ?? '') ?? [])])

  return () => {
    const methods = [...new Set(['QUERY', ...[...allowed.values()].flatMap((known) => [...known])])]
    const paths = findMyWay({ maxParamLength })
    // All before the first refusal: that is a route, too.
    const knownMethods = [...allowed.keys()].map((url) => [url, methodsOf(url)] as const)
    for (const [url, known] of knownMethods) {
      const allow = [...known].sort().join(', ')
      paths.on('GET', url, () => undefined, allow)
      // Otherwise a wider path with this method would match.
      refuse(app, url, {
        methods: methods.filter((method) => !known.has(method)),
        error: (method) => methodNotAllowed(method, allow),
      })
    }
    // A route, since the 404 handler would run after the body was received.
    refuse(app, '*', {
      methods: methods.filter((method) => method !== 'OPTIONS'),
      error: noSuchRoute,
    })
    // Methods that no route has are not routed: thirty of them times all paths would slow every start.
    app.setNotFoundHandler(({ method, raw }) => {
      const allow = methods.includes(method) ? null : paths.find('GET', raw.url ?? '')?.store
      throw allow ? methodNotAllowed(method, allow) : noSuchRoute()
    })
    // Before the listener that responds. Node's parser refuses methods that it does not know.
    app.server.prependListener('clientError', (error: ParserError) => {
      const { method, url } = readUnknownMethod(error) ?? {}
      if (!method || !url) return
      const allow = paths.find('GET', url)?.store
      error.cause = allow ? methodNotAllowed(method, allow) : noSuchRoute()
    })
  }
}

interface Refused {
  methods: string[]
  error: (method: string) => HttpError
}

function refuse(app: FastifyInstance, url: string, { methods, error }: Refused) {
  app.route({
    method: methods as HTTPMethods[], // Each is the method of a route.
    url,
    schema: { hide: true },
    config: { access: 'public' },
    onRequest: async ({ method }) => {
      throw error(method)
    },
    handler: () => undefined,
  })
}

/** The 404 of an unknown path. */
export const noSuchRoute = () => new HttpError(404, 'not_found', 'No such route: see /docs')

type ParserError = Error & { code?: string; bytesParsed?: number; rawPacket?: Buffer }

// Undefined unless the packet begins with the request line: only then is it certain to be that of this request.
function readUnknownMethod({ code, bytesParsed = 0, rawPacket }: ParserError) {
  if (code !== 'HPE_INVALID_METHOD') return undefined
  const text = rawPacket?.toString('latin1', 0, maxLineBytes) ?? ''
  const [, method = '', url] =
    /^([!#$%&'*+.^`|~\w-]{1,64}) (\/\S*) HTTP\/1\.[01]\r\n/.exec(text) ?? []
  return bytesParsed <= method.length ? { method, url } : undefined
}

const maxLineBytes = 16_384

export function methodNotAllowed(method: string, allow: string) {
  const detail = `${method} is not allowed here: use ${allow}`
  return new HttpError(405, 'method_not_allowed', detail, { headers: { allow } })
}
