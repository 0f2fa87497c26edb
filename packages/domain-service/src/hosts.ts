import { type App, validationFailed } from '@house/http'
import { z } from 'zod'
import { emailTypes } from './email-type.ts'
import { recordNotFound } from './errors.ts'
import { addRecord, checkDraft, removeRecord, replaceWith } from './plan.ts'
import { etagOf, recordTypes, toRecords, type Zone } from './record.ts'
import { AtDomain, domainOf, tellAge, wantsFresh, writeOf, writeQuery } from './request.ts'
import type { Written } from './round.ts'
import type { Draft } from './rules.ts'
import type { Zones } from './zones.ts'

export const HostRecord = z
  .object({
    id: z.string().meta({ description: '12 hex digits, from name, type, address and mx_pref' }),
    name: z.string().meta({ description: '@ for the domain itself', examples: ['www'] }),
    type: z
      .string()
      .meta({ description: `one of ${recordTypes.join(', ')}; others can be read, not written` }),
    address: z.string().meta({ examples: ['192.0.2.10'] }),
    ttl: z.int().meta({ description: 'seconds' }),
    mx_pref: z.int().optional().meta({ description: 'MX records only' }),
  })
  .meta({ id: 'HostRecord' })

export const Changes = z
  .object({ added: z.array(HostRecord), removed: z.array(HostRecord), kept: z.int() })
  .meta({ id: 'Changes' })

const ZoneAnswer = z
  .object({
    domain: z.string(),
    uses_registrar_dns: z.boolean(),
    email_type: z.string().nullable(),
    hosts: z.array(HostRecord),
  })
  .meta({ id: 'Zone' })

export const WrittenAnswer = ZoneAnswer.extend({
  dry_run: z.literal(true).optional(),
  changes: Changes,
  warnings: z.array(z.string()),
}).meta({ id: 'WrittenZone' })

const AddedAnswer = HostRecord.extend({
  dry_run: z.literal(true).optional(),
  warnings: z.array(z.string()).optional(),
}).meta({ id: 'AddedRecord' })

// Names, addresses and bounds are judged against the live zone, since what stands there unchanged is never refused.
const text = z.string('must be a text')
const integer = z.int('must be a whole number')
const EmailType = z
  .string()
  .transform((value) => value.toUpperCase())
  .pipe(z.enum(emailTypes, `must be one of ${emailTypes.join(', ')}`))
  .meta({ enum: [...emailTypes] })
const draft = {
  name: text.meta({ description: '@ for the domain itself', examples: ['www'] }),
  address: text.meta({ examples: ['192.0.2.10'] }),
  ttl: integer
    .optional()
    .meta({ description: 'seconds; 1800 unless said otherwise', minimum: 60, maximum: 60_000 }),
  mx_pref: integer
    .optional()
    .meta({ description: 'MX only; 10 unless said otherwise', minimum: 0, maximum: 65_535 }),
  id: z.string().optional().meta({ description: 'accepted, and ignored' }),
}
const Replace = z.strictObject({
  hosts: z.array(
    z.strictObject({ ...draft, type: text.meta({ examples: ['A'] }) }),
    'must be a list of records',
  ),
  email_type: EmailType.optional(),
})
const Add = z.strictObject({ ...draft, email_type: EmailType.optional() })

const unchanged = z.undefined().meta({ description: 'the zone is still as If-None-Match says' })

const AtRecord = AtDomain.extend({
  record: z
    .string()
    .meta({ description: 'a record type in any case (POST), or the id of a record' }),
})

export const describeZone = (zone: Zone) => ({
  domain: zone.domain,
  uses_registrar_dns: zone.usesRegistrarDns,
  email_type: zone.emailType ?? null,
  hosts: toRecords(zone),
})

export function describeWrite({ zone, added, removed, kept, warnings }: Written, dryRun: boolean) {
  const mark = dryRun ? { dry_run: true as const } : {}
  return { ...describeZone(zone), ...mark, changes: { added, removed, kept }, warnings }
}

