import type { Access, HttpError } from '@domains-and-files/http'
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import type { ApiTokens } from './api-tokens/api-tokens.ts'
import { outsideRecords } from './api-tokens/permissions.ts'
import { looksLikeApiToken, prefixOf } from './api-tokens/token-format.ts'
import { type Caller, isAccess, isRoleEnough } from './authorization.ts'
import { rememberCaller } from './caller.ts'
import { readCredential } from './credentials.ts'
import type { AuthErrors } from './errors.ts'
import { otherServiceOf } from './services.ts'
import type { SessionTokens } from './sessions/session-tokens.ts'

interface AccessDependencies {
  sessions: SessionTokens
  apiTokens: ApiTokens
  audience: string
  errors: AuthErrors
}

/** Denies by default: a route without `access` stops the boot, and a caller below its `access` is rejected. */
export function enforceAccess(app: FastifyInstance, dependencies: AccessDependencies) {
  const { sessions, apiTokens, audience, errors } = dependencies
  const documented = errorsOf(errors)
  app.addHook('onRoute', (route) => {
    requireAccess(route)
    const { schema, config } = route
    const needed = config?.access
    if (schema && needed && needed !== 'public')
      schema.errors = [...(schema.errors ?? []), ...documented[needed]]
  })
  app.addHook('onRequest', (request, _reply, done) => {
    try {
      const needed = accessOf(request)
      if (needed === 'public') return done()
      const token = readCredential(request.headers, errors)
      const isApiToken = prefixOf(token) === apiTokens.prefix
      const verified = isApiToken ? apiTokens.verify(token, request.ip) : sessions.verify(token)
      verified.then((caller) => admit(request, { token, caller, needed })).then(() => done(), done)
    } catch (error) {
      done(error as Error) // Only errors are thrown above.
    }
  })

  function admit(request: FastifyRequest, { token, caller, needed }: Admission) {
    const isApiToken = looksLikeApiToken(token)
    if (caller === 'expired') throw isApiToken ? errors.apiTokenExpired() : errors.tokenExpired()
    if (caller === 'invalid') {
      const other = otherServiceOf(token, audience)
      if (other) throw errors.tokenOfOtherService(other)
      throw isApiToken ? errors.apiTokenInvalid() : errors.tokenInvalid()
    }
    if (!isRoleEnough(caller.role, needed)) throw errors.forbidden(needed)
    refuseRecordLimited(request, caller)
    rememberCaller(request, caller)
  }
}

type Verified = Caller | 'invalid' | 'expired'

interface Admission {
  token: string
  caller: Verified
  needed: Exclude<Access, 'public'>
}

function refuseRecordLimited({ routeOptions, method, url }: FastifyRequest, caller: Caller) {
  const { token } = caller
  if (!token?.records || routeOptions.config.enforcesRecordLimits) return
  if (token.readsAll && (method === 'GET' || method === 'HEAD')) return
  throw outsideRecords(caller, `${method} ${url.replace(/\?.*/s, '')}`)
}

function requireAccess({ method, url, config }: RouteOptions) {
  if (isPreflight(method) || isAccess(config?.access)) return
  throw new Error(
    `The route ${[method].flat().join(', ')} ${url} must set config.access to public, viewer, editor or admin`,
  )
}

// For the OpenAPI document. Each error captures a stack, so the routes share them.
function errorsOf(errors: AuthErrors): Record<Exclude<Access, 'public'>, HttpError[]> {
  // Every role includes viewer.
  const viewer = [errors.tokenMissing(), errors.tokenExpired()]
  return {
    viewer,
    editor: [...viewer, errors.forbidden('editor')],
    admin: [...viewer, errors.forbidden('admin')],
  }
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
