import { allowsDomain, type Caller, requireWithinRecords } from '@domains-and-files/auth'
import { type App, afterQuery, forbidden, isNotModified, validationFailed } from '@domains-and-files/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { windowMs } from '../../budget/call-windows.ts'
import { readDomain } from '../../dns/domain-name.ts'
import { namedRrsets, type ZoneEdit } from '../../dns/edits/zone-edit.ts'
import { etagOf, type Zone } from '../../dns/zone.ts'
import { changeNotFound, domainNotFound } from '../../errors.ts'
import type { RegistrarClient } from '../../registrar/client.ts'
import type { WriteResult } from '../../zones/batch/evaluate-write.ts'
import { requestOf } from '../../zones/write-queue.ts'
import type { ZoneWriter } from '../../zones/zone-writer.ts'
import { Change, describeChange, setRetryAfter } from '../change-schema.ts'
import * as examples from '../openapi-examples.ts'
import { editFaults } from './record-input.ts'
import { type Answering, visibleError, WrittenAnswer } from './zone-schema.ts'

const domainOfText = z.string('must be given once').transform((text, context) => {
  const domain = readDomain(text)
  if (typeof domain !== 'string') return domain
  context.addIssue(domain)
  return z.NEVER
})

/** A domain as text, in the form in which changes are stored. */
export const DomainName = domainOfText
  .transform(({ name }) => name)
  .meta({ type: 'string', examples: [examples.domain] })

/** The domain of a path, which the caller may see: see `limitToDomains`. */
export const AtDomain = z.strictObject({
  domain: domainOfText.meta({
    type: 'string',
    description: 'the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record',
    examples: [examples.domain],
  }),
})

type AtDomain = FastifyRequest & { params: z.output<typeof AtDomain> }

/**
 * Limits every route below a domain to the domains of its caller. It runs before validation: other domains get 404,
 * whatever else is wrong with the request.
 */
export function limitToDomains(app: App): void {
  app.addHook('onRoute', ({ schema, config }) => {
    if (schema?.errors && config?.access === 'viewer') schema.errors = [...schema.errors, limitedToRecords]
  })
  app.addHook('onRequest', (request, _reply, done) => {
    const { domain: text } = request.params as { domain?: string } // Of the route's URL.
    const { access = 'public' } = request.routeOptions.config
    const domain = text === undefined || access === 'public' ? '' : readDomain(text)
    if (typeof domain === 'string' || allowsDomain(request.caller, domain.name)) return done()
    done(domainNotFound(domain.name))
  })
}

const limitedToRecords = forbidden('This token may read and write only _acme-challenge TXT, not www A')

/** Adds RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers) to every answer of routes about domains. */
export function addRateLimitHeaders(app: App, { quota }: RegistrarClient) {
  const policy = quota.windows
    .state(quota.now())
    .map(({ window, limit }) => `"${window}";q=${limit};w=${windowMs[window] / 1000}`)
    .join(', ')
  app.addHook('onSend', (request, reply, payload, done) => {
    if (request.routeOptions.url?.startsWith('/api/domains')) {
      const now = quota.now()
      const windows = quota.windows.state(now).map(({ window, left, nextFreeAt = now }) => {
        return `"${window}";r=${left};t=${Math.ceil((nextFreeAt - now) / 1000)}`
      })
      reply.header('ratelimit-policy', policy).header('ratelimit', windows.join(', '))
    }
    done(null, payload)
  })
}

export const ChangeId = z
  .string()
  .transform((text) => {
    if (!/^[1-9][0-9]{0,14}$/.test(text)) throw changeNotFound(text)
    return Number(text)
  })
  .meta({ type: 'integer', minimum: 1, description: 'the number of a change', examples: [1] })

/** The query parameter `after` of lists of changes. */
export const afterChange = afterQuery(z.int().positive())

/** What routes that read a zone have in common. */
export const reading = {
  access: 'viewer',
  tags: ['records'],
  requestHeaders: { ...examples.takesNoneMatch, ...examples.takesFresh },
  errors: examples.domainFailures,
} as const

/** The answers of a route that reads a zone. */
export const readAnswers = <Body extends z.ZodType>(
  description: string,
  body: Body,
  media: { content?: string; example?: string } = {},
) => ({
  responses: {
    200: { description, headers: { ...examples.zoneTag, ...examples.cacheHeaders }, body, ...media },
    304: { description: 'The zone is still as If-None-Match says', headers: examples.zoneTag },
  },
})

/** Answers with what `describe` makes of the zone of the path, with ETag and age; 304 where the client has the zone. */
export async function readZone<Answer>(
  request: AtDomain,
  reply: FastifyReply,
  zones: ZoneWriter,
  describe: (zone: Zone) => Answer,
) {
  const cached = await zones.read(request.params.domain, request.caller.id, wantsFresh(request))
  const etag = etagOf(cached.value)
  reply.header('etag', etag)
  setAgeHeader(reply, cached)
  const answer = describe(cached.value)
  return isNotModified(request, etag) ? reply.code(304).send() : answer
}

/** Whether the client refuses a cached answer (RFC 9111, 5.2.1). */
export const wantsFresh = (request: FastifyRequest) =>
  /\b(?:no-cache|no-store|max-age=0)\b/i.test(request.headers['cache-control'] ?? '')