/** The routes of /api/domains/{domain}/dns/hosts. */
export function serveHosts(app: App, zones: Zones) {
  const path = '/api/domains/:domain/dns/hosts'
  const tags = ['records']

  app.get(
    path,
    {
      config: { access: 'viewer' },
      schema: {
        summary: 'Read the records of a domain',
        tags,
        params: AtDomain,
        response: { 200: ZoneAnswer, 304: unchanged },
      },
    },
    async (request, reply) => {
      const cached = await zones.read(domainOf(request, request.params.domain), wantsFresh(request))
      const etag = etagOf(cached.value)
      reply.header('etag', etag)
      tellAge(reply, cached)
      if (isCurrent(request.headers['if-none-match'], etag)) return reply.code(304).send(undefined)
      return reply.send(describeZone(cached.value))
    },
  )

  app.put(
    path,
    {
      config: { access: 'editor' },
      schema: {
        summary: 'Replace all records of a domain',
        description:
          'Records that are not in the list are deleted. What GET returned can be sent back as it is.',
        tags,
        params: AtDomain,
        querystring: z.strictObject(writeQuery),
        body: Replace,
        response: { 200: WrittenAnswer },
      },
    },
    async (request, reply) => {
      const domain = domainOf(request, request.params.domain)
      const { hosts, email_type } = request.body
      const written = await zones.write(domain, writeOf(request, replaceWith(hosts, email_type)))
      reply.header('etag', etagOf(written.zone))
      return reply.send(describeWrite(written, request.query.dry_run))
    },
  )

  app.post(
    `${path}/:record`,
    {
      config: { access: 'editor' },
      schema: {
        summary: 'Add one record; the others stay',
        tags,
        params: AtRecord,
        querystring: z.strictObject(writeQuery),
        body: Add,
        response: { 201: AddedAnswer },
      },
    },
    async (request, reply) => {
      const domain = domainOf(request, request.params.domain)
      const { email_type, ...fields } = request.body
      const added: Draft = { ...fields, type: typeOf(request.params.record) }
      checkDraft(added, domain.name)
      const written = await zones.write(domain, writeOf(request, addRecord(added, email_type)))
      const [record] = written.added
      if (!record) throw new Error('an added record is not among the added ones')
      return reply
        .code(201)
        .header('etag', etagOf(written.zone))
        .header('location', `/api/domains/${domain.name}/dns/hosts/${record.id}`)
        .send({
          ...record,
          ...(request.query.dry_run ? { dry_run: true as const } : {}),
          ...(written.warnings.length > 0 ? { warnings: written.warnings } : {}),
        })
    },
  )

  app.get(
    `${path}/:record`,
    {
      config: { access: 'viewer' },
      schema: { summary: 'Read one record', tags, params: AtRecord, response: { 200: HostRecord } },
    },
    async (request, reply) => {
      const cached = await zones.read(domainOf(request, request.params.domain), wantsFresh(request))
      const record = toRecords(cached.value).find((each) => each.id === request.params.record)
      if (!record) throw recordNotFound(request.params.record)
      tellAge(reply, cached)
      return reply.send(record)
    },
  )

  app.delete(
    `${path}/:record`,
    {
      config: { access: 'editor' },
      schema: {
        summary: 'Remove one record',
        tags,
        params: AtRecord,
        querystring: z.strictObject(writeQuery),
        response: { 200: WrittenAnswer },
      },
    },
    async (request, reply) => {
      const domain = domainOf(request, request.params.domain)
      const written = await zones.write(
        domain,
        writeOf(request, removeRecord(request.params.record)),
      )
      reply.header('etag', etagOf(written.zone))
      return reply.send(describeWrite(written, request.query.dry_run))
    },
  )
}

function typeOf(text: string): string {
  const type = text.toUpperCase()
  if (recordTypes.some((known) => known === type)) return type
  const message = `must be one of ${recordTypes.join(', ')}`
  throw validationFailed([{ path: '/path/type', message }])
}

// RFC 9110, 13.1.2: weak comparison.
const isCurrent = (ifNoneMatch: string | undefined, etag: string) =>
  ifNoneMatch !== undefined &&
  (ifNoneMatch.trim() === '*' ||
    ifNoneMatch.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag))
