import { type App, validationFailed } from '@domains-and-files/http'
import { z } from 'zod'
import { etagOf } from '../../dns/record.ts'
import { recordExists } from '../../errors.ts'
import type { ZoneWriter } from '../../zones/zone-writer.ts'
import { acceptedResponse, queueIfPreferred } from '../asynchronous-write.ts'
import { Change } from '../change-schema.ts'
import { record, writeFailures, writeHeaders, zone, zoneTag } from '../openapi-examples.ts'
import { domainOf, writeOf, writeQuery } from '../zone-request.ts'
import { AddedAnswer, describeOutcome } from '../zone-schema.ts'
import { addedRecordFaults } from './record-faults.ts'
import { AtType } from './record-path.ts'
import { EmailType, recordFields } from './record-schema.ts'

const NewRecord = z
  .strictObject({ ...recordFields, email_type: EmailType.optional() })
  .meta({ id: 'NewRecord', examples: [{ name: 'hello', address: '192.0.2.10' }] })

const location = {
  description: 'Where it can be read',
  example: `/api/domains/${zone.domain}/dns/hosts/${record.id}`,
}

const schema = {
  operationId: 'addRecord',
  summary: 'Add one record; the others stay',
  description:
    'Addresses by type: A and MXE an IPv4 address, AAAA an IPv6 address, CNAME, ALIAS, NS and MX a host name, CAA `0 issue "ca.example.net"`, TXT up to 2500 characters, URL, URL301 and FRAME an http or https URL.',
  tags: ['records'],
  params: AtType,
  requestHeaders: writeHeaders,
  errors: [...writeFailures, recordExists(record)],
  responses: {
    201: { description: 'The added record', headers: { location, ...zoneTag } },
    202: acceptedResponse,
  },
  querystring: z.strictObject(writeQuery),
  body: NewRecord,
  response: { 201: AddedAnswer, 202: Change },
}

/** POST /api/domains/{domain}/dns/hosts/{type} */
export function addRecord(app: App, zones: ZoneWriter) {
  app.post(
    '/api/domains/:domain/dns/hosts/:record',
    {
      config: { access: 'editor', enforcesRecordLimits: true, moreFaults: addedRecordFaults },
      schema,
    },
    async (request, reply) => {
      const faults = addedRecordFaults(request)
      if (faults.length > 0) throw validationFailed(faults)
      const domain = domainOf(request, request.params.domain)
      const { email_type: emailType, ...fields } = request.body
      const input = { ...fields, type: request.params.record.toUpperCase() }
      const write = writeOf(request, { kind: 'add', record: input, emailType })
      const queued = await queueIfPreferred(request, reply, { zones, domain, write })
      if (queued) return reply.code(202).send(queued)
      const result = await zones.write(domain, write)
      const [added] = result.added
      if (!added) throw new Error('the added record is missing from the result')
      const { warnings } = result
      return reply
        .code(201)
        .header('etag', etagOf(result.zone))
        .header('location', `/api/domains/${domain.name}/dns/hosts/${added.id}`)
        .send({
          ...added,
          ...describeOutcome(result, write.dryRun),
          ...(warnings.length > 0 ? { warnings } : {}),
        })
    },
  )
}
