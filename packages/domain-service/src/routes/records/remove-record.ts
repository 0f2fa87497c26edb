import { callerOf } from '@domains-and-files/auth'
import type { App } from '@domains-and-files/http'
import { z } from 'zod'
import { etagOf } from '../../dns/record.ts'
import { recordNotFound } from '../../errors.ts'
import type { ZoneWriter } from '../../zones/zone-writer.ts'
import { acceptedResponse, queueIfPreferred } from '../asynchronous-write.ts'
import { Change } from '../change-schema.ts'
import { record, writeFailures, writeHeaders, zoneTag } from '../openapi-examples.ts'
import { domainOf, writeOf, writeQuery } from '../zone-request.ts'
import { describeWrite, WrittenAnswer } from '../zone-schema.ts'
import { AtRecord } from './record-path.ts'

const schema = {
  operationId: 'removeRecord',
  summary: 'Remove one record',
  description: 'All other records stay as they are. Preview it with `dry_run=true`.',
  tags: ['records'],
  params: AtRecord,
  requestHeaders: writeHeaders,
  errors: [...writeFailures, recordNotFound(record.id)],
  responses: {
    200: { description: 'The zone as it now is, and what changed', headers: zoneTag },
    202: acceptedResponse,
  },
  querystring: z.strictObject(writeQuery),
  response: { 200: WrittenAnswer, 202: Change },
}

/** DELETE /api/domains/{domain}/dns/hosts/{id} */
export function removeRecord(app: App, zones: ZoneWriter) {
  app.delete(
    '/api/domains/:domain/dns/hosts/:record',
    { config: { access: 'editor', enforcesRecordLimits: true }, schema },
    async (request, reply) => {
      const domain = domainOf(request, request.params.domain)
      const write = writeOf(request, { kind: 'remove', id: request.params.record })
      const queued = await queueIfPreferred(request, reply, { zones, domain, write })
      if (queued) return reply.code(202).send(queued)
      const result = await zones.write(domain, write)
      return reply
        .header('etag', etagOf(result.zone))
        .send(describeWrite(result, write.dryRun, callerOf(request)))
    },
  )
}
