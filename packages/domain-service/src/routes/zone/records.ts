import { requireRrsetRead } from '@domains-and-files/auth'
import { type App, operations } from '@domains-and-files/http'
import { z } from 'zod'
import type { ZoneEdit } from '../../dns/edits/zone-edit.ts'
import { recordTypes } from '../../dns/record-types.ts'
import { changesOf, toRecords } from '../../dns/zone.ts'
import { recordNotFound } from '../../errors.ts'
import type { Dependencies } from '../../storage.ts'
import * as examples from '../openapi-examples.ts'
import { EmailType, patchFields, type RequestOf, recordFields, takingRecords } from './record-input.ts'
import { AtDomain, accepted, readAnswers, reading, readZone, writeZone, writing, zoneAnswers } from './zone-request.ts'
import { AddedAnswer, describePart, describeWrite, HostRecord } from './zone-schema.ts'

// The router knows the last segment by one name: a type where a record is added, else an id.
const path = '/api/domains/:domain/dns/hosts/:record'
const AtRecord = AtDomain.extend({
  record: z.string().meta({ description: 'its id, as in the zone', examples: [examples.record.id] }),
})

const location = {
  description: 'Where it can be read',
  example: `/api/domains/${examples.domain}/dns/hosts/${examples.record.id}`,
}

const pathOf = ({ domain }: z.output<typeof AtDomain>, id: string) => `/api/domains/${domain.name}/dns/hosts/${id}`

const { getRecord } = operations({
  shared: { ...reading, enforcesRecordLimits: true },
  getRecord: {
    summary: 'Read one record',
    description: 'The `ETag` is that of the whole zone: send it as `If-Match` to change what you have read.',
    params: AtRecord,
    errors: [...examples.domainFailures, recordNotFound(examples.record.id)],
    ...readAnswers('The record', HostRecord),
  },
})

const routes = operations({
  shared: { ...writing, enforcesRecordLimits: true },
  addRecord: {
    summary: 'Add one record; the others stay',
    description: 'One with the same name, type and address is refused: 409 `record_exists`.',
    params: AtDomain.extend({
      record: z.string().meta({ description: 'its type, in any case', enum: [...recordTypes], examples: ['A'] }),
    }),
    responses: {
      201: { description: 'The added record', headers: { location, ...examples.zoneTag }, body: AddedAnswer },
      202: accepted,
    },
    body: z
      .strictObject({ ...recordFields, email_type: EmailType.optional() })
      .meta({ id: 'NewRecord', examples: [{ name: 'hello', address: '192.0.2.10' }] }),
  },
  patchRecord: {
    summary: 'Change one record',
    description:
      'A JSON merge patch (RFC 7396), as `application/json` or `application/merge-patch+json`. `null` resets `ttl` and `mx_pref` to their defaults. The id changes with name, address and mx_pref: Location has the new one.',
    params: AtRecord,
    responses: {
      200: {
        description: 'The record as it now is',
        headers: { location: { ...location, description: 'Where it is now' }, ...examples.zoneTag },
        body: AddedAnswer,
      },
      202: accepted,
    },
    body: z
      .strictObject({ ...patchFields, id: z.string().optional().describe('ignored'), email_type: EmailType.optional() })
      .meta({ id: 'RecordPatch', examples: [{ address: '192.0.2.11' }] }),
  },
  removeRecord: {
    ...zoneAnswers,
    summary: 'Remove one record',
    description: 'All other records stay as they are. Preview it with `dry_run=true`.',
    params: AtRecord,
  },
})

function additionOf({ params, body }: RequestOf<typeof routes.addRecord>): ZoneEdit {
  const { email_type: emailType, ...fields } = body
  const add = [{ ...fields, type: params.record.toUpperCase() }]
  return { kind: 'batch', add, emailType, isSingle: true }
}

function patchOf({ params, body }: RequestOf<typeof routes.patchRecord>): ZoneEdit {
  const { email_type: emailType, id: _, ...patch } = body
  return { kind: 'batch', update: [{ id: params.record, patch }], emailType, isSingle: true }
}

/** The routes of /api/domains/{domain}/dns/hosts/{type} and …/{id}. */
export function registerRecordRoutes(app: App, { zones }: Dependencies) {
  app.post(path, takingRecords(routes.addRecord, additionOf), async (request, reply) => {
    return writeZone(request, reply, { zones, edit: additionOf(request) }, (result, answering) => {
      const [record] = changesOf(result).added
      if (!record) throw new Error('the added record is missing from the result')
      reply.code(201).header('location', pathOf(request.params, record.id))
      return describePart(record, result, answering)
    })
  })
  app.get(path, getRecord, (request, reply) =>
    readZone(request, reply, zones, (zone) => {
      const found = toRecords(zone).find(({ id }) => id === request.params.record)
      if (!found) throw recordNotFound(request.params.record)
      requireRrsetRead(request.caller, found)
      return found
    }),
  )
  app.patch(path, takingRecords(routes.patchRecord, patchOf), async (request, reply) => {
    const { record: id } = request.params
    return writeZone(request, reply, { zones, edit: patchOf(request) }, (result, answering) => {
      // A patch that changes nothing adds nothing. A later write of the batch may have removed the record.
      const patched = changesOf(result).added[0] ?? toRecords(result.after).find((each) => each.id === id)
      if (!patched) throw new Error('the patched record is missing from the result')
      if (patched.id !== id) reply.header('location', pathOf(request.params, patched.id))
      return describePart(patched, result, answering)
    })
  })
  app.delete(path, routes.removeRecord, async (request, reply) => {
    const edit: ZoneEdit = { kind: 'batch', remove: [request.params.record], isSingle: true }
    return writeZone(request, reply, { zones, edit }, describeWrite)
  })
}
