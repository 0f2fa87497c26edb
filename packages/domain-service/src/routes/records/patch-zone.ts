import { callerOf } from '@domains-and-files/auth'
import type { App } from '@domains-and-files/http'
import { z } from 'zod'
import { etagOf } from '../../dns/record.ts'
import type { ZoneWriter } from '../../zones/zone-writer.ts'
import { acceptedResponse, queueIfPreferred } from '../asynchronous-write.ts'
import { Change } from '../change-schema.ts'
import { patchFailures, record, writeHeaders, zoneTag } from '../openapi-examples.ts'
import { AtDomain, domainOf, writeOf, writeQuery } from '../zone-request.ts'
import { describeWrite, WrittenAnswer } from '../zone-schema.ts'
import { listedRecordFaults } from './record-faults.ts'
import { EmailType, patchFields, recordFields, text } from './record-schema.ts'

const ZonePatch = z
  .strictObject({
    remove: z
      .array(text, 'must be a list of ids')
      .optional()
      .meta({ description: 'ids of records' }),
    update: z
      .array(
        z.strictObject({ ...patchFields, id: text }),
        'must be a list of changes, each with the id of its record',
      )
      .optional(),
    add: z
      .array(
        z.strictObject({ ...recordFields, type: text.meta({ examples: ['A'] }) }),
        'must be a list of records',
      )
      .optional(),
    email_type: EmailType.optional(),
  })
  .meta({
    id: 'ZonePatch',
    examples: [
      {
        remove: [record.id],
        add: [{ name: 'hello', type: 'A', address: '192.0.2.11' }],
      },
    ],
  })

const schema = {
  operationId: 'patchZone',
  summary: 'Remove, change and add records at once',
  description:
    'One write with all of it, or nothing. The records that are not named stay. Faults have pointers such as `/update/2/ttl`.',
  tags: ['records'],
  params: AtDomain,
  requestHeaders: writeHeaders,
  errors: patchFailures,
  responses: {
    200: { description: 'The zone as it now is, and what changed', headers: zoneTag },
    202: acceptedResponse,
  },
  querystring: z.strictObject(writeQuery),
  body: ZonePatch,
  response: { 200: WrittenAnswer, 202: Change },
}

/** PATCH /api/domains/{domain}/dns/hosts */
export function patchZone(app: App, zones: ZoneWriter) {
  app.patch(
    '/api/domains/:domain/dns/hosts',
    {
      config: {
        access: 'editor',
        enforcesRecordLimits: true,
        moreFaults: listedRecordFaults('add'),
      },
      schema,
    },
    async (request, reply) => {
      const domain = domainOf(request, request.params.domain)
      const { remove, update, add, email_type: emailType } = request.body
      const patches = update?.map(({ id, ...patch }) => ({ id, patch }))
      const write = writeOf(request, { kind: 'batch', remove, update: patches, add, emailType })
      const queued = await queueIfPreferred(request, reply, { zones, domain, write })
      if (queued) return reply.code(202).send(queued)
      const result = await zones.write(domain, write)
      return reply
        .header('etag', etagOf(result.zone))
        .send(describeWrite(result, write.dryRun, callerOf(request)))
    },
  )
}
