import { allowsDomain, callerOf } from '@domains-and-files/auth'
import { type App, afterQuery, isCurrent } from '@domains-and-files/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { type Domain, readDomain } from '../../dns/domain-name.ts'
import { etagOf } from '../../dns/record.ts'
import { domainNotFound } from '../../errors.ts'
import type { ZoneWriter } from '../../zones/zone-writer.ts'
import {
  cacheHeaders,
  domainFailures,
  domain as example,
  takesFresh,
  takesNoneMatch,
  zoneTag,
} from '../openapi-examples.ts'

// What requests of several routes have in common: the domain, freshness, and reading a zone.

/** A domain as text, in the form in which changes are stored. */
export const DomainName = z
  .string('must be given once')
  .transform((text, context) => {
    const domain = readDomain(text)
    if (typeof domain !== 'string') return domain.name
    context.addIssue(domain)
    return z.NEVER
  })
  .meta({ type: 'string', examples: [example] })

export const AtDomain = z.strictObject({
  domain: DomainName.meta({
    type: 'string',
    description:
      'the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record',
    examples: [example],
  }),
})

type AtDomain = FastifyRequest & { params: z.output<typeof AtDomain> }

/** The domain of a path, which this caller may see: see `limitToDomains`. */
export function domainOf(request: AtDomain): Domain {
  const domain = readDomain(request.params.domain)
  if (typeof domain === 'string') throw new Error('the path was not validated')
  return domain
}

/**
 * Limits every route below a domain to the domains of its caller, before validation: what is outside is absent, whatever else
 * is wrong with the request.
 */
export function limitToDomains(app: App): void {
  app.addHook('onRequest', (request, _reply, done) => {
    const { domain: text } = request.params as { domain?: string } // Of the route's URL.
    const { access = 'public' } = request.routeOptions.config
    const domain = text === undefined || access === 'public' ? '' : readDomain(text)
    if (typeof domain === 'string' || allowsDomain(callerOf(request), domain.name)) return done()
    done(domainNotFound(domain.name))
  })
}

export const ChangeId = z
  .string()
  .regex(/^[1-9][0-9]{0,14}$/, 'must be the number of a change')
  .transform(Number)
  .meta({ type: 'integer', minimum: 1, description: 'the number of a change', examples: [1] })

/** The query parameter `after` of lists of changes. */
export const afterChange = afterQuery(z.int().positive())

/** What the schemas of all routes share that read a zone. */
export const readSchema = {
  tags: ['records'],
  requestHeaders: { ...takesNoneMatch, ...takesFresh },
  errors: domainFailures,
}

/** The responses of a route that reads a zone. */
export const readResponses = (description: string) => ({
  200: { description, headers: { ...zoneTag, ...cacheHeaders } },
  304: { description: 'The zone is still as If-None-Match says', headers: zoneTag },
})

/** Reads the zone of the path, and sets ETag and age. `isCurrent`: the client has it, so that the response is 304. */
export async function readZone(request: AtDomain, reply: FastifyReply, zones: ZoneWriter) {
  const cached = await zones.read(domainOf(request), wantsFresh(request))
  const etag = etagOf(cached.value)
  reply.header('etag', etag)
  setAgeHeader(reply, cached)
  return { zone: cached.value, isCurrent: isCurrent(request.headers['if-none-match'], etag) }
}

/** Whether the client refuses a cached answer (RFC 9111, 5.2.1). */
export const wantsFresh = (request: FastifyRequest) =>
  /\b(?:no-cache|no-store|max-age=0)\b/i.test(request.headers['cache-control'] ?? '')

/** Sets the age of a cached answer, and a warning for a stale one (RFC 7234, 5.5.1). */
export function setAgeHeader(reply: FastifyReply, cached: { age: number; stale: boolean }) {
  reply.header('age', Math.floor(cached.age / 1000)).header('cache-control', 'private, no-cache')
  if (cached.stale) reply.header('warning', '110 - "Response is Stale"')
}
