import {
  type App,
  answers,
  longListSchema,
  operations,
  pageOf,
  pageQuery,
  uncheckedJson,
} from '@domains-and-files/http'
import { z } from 'zod'
import { toRecords, type Zone } from '../dns/zone.ts'
import { changeNotFound, domainNotFound, revertConflict } from '../errors.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Dependencies } from '../storage.ts'
import { describeEntry, HistoryEntry, RecordedEmailType } from './change-schema.ts'
import * as examples from './openapi-examples.ts'
import { AtDomain, afterChange, ChangeId, writeQuery, writeZone, writing, zoneAnswers } from './zone/zone-request.ts'
import { describeWrite, HostRecord } from './zone/zone-schema.ts'

const path = '/api/domains/:domain/dns/history'
const tags = ['history']

const PastZone = z.object({ email_type: RecordedEmailType, hosts: z.array(HostRecord) }).meta({ id: 'PastZone' })

const EntryWithZones = HistoryEntry.extend({
  before: PastZone.meta({ examples: [{ email_type: 'NONE', hosts: [] }] }),
  after: PastZone,
})

const AtEntry = AtDomain.extend({ id: ChangeId })

const reads = operations({
  shared: { access: 'viewer', tags },
  listHistory: {
    summary: 'List who changed what in a domain, newest first',
    description: 'Changes made through this service that reached the registrar. Costs no call to the registrar.',
    errors: [domainNotFound(examples.domain)],
    params: AtDomain,
    querystring: z.strictObject({ ...pageQuery(50, 200), ...afterChange }),
    ...answers(200, 'One page of the history', longListSchema('history', HistoryEntry)),
  },
  getHistoryEntry: {
    summary: 'Read one change with the whole zone before and after it',
    description: 'A restore writes one of these two zones.',
    params: AtEntry,
    errors: [domainNotFound(examples.domain), changeNotFound(7)],
    ...answers(200, 'The change, and both zones', EntryWithZones),
  },
})

const writes = operations({
  // Options are in the query: `{"to": "after"}` in the body must not restore the zone before.
  shared: { ...writing, ...zoneAnswers, tags, params: AtEntry, body: z.strictObject({}).nullish() },
  restoreZone: {
    summary: 'Restore the zone as it was before a change',
    description:
      'With `to=after`: as the change left it. A write like any other: `dry_run=true` previews it, and the history records it.',
    errors: [...examples.writeFailures, changeNotFound(7)],
    querystring: z.strictObject({
      ...writeQuery,
      to: z
        .enum(['before', 'after'], 'must be before or after')
        .default('before')
        .describe('which of the two zones of the change'),
    }),
  },
  revertChange: {
    summary: 'Undo one change and keep the later ones',
    description: '409 `revert_conflict` where a later change touched the same records.',
    errors: [...examples.writeFailures, changeNotFound(7), revertConflict('hello A 192.0.2.10 was changed since')],
  },
})

/** The routes of /api/domains/{domain}/dns/history. */
export function registerHistoryRoutes(app: App, { ledger, zones }: Dependencies) {
  app.get(path, { ...reads.listHistory, serializerCompiler: uncheckedJson }, async (request, reply) => {
    const { caller } = request
    const filter = { domain: request.params.domain.name, sentOnly: true }
    const { changes, ...page } = await ledger.list(filter, request.query)
    return { history: changes.map((change) => describeEntry(change, { caller })), ...pageOf(request, reply, page) }
  })
  app.get(`${path}/:id`, reads.getHistoryEntry, async (request) => {
    const { change, zones } = await findEntry(ledger, request.params)
    const describe = (zone: Zone) => ({ email_type: zone.emailType ?? null, hosts: toRecords(zone) })
    return {
      ...describeEntry(change, { caller: request.caller, zones }),
      before: describe(zones.before),
      after: describe(zones.after),
    }
  })
  app.post(`${path}/:id/restore`, writes.restoreZone, async (request, reply) => {
    const { emailType, rows } = (await findEntry(ledger, request.params)).zones[request.query.to]
    return writeZone(request, reply, { zones, edit: { kind: 'restore', emailType, rows } }, describeWrite)
  })
  app.post(`${path}/:id/revert`, writes.revertChange, async (request, reply) => {
    const { before, after, added, removed } = (await findEntry(ledger, request.params)).zones
    const emailTypes = { emailTypeBefore: before.emailType, emailTypeAfter: after.emailType }
    const edit = { kind: 'revert', added, removed, ...emailTypes } as const
    return writeZone(request, reply, { zones, edit }, describeWrite)
  })
}

async function findEntry(ledger: Ledger, { domain, id }: z.output<typeof AtEntry>) {
  const change = await ledger.find(id)
  const zones = await ledger.zonesOf(id)
  if (change?.domain !== domain.name || !change.sent_at || !zones) throw changeNotFound(id)
  return { change, zones }
}
