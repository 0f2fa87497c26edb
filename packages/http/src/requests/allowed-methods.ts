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

  const paths = findMyWay({ maxParamLength })
  const refusalOf = (method: string, url: string) => {
    const allow = paths.find('GET', url)?.store
    return allow ? methodNotAllowed(method, allow) : noSuchRoute()
  }
  // The 404 handler would run after the body was received.
  app.addHook('onRequest', ({ is404, method, raw }, _reply, done) =>
    done(is404 ? refusalOf(method, raw.url ?? '') : undefined),
  )

  return () => {
    // All before the first refusal: that is a route, too.
    const knownMethods = [...allowed.keys()].map((url) => [url, methodsOf(url)] as const)
    const patterns = knownMethods.map(([url, known]) => [patternOf(url), known] as const)
    for (const [url, known] of knownMethods) {
      const allow = [...known].sort().join(', ')
      paths.on('GET', url, () => undefined, allow)
      const wider = patterns.flatMap(([pattern, others]) => (pattern.test(url) ? [...others] : []))
      const methods = new Set(wider.filter((method) => !known.has(method)))
      refuse(app, url, { methods, allow })
    }
    // Before the listener that responds. Node's parser refuses methods that it does not know.
    app.server.prependListener('clientError', (error: ParserError) => {
      const { method, url } = readUnknownMethod(error) ?? {}
      if (!method || !url) return
      error.cause = refusalOf(method, url)
    })
  }
}

/** The paths that a route matches. */
const patternOf = (url: string) =>
  new RegExp(`^${url.replaceAll(/:[^/]+/g, '[^/]+').replaceAll('*', '.*')}$`)

interface Refused {
  /** Those with which a wider path would match. */
  methods: Set<string>
  allow: string
}

function refuse(app: FastifyInstance, url: string, { methods, allow }: Refused) {
  if (methods.size === 0) return
  app.route({
    method: [...methods] as HTTPMethods[], // Each is the method of a route.
    url,
    schema: { hide: true },
    config: { access: 'public' },
    onRequest: async ({ method }) => {
      throw methodNotAllowed(method, allow)
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
