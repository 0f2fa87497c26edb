import type { IncomingHttpHeaders } from 'node:http'
import { isDeepStrictEqual } from 'node:util'
import { HttpError } from '@domains-and-files/http'
import type {
  FastifyContextConfig,
  FastifyInstance,
  FastifyRequest,
  preHandlerHookHandler,
  RouteOptions,
} from 'fastify'
import type { ApiTokens } from './api-tokens/api-tokens.ts'
import * as errors from './errors.ts'
import { type Caller, hasExpired, Role, requireRights } from './rights.ts'
import type { SessionTokens } from './sessions/session-tokens.ts'

/** Of requests whose body had not arrived when they were admitted: authenticates their sender again. */
const arriving = new WeakMap<FastifyRequest, () => Promise<Caller>>()

declare module 'fastify' {
  interface FastifyRequest {
    /** The authenticated sender. @throws {Error} on a public route, where nobody is: a mistake in the route. */
    readonly caller: Caller
  }
}

function caller(this: FastifyRequest): Caller {
  if (this.principal) return this.principal as Caller // Only callers are set.
  throw new Error(`${this.routeOptions.url} is public, so it has no caller`)
}

/**
 * The sender of a request whose body has arrived, which may have taken hours: it may have been removed meanwhile. Handlers
 * that read the body themselves call it before they store anything; for other handlers a hook does.
 * @throws {HttpError} 401, or 403 `forbidden` where the rights of the sender have changed.
 */
export async function readmit(request: FastifyRequest): Promise<Caller> {
  const admitted = request.caller
  const present = await arriving.get(request)?.()
  if (present && !isDeepStrictEqual(present, admitted)) throw errors.rightsChanged()
  return admitted
}

type Sender = Pick<FastifyRequest, 'headers' | 'ip'>

/** Denies by default: a route without `access` stops the boot, and a caller below its `access` is rejected. */
export function enforceAccess(app: FastifyInstance, { authenticate }: ReturnType<typeof createAuthenticate>) {
  app.decorateRequest('caller', { getter: caller })
  const always = [errors.tokenMissing(), errors.tokenExpired()]
  app.addHook('onRoute', (route) => {
    requireAccess(route)
    const { schema, config, method, preHandler = [] } = route
    if (method !== 'GET' && method !== 'HEAD') route.preHandler = [readmitArrived, preHandler].flat()
    const needed = config?.access ?? 'public'
    if (!schema || needed === 'public') return
    schema.errors = [
      ...[...(schema.errors ?? []), ...always],
      ...(needed === 'viewer' ? [] : [errors.roleRequired(needed)]), // Every role includes viewer.
      ...(config?.needsLogin ? [errors.loginRequired()] : []),
    ]
  })
  app.addHook('onRequest', (request, _reply, done) => {
    const { config, method, url } = request.routeOptions
    const { access = isPreflight(method) ? 'public' : undefined } = config
    if (request.is404 || access === 'public') return done()
    if (!access) return done(new Error(`The route ${url} has no config.access: it was made before the plugin auth`))
    admit(request, { ...config, access }).then(() => done(), done)
  })
  async function admit(request: FastifyRequest, needed: FastifyContextConfig & { access: Role }) {
    const caller = await authenticate(request)
    requireRights(caller, needed, request)
    if (needed.needsLogin && caller.token) throw errors.loginRequired()
    request.principal = caller
    if (!request.raw.complete) arriving.set(request, () => authenticate(request, { mayHaveExpired: true }))
  }
}

const readmitArrived: preHandlerHookHandler = (request, _reply, done) => {
  if (!arriving.has(request) || !request.raw.complete) return done()
  readmit(request).then(() => done(), done)
}

/** `prefix`: what API tokens begin with. */
export function createAuthenticate(prefix: string, apiTokens: ApiTokens, sessions: SessionTokens, now: () => number) {
  /** The caller that a request's credentials identify. @throws {HttpError} 401 */
  const authenticate = async ({ headers, ip }: Sender, { mayHaveExpired = false } = {}): Promise<Caller> => {
    const token = readCredential(headers)
    const caller = await (token.startsWith(prefix) ? apiTokens.identify(token, ip) : sessions.identify(token))
    if (!mayHaveExpired && hasExpired(caller, now())) throw errors.tokenExpired()
    return caller
  }
  /**
   * The caller of a request outside the app's routes, or of a long response, if it may read without record limits.
   * Undefined without valid credentials.
   */
  const findReader = async (sender: Sender): Promise<Caller | undefined> => {
    const { authorization, 'x-api-key': apiKey } = sender.headers
    if (authorization === undefined && apiKey === undefined) return undefined
    try {
      const caller = await authenticate(sender)
      requireRights(caller, { access: 'viewer' }, { method: 'GET', url: '' })
      return caller
    } catch (error) {
      if (error instanceof HttpError && error.status < 500) return undefined
      throw error
    }
  }
  return { authenticate, findReader }
}

/**
 * The token of a request: `Authorization: Bearer`, the password of `Authorization: Basic` (for clients that know no
 * other scheme), or `X-Api-Key`.
 * @throws {HttpError} if there is none, or the header is malformed.
 */
function readCredential(headers: IncomingHttpHeaders): string {
  const { authorization, 'x-api-key': apiKey } = headers
  if (authorization !== undefined) {
    const [, scheme = '', value] = /^(bearer|basic) +([^\s,]+)$/i.exec(authorization) ?? []
    if (!value) throw errors.authorizationMalformed()
    return scheme.toLowerCase() === 'bearer' ? value : passwordOf(value)
  }
  if (typeof apiKey === 'string' && apiKey !== '') return apiKey
  throw errors.tokenMissing()
}

// RFC 7617: base64 of `user:password`; the user name is ignored.
function passwordOf(value: string): string {
  const text = Buffer.from(value, 'base64').toString()
  const colon = text.indexOf(':')
  if (colon === -1) throw errors.authorizationMalformed()
  return text.slice(colon + 1)
}

function requireAccess({ method, url, config }: RouteOptions) {
  if (isPreflight(method) || ['public', ...Role.options].includes(config?.access ?? '')) return
  throw new Error(
    `The route ${[method].flat().join(', ')} ${url} must set config.access to public, viewer, editor or admin`,
  )
}

// Browsers send a preflight OPTIONS without credentials (Fetch, CORS-preflight fetch), so it cannot be guarded.
const isPreflight = (method: string | string[] | undefined) =>
  method !== undefined && [method].flat().every((name) => name === 'OPTIONS')
