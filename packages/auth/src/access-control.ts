import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import { type Access, isAccess, isRoleEnough } from './authorization.ts'
import { rememberCaller } from './caller.ts'
import type { Failures } from './errors.ts'
import type { Tokens } from './tokens/tokens.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may call this route; a route that does not say stops the boot. */
    access?: Access
  }
  // As the package http has them, which the app around brings.
  interface FastifySchema {
    failures?: readonly Error[]
    answers?: Record<number, Answer>
  }
}

interface Answer {
  description: string
  headers?: Record<string, { description: string; example: string }>
  content?: string
}

/** Lets nobody into a route whom its `access` does not admit, and no route be made that has none. */
export function guardRoutes(app: FastifyInstance, tokens: Tokens, failures: Failures) {
  app.addHook('onRoute', (route) => {
    refuseOpenRoute(route)
    tellRefusals(route, failures)
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
    const caller = tokens.verify(readToken(request.headers.authorization, failures))
    if (caller === 'expired') throw failures.tokenExpired()
    if (caller === 'invalid') throw failures.tokenInvalid()
    if (!isRoleEnough(caller.role, needed)) throw failures.forbidden(needed)
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
function tellRefusals({ schema, config }: RouteOptions, failures: Failures) {
  const needed = config?.access
  if (!schema || !needed || needed === 'public') return
  schema.failures = [
    ...(schema.failures ?? []),
    failures.tokenMissing(),
    failures.tokenExpired(),
    ...(needed === 'viewer' ? [] : [failures.forbidden(needed)]), // Everybody is a viewer at least.
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

function readToken(header: string | undefined, failures: Failures): string {
  if (header === undefined) throw failures.tokenMissing()
  const [, token] = /^bearer +([^\s,]+)$/i.exec(header) ?? []
  if (!token) throw failures.authorizationMalformed()
  return token
}
