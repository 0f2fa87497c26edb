import { callerOf } from '@domains-and-files/auth'
import type { FastifyRequest } from 'fastify'
import type { Actor } from '../catalog/changes/change-entry.ts'

/** The caller of a request, as the entry of a change names it. */
export function actorOf(request: FastifyRequest): Actor {
  const { username, token } = callerOf(request)
  return { by: username, token: token?.name ?? null, requestId: request.id }
}
