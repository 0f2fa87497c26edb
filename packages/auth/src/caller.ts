import type { FastifyRequest } from 'fastify'
import type { Caller } from './authorization.ts'

const callers = new WeakMap<FastifyRequest, Caller>()

export function rememberCaller(request: FastifyRequest, caller: Caller): void {
  callers.set(request, caller)
  request.principal = { user: caller.username } // For the access log.
}

/**
 * Who sent this request.
 * @throws {Error} on a public route, where nobody was asked: that is a mistake in the route.
 */
export function callerOf(request: FastifyRequest): Caller {
  const caller = callers.get(request)
  if (caller) return caller
  throw new Error(`Nobody was asked who they are at ${request.routeOptions.url}: it is public`)
}
