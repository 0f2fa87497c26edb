import type { FastifyInstance } from 'fastify'
import findMyWay from 'find-my-way'
import { HttpError } from '../problem-details.ts'
import { isPreflight, requestIdOf } from './request-head.ts'

export const maxParamLength = 1024

/**
 * Rejects other methods than those of the routes of a path: 405 with `Allow` (RFC 9110, 15.5.6), before the body is
 * received. Call it before routes are registered.
 */
export function refuseOtherMethods(app: FastifyInstance): void {
  const allowed = new Map<string, Set<string>>()
  const widerPaths = new Map<string, string>()
  let paths: ReturnType<typeof routerOf> | undefined
  function methodsAt(url = ''): Set<string> | undefined {
    paths ??= routerOf(allowed, widerPaths)
    const found = paths.find('GET', url)
    return hasEmptyParameter(found?.params) ? undefined : found?.store
  }
  const refusal = (method: string, url?: string) => {
    const known = methodsAt(url)
    // A known method reaches this, too, through the not-found handler: 404.
    const isAbsent = !known || known.has(method)
    return isAbsent ? noSuchRoute() : methodNotAllowed(method, [...known].sort().join(', '))
  }
  app.addHook('onRoute', ({ method, url, config }) => {
    if (url === '*') return // CORS preflights of any path.
    const known = allowed.get(url) ?? new Set()
    for (const each of [method].flat()) known.add(each)
    allowed.set(url, known)
    if (config?.otherMethods) widerPaths.set(url, config.otherMethods)
  })
  app.addHook('onRequest', ({ method, raw, routeOptions }, reply, done) => {
    const { url } = routeOptions
    // The CORS plugin has a route for OPTIONS of any path, and has set the headers of the response.
    if (url === '*' && isPreflight(raw)) return reply.code(204).send()
    // The router may have matched a wider path, with a parameter or wildcard, that has this method.
    const isExact = url !== undefined && !/[*:]/.test(url)
    done(isExact || methodsAt(raw.url)?.has(method) ? undefined : refusal(method, raw.url))
  })
  // For preflights of unknown paths.
  app.setNotFoundHandler(({ method, raw }) => {
    throw refusal(method, raw.url)
  })
  // Node's parser rejects methods that it does not know. Prepended, so that the listener that responds sees `cause`.
  app.server.prependListener('clientError', (error: ParserError) => {
    const { method, url, id } = readUnknownMethod(error) ?? {}
    if (!method || !url) return
    const cause = refusal(method, url)
    cause.headers['x-request-id'] = requestIdOf({ headers: { 'x-request-id': id } })
    error.cause = cause
  })
}

// The router matches `/things/` with `/things/:id`.
const hasEmptyParameter = (params: unknown) =>
  Object.entries(params ?? {}).some(([name, value]) => value === '' && name !== '*')

/** Router from paths to their methods. Built on demand: building costs as much as registering a third of the routes. */
function routerOf(allowed: Map<string, Set<string>>, widerPaths: Map<string, string>) {
  const paths = findMyWay({ maxParamLength })
  for (const [url, known] of allowed) {
    const wider = allowed.get(widerPaths.get(url) ?? '') ?? []
    paths.on('GET', url, () => undefined, new Set([...known, ...wider]))
  }
  return paths
}

export const noSuchRoute = () => new HttpError(404, 'not_found', 'No such route: see /docs')

type ParserError = Error & { code?: string; bytesParsed?: number; rawPacket?: Buffer }

// Undefined unless the packet begins with a request line: otherwise the line found may be of another request.
function readUnknownMethod({ code, bytesParsed = 0, rawPacket }: ParserError) {
  if (code !== 'HPE_INVALID_METHOD') return undefined
  const text = rawPacket?.toString('latin1', 0, maxLineBytes) ?? ''
  const [, method = '', url] =
    /^([!#$%&'*+.^`|~\w-]{1,64}) (\/\S*) HTTP\/1\.[01]\r\n/.exec(text) ?? []
  const [head] = text.split('\r\n\r\n')
  const [, id] = /\r\nx-request-id: *([\x21-\x7e][\x20-\x7e]*)(?:\r|$)/i.exec(head ?? '') ?? []
  return bytesParsed <= method.length ? { method, url, id } : undefined
}

const maxLineBytes = 16_384

export function methodNotAllowed(method: string, allow: string) {
  const detail = `${method} is not allowed here: use ${allow}`
  return new HttpError(405, 'method_not_allowed', detail, { headers: { allow } })
}
