import { allowsDomain, callerOf } from '@domains-and-files/auth'
import { validationFailed } from '@domains-and-files/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { type Domain, readDomain } from '../dns/domain-name.ts'
import type { ZoneEdit } from '../dns/edits/zone-edit.ts'
import { domainNotFound } from '../errors.ts'
import type { ZoneWrite } from '../zones/write-batch.ts'
import { domain as example } from './openapi-examples.ts'

// What the requests of several routes say alike: which domain, how fresh, and how a write is meant.

const flag = (description: string) =>
  z
    .stringbool({ error: 'must be true or false' })
    .default(false)
    .meta({ type: 'boolean', description })
export const writeQuery = {
  dry_run: flag('tells what would change, and changes nothing'),
  force: flag('goes on where records would be lost that the registrar cannot be sent, such as SRV'),
}

export const AtDomain = z.strictObject({
  domain: z.string().meta({
    description:
      'the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record',
    examples: [example],
  }),
})

/** The domain that a path names, if this caller may see it. */
export function domainOf(request: FastifyRequest, name: string): Domain {
  const domain = readDomain(name)
  if (typeof domain === 'string')
    throw validationFailed([{ path: '/path/domain', message: domain }])
  if (!allowsDomain(callerOf(request), domain.name)) throw domainNotFound(domain.name)
  return domain
}

/** What a caller asked of a write beside the edit itself. */
export const writeOf = (
  request: FastifyRequest & { query: { dry_run: boolean; force: boolean } },
  edit: ZoneEdit,
): ZoneWrite => ({
  edit,
  ifMatch: request.headers['if-match'],
  dryRun: request.query.dry_run,
  force: request.query.force,
  by: callerOf(request).username,
  requestId: request.id,
})

/** Whether a caller wants no answer older than now (RFC 9111, 5.2.1). */
export const wantsFresh = (request: FastifyRequest) =>
  /\b(?:no-cache|no-store|max-age=0)\b/i.test(request.headers['cache-control'] ?? '')

/** Says how old a cached answer is, and warns of one that is older than it should be (RFC 7234, 5.5.1). */
export function tellAge(reply: FastifyReply, cached: { age: number; stale: boolean }) {
  reply.header('age', Math.floor(cached.age / 1000)).header('cache-control', 'private, no-cache')
  if (cached.stale) reply.header('warning', '110 - "Response is Stale"')
}
