import type { FastifyRequest } from 'fastify'
import type { Caller } from './authorization.ts'

const callers = new WeakMap<FastifyRequest, Caller>()

/** Attaches the authenticated caller to a request, and its name to the request's log line. */
export function rememberCaller(request: FastifyRequest, caller: Caller): void {
  callers.set(request, caller)
  request.principal = { user: caller.username, token: caller.token?.name } // For the access log.
}

/**
 * The authenticated sender of this request.
 * @throws {Error} on a public route, where nobody is authenticated: a mistake in the route.
 */
export function callerOf(request: FastifyRequest): Caller {
  const caller = callers.get(request)
  if (caller) return caller
  throw new Error(`${request.routeOptions.url} is public, so it has no caller`)
}
