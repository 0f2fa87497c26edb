import { type App, isCurrent, validationFailed } from '@domains-and-files/http'
import { z } from 'zod'
import { validateInput } from '../dns/edits/edit-records.ts'
import { emailTypes } from '../dns/email-type.ts'
import { etagOf, recordTypes, toRecords } from '../dns/record.ts'
import type { RecordInput } from '../dns/record-validation.ts'
import { recordExists, recordNotFound } from '../errors.ts'
import type { ZoneWriter } from '../zones/zone-writer.ts'
import {
  cacheHeaders,
  domainFailures,
  record,
  takesFresh,
  takesMatch,
  takesNoneMatch,
  writeFailures,
  zone,
  zoneTag,
} from './openapi-examples.ts'
import { AtDomain, domainOf, tellAge, wantsFresh, writeOf, writeQuery } from './zone-request.ts'
import {
  AddedAnswer,
  describeWrite,
  describeZone,
  HostRecord,
  WrittenAnswer,
  ZoneAnswer,
} from './zone-schema.ts'

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
const Replace = z
  .strictObject({
    hosts: z.array(
      z.strictObject({ ...draft, type: text.meta({ examples: ['A'] }) }),
      'must be a list of records',
    ),
    email_type: EmailType.optional().meta({ description: 'kept as it is unless said otherwise' }),
  })
  .meta({
    id: 'NewZone',
    examples: [
      {
        hosts: [
          { name: '@', type: 'A', address: '192.0.2.1' },
          { name: 'hello', type: 'A', address: '192.0.2.10', ttl: 1800 },
        ],
      },
    ],
  })
const Add = z
  .strictObject({
    ...draft,
    email_type: EmailType.optional().meta({ description: 'kept as it is unless said otherwise' }),
  })
  .meta({ id: 'NewRecord', examples: [{ name: 'hello', address: '192.0.2.10' }] })

const unchanged = z.undefined()

// One place in the path, which the router knows by one name: a type where a record is added, else an id.
const AtType = AtDomain.extend({
  record: z
    .string()
    .meta({ description: 'its type, in any case', enum: [...recordTypes], examples: ['A'] }),
})
const AtRecord = AtDomain.extend({
  record: z.string().meta({ description: 'its id, as the zone tells it', examples: [record.id] }),
})

/** The routes of /api/domains/{domain}/dns/hosts. */
export function registerRecordRoutes(app: App, zones: ZoneWriter) {
  const path = '/api/domains/:domain/dns/hosts'
  const tags = ['records']

  app.get(
    path,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getZone',
        summary: 'Read the records of a domain',
        description: 'From a cache of some seconds; every write through this service refreshes it.',
        tags,
        params: AtDomain,
        requestHeaders: { ...takesNoneMatch, ...takesFresh },
        errors: domainFailures,
        responses: {
          200: { description: 'The zone', headers: { ...zoneTag, ...cacheHeaders } },
          304: { description: 'The zone is still as If-None-Match says', headers: zoneTag },
        },
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
        operationId: 'replaceZone',
        summary: 'Replace all records of a domain',
        description:
          'Records that are not in the list are deleted: try it with `dry_run=true`. The list that GET returned can be sent back as it is. Answered when the registrar has the zone, read back and compared.',
        tags,
        params: AtDomain,
        requestHeaders: takesMatch,
        errors: writeFailures,
        responses: {
          200: { description: 'The zone as it now is, and what changed', headers: zoneTag },
        },
        querystring: z.strictObject(writeQuery),
        body: Replace,
        response: { 200: WrittenAnswer },
      },
    },
    async (request, reply) => {
      const domain = domainOf(request, request.params.domain)
      const { hosts, email_type } = request.body
      const written = await zones.write(
        domain,
        writeOf(request, { kind: 'replace', records: hosts, emailType: email_type }),
      )
      reply.header('etag', etagOf(written.zone))
      return reply.send(describeWrite(written, request.query.dry_run))
    },
  )

  app.post(
    `${path}/:record`,
    {
      config: { access: 'editor' },
      schema: {
        operationId: 'addRecord',
        summary: 'Add one record; the others stay',
        description:
          'The rules of each type: A and MXE an IPv4 address, AAAA an IPv6 address, CNAME, ALIAS, NS and MX a host name, CAA `0 issue "ca.example.net"`, TXT up to 2500 characters, URL, URL301 and FRAME an http or https URL.',
        tags,
        params: AtType,
        requestHeaders: takesMatch,
        errors: [...writeFailures, recordExists(record)],
        responses: {
          201: {
            description: 'The record that was added',
            headers: {
              location: {
                description: 'Where it can be read',
                example: `/api/domains/${zone.domain}/dns/hosts/${record.id}`,
              },
              ...zoneTag,
            },
          },
        },
        querystring: z.strictObject(writeQuery),
        body: Add,
        response: { 201: AddedAnswer },
      },
    },
    async (request, reply) => {
      const domain = domainOf(request, request.params.domain)
      const { email_type, ...fields } = request.body
      const added: RecordInput = { ...fields, type: typeOf(request.params.record) }
      validateInput(added, domain.name)
      const written = await zones.write(
        domain,
        writeOf(request, { kind: 'add', record: added, emailType: email_type }),
      )
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
      schema: {
        operationId: 'getRecord',
        summary: 'Read one record',
        tags,
        params: AtRecord,
        requestHeaders: takesFresh,
        errors: [...domainFailures, recordNotFound(record.id)],
        responses: { 200: { description: 'The record', headers: cacheHeaders } },
        response: { 200: HostRecord },
      },
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
        operationId: 'removeRecord',
        summary: 'Remove one record',
        tags,
        params: AtRecord,
        requestHeaders: takesMatch,
        errors: [...writeFailures, recordNotFound(record.id)],
        responses: {
          200: { description: 'The zone as it now is, and what changed', headers: zoneTag },
        },
        querystring: z.strictObject(writeQuery),
        response: { 200: WrittenAnswer },
      },
    },
    async (request, reply) => {
      const domain = domainOf(request, request.params.domain)
      const written = await zones.write(
        domain,
        writeOf(request, { kind: 'remove', id: request.params.record }),
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
