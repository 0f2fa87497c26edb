import type { App } from '@domains-and-files/http'
import { z } from 'zod'
import { etagOf } from '../../dns/record.ts'
import type { ZoneWriter } from '../../zones/zone-writer.ts'
import { acceptedResponse, queueIfPreferred } from '../asynchronous-write.ts'
import { Change } from '../change-schema.ts'
import { writeFailures, writeHeaders, zoneTag } from '../openapi-examples.ts'
import { AtDomain, domainOf, writeOf, writeQuery } from '../zone-request.ts'
import { describeWrite, WrittenAnswer } from '../zone-schema.ts'
import { listedRecordFaults } from './record-faults.ts'
import { EmailType, recordFields, text } from './record-schema.ts'

const NewZone = z
  .strictObject({
    hosts: z.array(
      z.strictObject({ ...recordFields, type: text.meta({ examples: ['A'] }) }),
      'must be a list of records',
    ),
    email_type: EmailType.optional(),
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

const schema = {
  operationId: 'replaceZone',
  summary: 'Replace all records of a domain',
  description:
    'Deletes the records that are not in the list: preview it with `dry_run=true`. The list of a GET can be sent back as it is. Answers once the zone was read back and compared.',
  tags: ['records'],
  params: AtDomain,
  requestHeaders: writeHeaders,
  errors: writeFailures,
  responses: {
    200: { description: 'The zone as it now is, and what changed', headers: zoneTag },
    202: acceptedResponse,
  },
  querystring: z.strictObject(writeQuery),
  body: NewZone,
  response: { 200: WrittenAnswer, 202: Change },
}

/** PUT /api/domains/{domain}/dns/hosts */
export function replaceZone(app: App, zones: ZoneWriter) {
  app.put(
    '/api/domains/:domain/dns/hosts',
    { config: { access: 'editor', moreFaults: listedRecordFaults('hosts') }, schema },
    async (request, reply) => {
      const domain = domainOf(request, request.params.domain)
      const { hosts, email_type: emailType } = request.body
      const write = {
        ...writeOf(request, { kind: 'replace', records: hosts, emailType }),
        ifNoneMatch: request.headers['if-none-match'],
      }
      const queued = await queueIfPreferred(request, reply, { zones, domain, write })
      if (queued) return reply.code(202).send(queued)
      const result = await zones.write(domain, write)
      return reply.header('etag', etagOf(result.zone)).send(describeWrite(result, write.dryRun))
    },
  )
}
