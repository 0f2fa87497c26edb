import type { App } from '@domains-and-files/http'
import { z } from 'zod'
import { etagOf, toRecords } from '../../dns/record.ts'
import type { WriteResult } from '../../zones/zone-write.ts'
import type { ZoneWriter } from '../../zones/zone-writer.ts'
import { acceptedResponse, queueIfPreferred } from '../asynchronous-write.ts'
import { Change } from '../change-schema.ts'
import { patchFailures, writeHeaders, zoneTag } from '../openapi-examples.ts'
import { domainOf, writeOf, writeQuery } from '../zone-request.ts'
import { AddedAnswer, describeOutcome } from '../zone-schema.ts'
import { AtRecord } from './record-path.ts'
import { EmailType, patchFields } from './record-schema.ts'

const RecordPatch = z
  .strictObject({
    ...patchFields,
    id: z.string().optional().meta({ description: 'ignored' }),
    email_type: EmailType.optional(),
  })
  .meta({ id: 'RecordPatch', examples: [{ address: '192.0.2.11' }] })

const schema = {
  operationId: 'patchRecord',
  summary: 'Change one record',
  description:
    'A JSON merge patch (RFC 7396), as `application/json` or `application/merge-patch+json`. `null` resets `ttl` and `mx_pref` to their defaults. The id changes with name, address and mx_pref.',
  tags: ['records'],
  params: AtRecord,
  requestHeaders: writeHeaders,
  errors: patchFailures,
  responses: {
    200: { description: 'The record as it now is', headers: zoneTag },
    202: acceptedResponse,
  },
  querystring: z.strictObject(writeQuery),
  body: RecordPatch,
  response: { 200: AddedAnswer, 202: Change },
}

/** PATCH /api/domains/{domain}/dns/hosts/{id} */
export function patchRecord(app: App, zones: ZoneWriter) {
  app.patch(
    '/api/domains/:domain/dns/hosts/:record',
    { config: { access: 'editor', enforcesRecordLimits: true }, schema },
    async (request, reply) => {
      const domain = domainOf(request, request.params.domain)
      const { email_type: emailType, id: _, ...patch } = request.body
      const id = request.params.record
      const write = writeOf(request, { kind: 'update', id, patch, emailType })
      const queued = await queueIfPreferred(request, reply, { zones, domain, write })
      if (queued) return reply.code(202).send(queued)
      const result = await zones.write(domain, write)
      const { warnings } = result
      return reply.header('etag', etagOf(result.zone)).send({
        ...patchedRecord(result, id),
        ...describeOutcome(result, write.dryRun),
        ...(warnings.length > 0 ? { warnings } : {}),
      })
    },
  )
}

// A patch that changes nothing adds nothing.
function patchedRecord({ zone, added }: WriteResult, id: string) {
  const patched = added[0] ?? toRecords(zone).find((each) => each.id === id)
  if (!patched) throw new Error('the patched record is missing from the result')
  return patched
}
