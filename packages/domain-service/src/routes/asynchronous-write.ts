import type { ResponseDoc } from '@domains-and-files/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Domain } from '../dns/domain-name.ts'
import type { ZoneWrite } from '../zones/zone-write.ts'
import type { ZoneWriter } from '../zones/zone-writer.ts'
import { describeChange } from './change-schema.ts'

/** The 202 of every write: its schema is `Change`. */
export const acceptedResponse: ResponseDoc = {
  description:
    'With `Prefer: respond-async`: the change is queued, its outcome will be at Location',
  headers: {
    location: { description: 'Where the outcome can be read', example: '/api/changes/7' },
    'preference-applied': { description: 'respond-async', example: 'respond-async' },
  },
}

/**
 * Queues a write whose client prefers not to wait (RFC 7240), and sets the headers of the 202. A dry run is always
 * answered at once.
 * @returns the body of the 202, or undefined where the write is to be carried out now.
 */
export async function queueIfPreferred(
  request: FastifyRequest,
  reply: FastifyReply,
  { zones, domain, write }: { zones: ZoneWriter; domain: Domain; write: ZoneWrite },
) {
  if (write.dryRun || !prefersAsync(request.headers.prefer)) return undefined
  const change = await zones.changes.add(domain, write)
  reply
    .header('location', `/api/changes/${change.id}`)
    .header('preference-applied', 'respond-async')
  return describeChange(change)
}

// RFC 7240: preferences are listed by commas, over one or more fields; their names are case-insensitive.
const prefersAsync = (prefer: string | string[] | undefined) =>
  [prefer ?? []]
    .flat()
    .join(',')
    .split(',')
    .some((preference) => preference.split(/[;=]/)[0]?.trim().toLowerCase() === 'respond-async')
