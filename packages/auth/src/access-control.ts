import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import { type Access, isAccess, isRoleEnough } from './authorization.ts'
import { rememberCaller } from './caller.ts'
import type { AuthErrors } from './errors.ts'
import type { Tokens } from './tokens/tokens.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may call this route; a route that does not say stops the boot. */
    access?: Access
  }
  // As the package http has them, which the app around brings.
  interface FastifySchema {
    errors?: readonly Error[]
    responses?: Record<number, Answer>
  }
}

interface Answer {
  description: string
  headers?: Record<string, { description: string; example: string }>
  content?: string
}

/** Lets nobody into a route whom its `access` does not admit, and no route be made that has none. */
export function enforceAccess(app: FastifyInstance, tokens: Tokens, errors: AuthErrors) {
  app.addHook('onRoute', (route) => {
    refuseOpenRoute(route)
    tellRefusals(route, errors)
  })
  app.addHook('onRequest', (request, _reply, done) => {
    try {
      admit(request)
      done()
    } catch (error) {
      done(error as Error) // Thrown just below.
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

function refuseOpenRoute({ method, url, config }: RouteOptions) {
  if (isPreflight(method) || isAccess(config?.access)) return
  throw new Error(
    `The route ${[method].flat().join(', ')} ${url} must set config.access to public, viewer, editor or admin`,
  )
}

// For the description of the API.
function tellRefusals({ schema, config }: RouteOptions, errors: AuthErrors) {
  const needed = config?.access
  if (!schema || !needed || needed === 'public') return
  schema.errors = [
    ...(schema.errors ?? []),
    errors.tokenMissing(),
    errors.tokenExpired(),
    ...(needed === 'viewer' ? [] : [errors.forbidden(needed)]), // Everybody is a viewer at least.
  ]
}

function accessOf(request: FastifyRequest): Access {
  const { config, method, url } = request.routeOptions
  if (request.is404) return 'public'
  if (isAccess(config.access)) return config.access
  if (isPreflight(method)) return 'public'
  throw new Error(`The route ${url} was made before the plugin auth, and without config.access`)
}

// A browser asks OPTIONS without credentials before it sends them (Fetch, CORS preflight), so it cannot be guarded.
const isPreflight = (method: string | string[] | undefined) =>
  method !== undefined && [method].flat().every((name) => name === 'OPTIONS')

function readToken(header: string | undefined, errors: AuthErrors): string {
  if (header === undefined) throw errors.tokenMissing()
  const [, token] = /^bearer +([^\s,]+)$/i.exec(header) ?? []
  if (!token) throw errors.authorizationMalformed()
  return token
}
