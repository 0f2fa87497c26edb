import type { App } from '@domains-and-files/http'
import { z } from 'zod'
import { etagOf } from '../../dns/record.ts'
import type { ZoneWriter } from '../../zones/zone-writer.ts'
import { acceptedResponse, queueIfPreferred } from '../asynchronous-write.ts'
import { Change } from '../change-schema.ts'
import { writeFailures, writeHeaders, zoneTag } from '../openapi-examples.ts'
import { typeOf } from '../records/record-path.ts'
import { domainOf, writeOf, writeQuery } from '../zone-request.ts'
import { AtRrset } from './rrset-schema.ts'

const schema = {
  operationId: 'removeRrset',
  summary: 'Remove all records of one name and type',
  description: 'Idempotent: 204 also where there is none.',
  tags: ['records'],
  params: AtRrset,
  requestHeaders: writeHeaders,
  errors: writeFailures,
  responses: {
    202: acceptedResponse,
    204: { description: 'There is no such RRset now', headers: zoneTag },
  },
  querystring: z.strictObject(writeQuery),
  response: { 202: Change, 204: z.undefined() },
}

/** DELETE /api/domains/{domain}/dns/rrsets/{name}/{type} */
export function removeRrset(app: App, zones: ZoneWriter) {
  app.delete(
    '/api/domains/:domain/dns/rrsets/:name/:type',
    { config: { access: 'editor', enforcesRecordLimits: true }, schema },
    async (request, reply) => {
      const domain = domainOf(request, request.params.domain)
      const { name } = request.params
      const type = typeOf(request.params.type)
      const write = writeOf(request, { kind: 'removeRrset', name, type })
      const queued = await queueIfPreferred(request, reply, { zones, domain, write })
      if (queued) return reply.code(202).send(queued)
      const { zone } = await zones.write(domain, write)
      return reply.code(204).header('etag', etagOf(zone)).send(undefined)
    },
  )
}
