import { type App, validationFailed } from '@domains-and-files/http'
import { z } from 'zod'
import { etagOf } from '../../dns/record.ts'
import { findRrset, ownerOf } from '../../dns/rrset.ts'
import { recordConflict } from '../../errors.ts'
import type { ZoneWriter } from '../../zones/zone-writer.ts'
import { acceptedResponse, queueIfPreferred } from '../asynchronous-write.ts'
import { Change } from '../change-schema.ts'
import { createsOnly, record, writeFailures, writeHeaders, zoneTag } from '../openapi-examples.ts'
import { rrsetFaults } from '../records/record-faults.ts'
import { typeOf } from '../records/record-path.ts'
import { EmailType, recordFields, text } from '../records/record-schema.ts'
import { domainOf, writeOf, writeQuery } from '../zone-request.ts'
import { describeOutcome, outcomeFields } from '../zone-schema.ts'
import { AtRrset, exampleRrset, Rrset } from './rrset-schema.ts'

const NewRrset = z
  .strictObject({
    ttl: recordFields.ttl.meta({
      description: 'seconds; default: as the values that stay, else 1800',
      minimum: 60,
      maximum: 60_000,
    }),
    values: z
      .array(text, 'must be a list of texts')
      .meta({ description: 'addresses; of MX with the preference: 10 mx1.example.net' }),
    email_type: EmailType.optional(),
    name: z.string().optional().meta({ description: 'as in the path' }),
    type: z.string().optional().meta({ description: 'as in the path' }),
    mixed_ttl: z.boolean().optional().meta({ description: 'true: each value keeps its TTL' }),
  })
  .meta({ id: 'NewRrset', examples: [{ ttl: 300, values: ['192.0.2.10', '192.0.2.11'] }] })

const WrittenRrset = Rrset.extend(outcomeFields).meta({
  id: 'WrittenRrset',
  examples: [exampleRrset],
})

const schema = {
  operationId: 'setRrset',
  summary: 'Set all records of one name and type',
  description:
    'Idempotent: where the RRset is so already, nothing is written. What GET returns can be sent back.',
  tags: ['records'],
  params: AtRrset,
  requestHeaders: { ...writeHeaders, ...createsOnly },
  errors: [...writeFailures, recordConflict(record, record, 'a CNAME must be alone at its name')],
  responses: {
    200: { description: 'The RRset as it now is', headers: zoneTag },
    201: { description: 'The new RRset: there was none', headers: zoneTag },
    202: acceptedResponse,
  },
  querystring: z.strictObject(writeQuery),
  body: NewRrset,
  response: {
    200: WrittenRrset,
    201: WrittenRrset,
    202: Change,
  },
}

/** PUT /api/domains/{domain}/dns/rrsets/{name}/{type} */
export function setRrset(app: App, zones: ZoneWriter) {
  app.put(
    '/api/domains/:domain/dns/rrsets/:name/:type',
    {
      config: { access: 'editor', enforcesRecordLimits: true, moreFaults: rrsetFaults },
      schema,
    },
    async (request, reply) => {
      const domain = domainOf(request, request.params.domain)
      const key = { name: request.params.name, type: typeOf(request.params.type) }
      demandSame(request.body, key)
      const { values, mixed_ttl, email_type: emailType } = request.body
      const ttl = mixed_ttl ? undefined : request.body.ttl
      const write = {
        ...writeOf(request, { kind: 'setRrset', ...key, ttl, values, emailType }),
        ifNoneMatch: request.headers['if-none-match'],
      }
      const queued = await queueIfPreferred(request, reply, { zones, domain, write })
      if (queued) return reply.code(202).send(queued)
      const result = await zones.write(domain, write)
      const rrset = findRrset(result.zone, key.name, key.type)
      if (!rrset) throw new Error('the RRset is missing from the result')
      const isNew = findRrset(result.before, key.name, key.type) === undefined
      const { warnings } = result
      return reply
        .code(isNew ? 201 : 200)
        .header('etag', etagOf(result.zone))
        .send({
          ...rrset,
          ...describeOutcome(result, write.dryRun),
          ...(warnings.length > 0 ? { warnings } : {}),
        })
    },
  )
}

// A body that was read elsewhere and sent to the wrong path would overwrite another RRset.
function demandSame(
  body: { name?: string | undefined; type?: string | undefined },
  key: { name: string; type: string },
) {
  const faults = [
    ...(body.name === undefined || ownerOf(body.name) === ownerOf(key.name) ? [] : ['/name']),
    ...(body.type === undefined || body.type.toUpperCase() === key.type ? [] : ['/type']),
  ]
  if (faults.length > 0)
    throw validationFailed(faults.map((path) => ({ path, message: 'differs from the path' })))
}
