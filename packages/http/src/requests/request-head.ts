import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { isIPv4, isIPv6 } from 'node:net'
import proxyAddr from '@fastify/proxy-addr'
import type { FastifyInstance } from 'fastify'
import findMyWay from 'find-my-way'
import { HttpError } from '../http-error.ts'

/** The proxies whose `X-Forwarded-For` is trusted: all, none, these addresses, or a number of hops. */
export type TrustProxy = boolean | string[] | ((address: string, hop: number) => boolean)

/** The client's own if it is 1–128 printable ASCII characters, else a new one. */
export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const sent = headers['x-request-id']
  return typeof sent === 'string' && /^[\x20-\x7e]{1,128}$/.test(sent) ? sent : randomUUID()
}

/** Node server options that pass ambiguous requests on to `checkRequestHeads`. */
export const parserOptions = {
  // Join duplicate singleton headers, so that their parsers reject them; by default Node keeps the first.
  joinDuplicateHeaders: true,
  requireHostHeader: false,
  // Requests without a body emit no stream events, which would take an eighth of the time of a small response.
  optimizeEmptyRequests: true,
}

/**
 * Prevents request smuggling: rejects requests that Node accepts but a proxy may frame differently (RFC 9112, 3.2 and
 * 6.1). Turns Node's own error responses into problem details, and adds the headers of every response.
 */
export function checkRequestHeads(app: FastifyInstance) {
  // Unlimited within the parser's 16 KiB: Node would silently drop headers past the 2,000th, even preconditions.
  app.server.maxHeadersCount = 0
  // Unknown expectations may be ignored (RFC 9110, 10.1.1).
  app.server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    app.server.emit('request', request, response),
  )
  app.server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    continueOnRead(request, response)
    app.server.emit('request', request, response)
  })
  // A callback hook: the promise of an async one would cost more than the work.
  app.addHook('onRequest', ({ id, raw }, reply, done) => {
    if (raw.headers['x-forwarded-for']?.includes(':')) stripForwardedPorts(raw.headers)
    reply.header('x-request-id', id).header('x-content-type-options', 'nosniff')
    // Close after a declined upgrade: Node drops the bytes that follow, so a request among them would get no response.
    if (raw.headers.upgrade !== undefined) reply.header('connection', 'close')
    done(framingError(raw))
  })
}

// Sends 100 Continue once the body is read (RFC 9110, 10.1.1), so that a request that its headers refuse costs no upload.
// In that case Node closes the connection, since the client may or may not send the body.
function continueOnRead(request: IncomingMessage, response: ServerResponse) {
  request.on('newListener', function onListener(event) {
    if (event !== 'data' && event !== 'readable') return
    request.off('newListener', onListener)
    response.writeContinue()
  })
}