/** Sets the age of a cached answer, and a warning for a stale one (RFC 7234, 5.5.1). */
export function setAgeHeader(reply: FastifyReply, cached: { age: number; stale: boolean }) {
  reply.header('age', Math.floor(cached.age / 1000)).header('cache-control', 'private, no-cache')
  if (cached.stale) reply.header('warning', '110 - "Response is Stale"')
}

const flag = (description: string) =>
  z.stringbool({ error: 'must be true or false' }).default(false).meta({ type: 'boolean', description })

export const writeQuery = {
  dry_run: flag('answers what would change, and writes nothing'),
  propose: flag('asks another person for approval, and sends nothing before'),
  force: flag('proceeds where records of a type that cannot be sent, such as SRV, would be lost'),
}

/** What all writes have in common. */
export const writing = {
  access: 'editor',
  tags: ['records'],
  requestHeaders: examples.writeHeaders,
  errors: examples.writeFailures,
  querystring: z.strictObject(writeQuery),
} as const

/** The 202 of every write. */
export const accepted = {
  body: Change,
  description:
    'With `Prefer: respond-async`: the change is queued, its outcome will be at Location. With `propose=true`, or where the caller may only propose: it waits for an approval',
  headers: {
    location: { description: 'Where the outcome can be read', example: '/api/changes/7' },
    'preference-applied': { description: 'respond-async', example: 'respond-async' },
    'retry-after': { description: 'Seconds after which to look for the outcome', example: '5' },
  },
}

/** The answers of a write that returns the whole zone. */
export const zoneAnswers = {
  responses: {
    200: { description: 'The zone as it now is, and what changed', headers: examples.zoneTag, body: WrittenAnswer },
    202: accepted,
  },
}

type WriteRequest = AtDomain & { query: { dry_run: boolean; propose: boolean; force: boolean } }

/**
 * Carries a write out, or queues it where the client prefers not to wait (RFC 7240). Rights and faults that need no zone
 * are found before. A dry run is never queued. A proposal waits for another person's approval if it changes anything.
 * @returns the body: by `describe`, with the ETag of the new zone, or the queued change with status 202.
 * @throws {HttpError} without records that the caller may not read.
 */
export async function writeZone<Answer>(
  request: WriteRequest,
  reply: FastifyReply,
  { zones, edit }: { zones: ZoneWriter; edit: ZoneEdit },
  describe: (result: WriteResult, context: Answering) => Answer,
) {
  const { caller, headers, query, id: requestId } = request
  const { domain } = request.params
  const mode = modeOf(request, caller)
  const given = {
    domain: domain.name,
    edit,
    force: query.force,
    requestId,
    ifMatch: headers['if-match'],
    // `*`: write only where there is none, of a whole zone or RRset.
    ifNoneMatch: edit.kind === 'replace' || edit.kind === 'setRrset' ? headers['if-none-match'] : undefined,
    idempotencyKey: idempotencyKeyOf(headers['idempotency-key']),
  }
  const change = requestOf(caller, given, mode)
  checkEdit(edit, { domain: domain.name, caller, isAsync: mode === 'async' || mode === 'propose' })
  try {
    const result =
      mode === 'propose'
        ? await zones.propose(domain, change)
        : mode === 'async'
          ? { change: await zones.queue.add(domain, change), zones: undefined }
          : await (mode === 'sync' ? zones.queue.write(domain, change) : zones.preview(domain, change))
    if ('change' in result) {
      const { change: stored, zones: known } = result
      setRetryAfter(reply, stored)
      reply.code(202).header('location', `/api/changes/${stored.id}`)
      if (mode === 'async') reply.header('preference-applied', 'respond-async')
      return describeChange(stored, { caller, zones: known })
    }
    reply.header('etag', etagOf(result.zone))
    return describe(result, { caller, dryRun: mode === 'dry run' })
  } catch (error) {
    throw visibleError(error, caller)
  }
}

function modeOf({ query, headers }: WriteRequest, caller: Caller) {
  if (query.dry_run) return 'dry run'
  if (query.propose || caller.writes !== undefined) return 'propose'
  // RFC 7240: preferences are listed by commas, over one or more fields; their names are case-insensitive.
  const prefer = [headers.prefer ?? []].flat().join(',')
  return /(?:^|,)\s*respond-async\s*(?:[;=,]|$)/i.test(prefer) ? 'async' : 'sync'
}

// Rights first: another fault would reveal records that the token may not read. They are checked again on the live zone.
function checkEdit(edit: ZoneEdit, { domain, caller, isAsync }: { domain: string; caller: Caller; isAsync: boolean }) {
  const zone = { domain, usesRegistrarDns: true, emailType: undefined, rows: [] }
  if (caller.records) requireWithinRecords(caller.records, namedRrsets(zone, edit))
  // Against the live zone a batch reports more faults at once, but a queued change waits too long for that.
  const isEarly = edit.kind === 'batch' && (isAsync || (edit.isSingle && edit.add))
  const faults = isEarly ? editFaults(edit, domain) : []
  if (faults.length > 0) throw validationFailed(faults)
}

function idempotencyKeyOf(key: string | string[] | undefined): string | undefined {
  if (key === undefined) return undefined
  if (typeof key === 'string' && /^[\x20-\x7e]{1,128}$/.test(key)) return key
  throw validationFailed([{ path: '/header/idempotency-key', message: 'must be 1 to 128 printable ASCII characters' }])
}
