import { allowsDomain, callerOf } from '@domains-and-files/auth'
import { validationFailed } from '@domains-and-files/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { type Domain, readDomain } from '../dns/domain-name.ts'
import type { ZoneEdit } from '../dns/edits/zone-edit.ts'
import { domainNotFound } from '../errors.ts'
import type { ZoneWrite } from '../zones/zone-write.ts'
import { domain as example } from './openapi-examples.ts'

// What requests of several routes have in common: the domain, freshness, and the options of a write.

const flag = (description: string) =>
  z
    .stringbool({ error: 'must be true or false' })
    .default(false)
    .meta({ type: 'boolean', description })
export const writeQuery = {
  dry_run: flag('answers what would change, and writes nothing'),
  force: flag('proceeds where records of a type that cannot be sent, such as SRV, would be lost'),
}

export const AtDomain = z.strictObject({
  domain: z.string().meta({
    description:
      'the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record',
    examples: [example],
  }),
})

/** A domain in a query, in the form in which changes are stored. */
export const DomainName = z
  .string('must be given once')
  .transform((text, context) => {
    const domain = readDomain(text)
    if (typeof domain !== 'string') return domain.name
    context.addIssue(domain)
    return z.NEVER
  })
  .meta({ type: 'string', examples: [example] })

/** The domain of a path. @throws 400 where it is none, 404 where this caller may not see it. */
export function domainOf(request: FastifyRequest, name: string): Domain {
  const domain = readDomain(name)
  if (typeof domain === 'string')
    throw validationFailed([{ path: '/path/domain', message: domain }])
  if (!allowsDomain(callerOf(request), domain.name)) throw domainNotFound(domain.name)
  return domain
}

export const ChangeId = z
  .string()
  .regex(/^[1-9][0-9]{0,14}$/, 'must be the number of a change')
  .transform(Number)
  .meta({ type: 'integer', minimum: 1, description: 'the number of a change', examples: [1] })

/** The write that a request asks for: the edit, with its preconditions, its author and its options. */
export const writeOf = (
  request: FastifyRequest & { query: { dry_run: boolean; force: boolean } },
  edit: ZoneEdit,
): ZoneWrite => ({
  ...authorOf(request),
  edit,
  ifMatch: request.headers['if-match'],
  idempotencyKey: idempotencyKeyOf(request),
  dryRun: request.query.dry_run,
  force: request.query.force,
  requestId: request.id,
})

/** The author of a write, and the limits of the API token used. */
function authorOf(request: FastifyRequest) {
  const { username, token } = callerOf(request)
  return { by: username, token: token?.name, recordLimits: token?.records }
}

function idempotencyKeyOf({ headers }: FastifyRequest): string | undefined {
  const key = headers['idempotency-key']
  if (key === undefined) return undefined
  if (typeof key === 'string' && /^[\x20-\x7e]{1,128}$/.test(key)) return key
  const message = 'must be 1 to 128 printable ASCII characters'
  throw validationFailed([{ path: '/header/idempotency-key', message }])
}

/** Whether the client refuses a cached answer (RFC 9111, 5.2.1). */
export const wantsFresh = (request: FastifyRequest) =>
  /\b(?:no-cache|no-store|max-age=0)\b/i.test(request.headers['cache-control'] ?? '')

/** Sets the age of a cached answer, and a warning for a stale one (RFC 7234, 5.5.1). */
export function tellAge(reply: FastifyReply, cached: { age: number; stale: boolean }) {
  reply.header('age', Math.floor(cached.age / 1000)).header('cache-control', 'private, no-cache')
  if (cached.stale) reply.header('warning', '110 - "Response is Stale"')
}
