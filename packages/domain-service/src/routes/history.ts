import { type App, Pagination, pageQuery, paginate } from '@domains-and-files/http'
import { z } from 'zod'
import { etagOf, toRecords } from '../dns/record.ts'
import { changeNotFound, domainNotFound } from '../errors.ts'
import type { ChangeHistory, HistoryEntry, Snapshot } from '../ledger/change-history.ts'
import type { ZoneWriter } from '../zones/zone-writer.ts'
import {
  change,
  domain as exampleDomain,
  pastZones,
  takesMatch,
  writeFailures,
  zoneTag,
} from './openapi-examples.ts'
import { AtDomain, domainOf, writeOf, writeQuery } from './zone-request.ts'
import { Changes, describeWrite, HostRecord, WrittenAnswer } from './zone-schema.ts'

const ChangeAnswer = z
  .object({
    id: z.int(),
    at: z.iso.datetime(),
    by: z.string().meta({ description: 'a username' }),
    request_id: z.string().meta({ description: 'the x-request-id of the write' }),
    changes: Changes,
    email_type_before: z.string().nullable(),
    email_type_after: z.string().nullable(),
  })
  .meta({ id: 'Change', examples: [change] })

const PastZone = z
  .object({ email_type: z.string().nullable(), hosts: z.array(HostRecord) })
  .meta({ id: 'PastZone', examples: [pastZones.before] })

const AtChange = AtDomain.extend({
  id: z
    .string()
    .regex(/^[1-9][0-9]{0,14}$/, 'must be the number of a change')
    .transform(Number)
    .meta({ type: 'integer', minimum: 1, description: 'the number of a change', examples: [1] }),
})

const absent = [domainNotFound(exampleDomain), changeNotFound(7)]

/** The routes of /api/domains/{domain}/dns/history. */
export function registerHistoryRoutes(app: App, journal: ChangeHistory, zones: ZoneWriter) {
  const path = '/api/domains/:domain/dns/history'
  const tags = ['history']

  app.get(
    path,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'listChanges',
        summary: 'List who changed what, newest first',
        description: 'Changes that were made through this service. It asks the registrar nothing.',
        tags,
        errors: [domainNotFound(exampleDomain)],
        responses: { 200: { description: 'One page of the history' } },
        params: AtDomain,
        querystring: z.strictObject(pageQuery(20, 100)),
        response: {
          200: z.object({ history: z.array(ChangeAnswer), pagination: Pagination }).meta({
            examples: [{ history: [change], pagination: paginate({ page: 1, page_size: 20 }, 1) }],
          }),
        },
      },
    },
    async (request) => {
      const domain = domainOf(request, request.params.domain)
      const { changes, total } = journal.list(domain.name, request.query)
      return { history: changes.map(describe), pagination: paginate(request.query, total) }
    },
  )

  app.get(
    `${path}/:id`,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getChange',
        summary: 'Read one change with the whole zone before and after it',
        tags,
        params: AtChange,
        errors: absent,
        responses: { 200: { description: 'The change, and both zones' } },
        response: {
          200: ChangeAnswer.extend({ before: PastZone, after: PastZone }).meta({
            examples: [{ ...change, ...pastZones }],
          }),
        },
      },
    },
    async (request) => {
      const domain = domainOf(request, request.params.domain)
      const change = find(domain.name, request.params.id)
      const past = (snapshot: Snapshot) => ({
        email_type: snapshot.emailType ?? null,
        hosts: toRecords({
          domain: domain.name,
          usesRegistrarDns: true,
          ...snapshot,
          emailType: snapshot.emailType,
        }),
      })
      return { ...describe(change), before: past(change.before), after: past(change.after) }
    },
  )

  app.post(
    `${path}/:id/restore`,
    {
      config: { access: 'editor' },
      schema: {
        operationId: 'restoreZone',
        summary: 'Put back the zone as it was before a change',
        description:
          'With `to=after`, the zone as that change left it. A write like any other: try it with `dry_run=true`; it goes to the history itself.',
        tags,
        requestHeaders: takesMatch,
        errors: [...writeFailures, ...absent],
        responses: {
          200: { description: 'The zone as it now is, and what changed', headers: zoneTag },
        },
        params: AtChange,
        querystring: z.strictObject({
          ...writeQuery,
          to: z
            .enum(['before', 'after'], 'must be before or after')
            .default('before')
            .meta({ description: 'which of the two zones of the change' }),
        }),
        response: { 200: WrittenAnswer },
      },
    },
    async (request, reply) => {
      const domain = domainOf(request, request.params.domain)
      const past = find(domain.name, request.params.id)[request.query.to]
      const written = await zones.write(domain, writeOf(request, { kind: 'restore', ...past }))
      reply.header('etag', etagOf(written.zone))
      return reply.send(describeWrite(written, request.query.dry_run))
    },
  )

  function find(domain: string, id: number): HistoryEntry {
    const change = journal.find(domain, id)
    if (!change) throw changeNotFound(id)
    return change
  }
}

const describe = (change: HistoryEntry) => ({
  id: change.id,
  at: change.at,
  by: change.by,
  request_id: change.requestId,
  changes: { added: change.added, removed: change.removed, kept: change.kept },
  email_type_before: change.before.emailType ?? null,
  email_type_after: change.after.emailType ?? null,
})
