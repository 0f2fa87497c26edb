import type { Access } from '@domains-and-files/http'
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import { isAccess, isRoleEnough } from './authorization.ts'
import { rememberCaller } from './caller.ts'
import type { AuthErrors } from './errors.ts'
import type { SessionTokens } from './sessions/session-tokens.ts'

/** Denies by default: a route without `access` stops the boot, and a caller below its `access` is rejected. */
export function enforceAccess(app: FastifyInstance, tokens: SessionTokens, errors: AuthErrors) {
  app.addHook('onRoute', (route) => {
    requireAccess(route)
    documentErrors(route, errors)
  })
  app.addHook('onRequest', (request, _reply, done) => {
    try {
      admit(request)
      done()
    } catch (error) {
      done(error as Error) // Only errors are thrown below.
    }
  })

  function admit(request: FastifyRequest) {
    const needed = accessOf(request)
    if (needed === 'public') return
    const caller = tokens.verify(readToken(request.headers.authorization, errors))
    if (caller === 'expired') throw errors.tokenExpired()
    if (caller === 'invalid') throw errors.tokenInvalid()
    if (!isRoleEnough(caller.role, needed)) throw errors.forbidden(needed)
    rememberCaller(request, caller)
  }
}

function requireAccess({ method, url, config }: RouteOptions) {
  if (isPreflight(method) || isAccess(config?.access)) return
  throw new Error(
    `The route ${[method].flat().join(', ')} ${url} must set config.access to public, viewer, editor or admin`,
  )
}

// For the OpenAPI document.
function documentErrors({ schema, config }: RouteOptions, errors: AuthErrors) {
  const needed = config?.access
  if (!schema || !needed || needed === 'public') return
  schema.errors = [
    ...(schema.errors ?? []),
    errors.tokenMissing(),
    errors.tokenExpired(),
    ...(needed === 'viewer' ? [] : [errors.forbidden(needed)]), // Every role includes viewer.
  ]
}

function accessOf(request: FastifyRequest): Access {
  const { config, method, url } = request.routeOptions
  if (request.is404) return 'public'
  if (isAccess(config.access)) return config.access
  if (isPreflight(method)) return 'public'
  throw new Error(`The route ${url} has no config.access: it was made before the plugin auth`)
}

// Browsers send a preflight OPTIONS without credentials (Fetch, CORS-preflight fetch), so it cannot be guarded.
const isPreflight = (method: string | string[] | undefined) =>
  method !== undefined && [method].flat().every((name) => name === 'OPTIONS')

function readToken(header: string | undefined, errors: AuthErrors): string {
  if (header === undefined) throw errors.tokenMissing()
  const [, token] = /^bearer +([^\s,]+)$/i.exec(header) ?? []
  if (!token) throw errors.authorizationMalformed()
  return token
}