/** The error for a request that is ambiguous. */
export function framingError({ headers, httpVersion, method, url }: IncomingMessage): HttpError | undefined {
  const { host, 'transfer-encoding': coding } = headers
  if (!['1.0', '1.1'].includes(httpVersion)) return ambiguous(`This is HTTP/${httpVersion}: speak HTTP/1.1`)
  if (host === undefined && httpVersion !== '1.0') return ambiguous('Send one header Host')
  if (host !== undefined && !/^[\w.:[\]~%-]*$/.test(host)) return ambiguous('Send one header Host, and a valid one')
  if (url?.includes('#') || (url === '*' && method !== 'OPTIONS')) return ambiguous('A path begins with / and has no #')
  if (coding !== undefined && (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked')) {
    return ambiguous('The body can be sent with Transfer-Encoding: chunked, in HTTP/1.1, and no other way')
  }
  return undefined
}

const ambiguous = (detail: string) =>
  new HttpError(400, 'malformed_request', detail, { headers: { connection: 'close' } })

/** Reads the client address like Fastify's `request.ip`, for requests that bypass Fastify. */
export function clientAddressReader(trustProxy: TrustProxy): (request: IncomingMessage) => string {
  if (trustProxy === false) return ({ socket }) => socket.remoteAddress ?? ''
  const trusts = trustFunction(trustProxy)
  return (request) => {
    stripForwardedPorts(request.headers)
    return proxyAddr(request, trusts)
  }
}

export function forwardingCheck(trustProxy: TrustProxy): (request: IncomingMessage) => boolean {
  if (trustProxy === false) return () => false
  const trusts = trustFunction(trustProxy)
  return (request) => proxyAddr.all(request, trusts).length > 1
}

function trustFunction(trustProxy: Exclude<TrustProxy, false>) {
  if (typeof trustProxy === 'function') return trustProxy
  return trustProxy === true ? () => true : proxyAddr.compile(trustProxy)
}

/**
 * Removes ports from the addresses in `X-Forwarded-For`: some proxies write `192.0.2.1:4711`, and limits by address would
 * otherwise treat each connection as a new client.
 */
function stripForwardedPorts(headers: IncomingHttpHeaders) {
  const field = headers['x-forwarded-for']
  if (typeof field !== 'string' || !field.includes(':')) return
  headers['x-forwarded-for'] = field
    .split(',')
    .map((part) => stripPort(part.trim()))
    .join(', ')
}

function stripPort(text: string): string {
  const [, v4 = ''] = /^([0-9.]+):[0-9]{1,5}$/.exec(text) ?? []
  if (isIPv4(v4)) return v4
  const [, v6 = ''] = /^\[([0-9A-Fa-f:.]+)\](?::[0-9]{1,5})?$/.exec(text) ?? []
  return isIPv6(v6) ? v6 : text
}

/** Headers that let pages of some origins read a response (https://fetch.spec.whatwg.org/#http-cors-protocol). */
export type CrossOriginHeaders = (request: IncomingMessage) => Record<string, string>

export const crossOriginHeaders = (origins: string[], exposed: string[]): CrossOriginHeaders => {
  const others = { 'access-control-expose-headers': exposed.join(', '), vary: 'Origin' }
  return ({ headers: { origin = '' } }) =>
    origins.includes(origin) ? { 'access-control-allow-origin': origin, ...others } : {}
}

/** Whether a request is a CORS preflight. A page cannot tell a rejected preflight from an unreachable service. */
export const isPreflight = ({ method, headers }: IncomingMessage) =>
  method === 'OPTIONS' && headers['access-control-request-method'] !== undefined

/** Sets these headers in each response, and answers CORS preflights of any path. */
export function allowOrigins(app: FastifyInstance, crossOrigin: CrossOriginHeaders): void {
  app.addHook('onRequest', ({ raw }, reply, done) => {
    reply.headers({ vary: 'Origin', ...crossOrigin(raw) })
    if (!isPreflight(raw)) return done()
    const { 'access-control-request-headers': asked } = raw.headers
    if (asked) reply.header('access-control-allow-headers', asked)
    reply
      .headers({
        'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
        'access-control-max-age': '600',
      })
      .code(204)
      .send()
  })
  // Routes may have set a field of their own. Requests refused by earlier hooks have none.
  app.addHook('onSend', (_request, reply, payload, done) => {
    const vary = String(reply.getHeader('vary') ?? 'Origin')
    if (!vary.includes('Origin')) reply.header('vary', `${vary}, Origin`)
    done(null, payload)
  })
}

/** The router refuses other paths, but leaves parts of a query undecoded. */
export function refuseUndecodable(app: FastifyInstance, badUrl: () => HttpError) {
  app.addHook('onRequest', ({ url }, _reply, done) => done(isDecodable(url) ? undefined : badUrl()))
}

/** Whether a URL is percent-encoded UTF-8. */
export function isDecodable(url: string): boolean {
  try {
    return decodeURIComponent(url) !== undefined
  } catch {
    return false
  }
}

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
    const { params = {}, store } = paths.find('GET', url) ?? {}
    // The router matches `/things/` with `/things/:id`.
    const isOther = Object.entries(params).some(([name, value]) => value === '' && name !== '*')
    return isOther ? undefined : store
  }
  const refusal = (method: string, url?: string) => {
    const known = methodsAt(url)
    // A known method reaches this, too, through the not-found handler.
    if (!known || known.has(method)) return new HttpError(404, 'not_found', 'No such route: see /docs')
    return methodNotAllowed(method, [...known].sort().join(', '))
  }
  app.addHook('onRoute', ({ method, url, config }) => {
    const known = allowed.getOrInsertComputed(url, () => new Set())
    for (const each of [method].flat()) known.add(each)
    if (config?.otherMethods) widerPaths.set(url, config.otherMethods)
  })
  app.addHook('onRequest', ({ method, raw, routeOptions }, _reply, done) => {
    const { url } = routeOptions
    // The router may have matched a wider path, with a parameter or wildcard, that has this method.
    const isExact = url !== undefined && !/[*:]/.test(url)
    done(isExact || methodsAt(raw.url)?.has(method) ? undefined : refusal(method, raw.url))
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

/** Router from paths to their methods. Built on demand: building costs as much as registering a third of the routes. */
function routerOf(allowed: Map<string, Set<string>>, widerPaths: Map<string, string>) {
  const paths = findMyWay({ maxParamLength })
  for (const [url, known] of allowed) {
    const wider = allowed.get(widerPaths.get(url) ?? '') ?? []
    paths.on('GET', url, () => undefined, new Set([...known, ...wider]))
  }
  return paths
}

type ParserError = Error & { code?: string; bytesParsed?: number; rawPacket?: Buffer }

// Undefined unless the packet begins with a request line: otherwise the line found may be of another request.
function readUnknownMethod({ code, bytesParsed = 0, rawPacket }: ParserError) {
  if (code !== 'HPE_INVALID_METHOD') return undefined
  const text = rawPacket?.toString('latin1', 0, maxLineBytes) ?? ''
  const [, method = '', url] = /^([!#$%&'*+.^`|~\w-]{1,64}) (\/\S*) HTTP\/1\.[01]\r\n/.exec(text) ?? []
  const [head] = text.split('\r\n\r\n')
  const [, id] = /\r\nx-request-id: *([\x21-\x7e][\x20-\x7e]*)(?:\r|$)/i.exec(head ?? '') ?? []
  return bytesParsed <= method.length ? { method, url, id } : undefined
}

const maxLineBytes = 16_384

export const methodNotAllowed = (method: string, allow: string) =>
  new HttpError(405, 'method_not_allowed', `${method} is not allowed here: use ${allow}`, { headers: { allow } })
