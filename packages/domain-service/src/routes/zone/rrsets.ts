import { mayReadRrset, requireRrsetRead } from '@domains-and-files/auth'
import { type App, operations, validationFailed } from '@domains-and-files/http'
import { z } from 'zod'
import type { ZoneEdit } from '../../dns/edits/zone-edit.ts'
import { type NamedRrset, ownerOf } from '../../dns/record.ts'
import { findRrset, toRrsets } from '../../dns/zone.ts'
import { rrsetNotFound } from '../../errors.ts'
import type { Dependencies } from '../../storage.ts'
import * as examples from '../openapi-examples.ts'
import { EmailType, RecordType, type RequestOf, recordFields, TypeFilter, takingRecords, text } from './record-input.ts'
import { AtDomain, accepted, readAnswers, reading, readZone, writeZone, writing } from './zone-request.ts'
import { describePart, describeWrite, outcomeFields, WrittenAnswer, ZoneAnswer } from './zone-schema.ts'

const collection = '/api/domains/:domain/dns/rrsets'
const path = `${collection}/:name/:type`

const { name, type, ttl, address } = examples.record
const values = { description: 'addresses; of MX with the preference: 10 mx1.example.net', examples: [[address]] }

const Rrset = z
  .object({
    name: z.string().meta({ description: '@ for the domain itself', examples: [name] }),
    type: z.string().meta({ examples: [type] }),
    ttl: z.int().meta({ description: 'seconds; the lowest of the records', examples: [ttl] }),
    values: z.array(z.string()).meta(values),
    mixed_ttl: z.literal(true).optional().describe('the TTLs of the records differ'),
  })
  .meta({ id: 'Rrset' })

const AtRrset = AtDomain.extend({ name: Rrset.shape.name, type: RecordType })

const reads = operations({
  shared: { ...reading, enforcesRecordLimits: true },
  listRrsets: {
    summary: 'Read the RRsets of a domain',
    description: 'Records of one name and type together. Cached like the zone.',
    params: AtDomain,
    querystring: z.strictObject({
      name: z.string().optional().describe('only of this name; @ for the domain itself'),
      type: TypeFilter,
    }),
    ...readAnswers('The RRsets', ZoneAnswer.pick({ domain: true }).extend({ rrsets: z.array(Rrset) })),
  },
  getRrset: {
    summary: 'Read one RRset',
    description: 'All records of one name and type. PUT takes what this returns.',
    params: AtRrset,
    errors: [...examples.domainFailures, rrsetNotFound(name, type)],
    ...readAnswers('The RRset', Rrset),
  },
})

const NewRrset = z
  .strictObject({
    ttl: recordFields.ttl.describe('seconds; default: as the values that stay, else 1800'),
    values: z.array(text, 'must be a list of one or more texts').min(1).meta(values),
    email_type: EmailType.optional(),
    name: z.string().optional().describe('as in the path'),
    type: z.string().optional().describe('as in the path'),
    mixed_ttl: z.boolean().optional().describe('true: values that are there keep their TTLs'),
  })
  .meta({ id: 'NewRrset', examples: [{ ttl: 300, values: ['192.0.2.10', '192.0.2.11'] }] })

const WrittenRrset = Rrset.extend(outcomeFields).meta({ id: 'WrittenRrset' })

const routes = operations({
  shared: { ...writing, enforcesRecordLimits: true, params: AtRrset },
  setRrset: {
    summary: 'Set all records of one name and type',
    description: 'Idempotent: where the RRset is so already, nothing is written. What GET returns can be sent back.',
    requestHeaders: {
      ...examples.writeHeaders,
      'if-none-match': { description: '`*`: 412 if there is such an RRset already', example: '*' },
    },
    responses: {
      200: { description: 'The RRset as it now is', headers: examples.zoneTag, body: WrittenRrset },
      201: { description: 'The new RRset: there was none', headers: examples.zoneTag, body: WrittenRrset },
      202: accepted,
    },
    body: NewRrset,
  },
  removeRrset: {
    summary: 'Remove all records of one name and type',
    description: 'Idempotent: 204 also where there is none. `dry_run=true` previews it.',
    responses: {
      200: { description: 'What would change', headers: examples.zoneTag, body: WrittenAnswer },
      202: accepted,
      204: { description: 'There is no such RRset now', headers: examples.zoneTag },
    },
  },
})

function rrsetOf({ params, body }: RequestOf<typeof routes.setRrset>): ZoneEdit {
  const { name, type } = params
  const { values, email_type: emailType } = body
  const [ttl, newTtl] = body.mixed_ttl ? [undefined, body.ttl] : [body.ttl]
  return { kind: 'setRrset', name, type, ttl, values, emailType, newTtl }
}

// A body that was read elsewhere and sent to the wrong path would overwrite another RRset.
function requireSameRrset({ params, body }: RequestOf<typeof routes.setRrset>) {
  const { name = params.name, type = params.type } = body
  const isSame = { '/name': ownerOf(name) === ownerOf(params.name), '/type': type.toUpperCase() === params.type }
  const paths = Object.entries(isSame).flatMap(([path, same]) => (same ? [] : path))
  if (paths.length > 0) throw validationFailed(paths.map((path) => ({ path, message: 'differs from the path' })))
}

/** The routes of /api/domains/{domain}/dns/rrsets. */
export function registerRrsetRoutes(app: App, { zones }: Dependencies) {
  app.get(collection, reads.listRrsets, async (request, reply) => {
    const { name, type } = request.query
    const isWanted = (rrset: NamedRrset) =>
      mayReadRrset(request.caller, rrset.name, rrset.type) &&
      (name === undefined || rrset.name === ownerOf(name)) &&
      (type === undefined || rrset.type === type)
    return readZone(request, reply, zones, (zone) => ({ domain: zone.domain, rrsets: toRrsets(zone).filter(isWanted) }))
  })
  app.get(path, reads.getRrset, async (request, reply) => {
    const { name, type } = request.params
    requireRrsetRead(request.caller, { name: ownerOf(name), type })
    return readZone(request, reply, zones, (zone) => {
      const rrset = findRrset(zone, name, type)
      if (!rrset) throw rrsetNotFound(name, type)
      return rrset
    })
  })
  app.put(path, takingRecords(routes.setRrset, rrsetOf), async (request, reply) => {
    const { name, type } = request.params
    requireSameRrset(request)
    return writeZone(request, reply, { zones, edit: rrsetOf(request) }, (result, answering) => {
      const rrset = findRrset(result.zone, name, type) ?? findRrset(result.after, name, type)
      if (!rrset) throw new Error('the RRset is missing from the result')
      if (!findRrset(result.before, name, type)) reply.code(201)
      return describePart(rrset, result, answering)
    })
  })
  app.delete(path, routes.removeRrset, async (request, reply) => {
    const { name, type } = request.params
    const edit = { kind: 'removeRrset', name, type } as const
    return writeZone(request, reply, { zones, edit }, (result, answering) =>
      answering.dryRun ? describeWrite(result, answering) : void reply.code(204),
    )
  })
}
