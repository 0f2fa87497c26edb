import { callerOf, requireRrsetRead } from '@domains-and-files/auth'
import { type App, isCurrent } from '@domains-and-files/http'
import { z } from 'zod'
import { etagOf, toRecords } from '../../dns/record.ts'
import { recordNotFound } from '../../errors.ts'
import type { ZoneWriter } from '../../zones/zone-writer.ts'
import {
  cacheHeaders,
  domainFailures,
  record,
  takesFresh,
  takesNoneMatch,
  zoneTag,
} from '../openapi-examples.ts'
import { domainOf, tellAge, wantsFresh } from '../zone-request.ts'
import { HostRecord } from '../zone-schema.ts'
import { AtRecord } from './record-path.ts'

const schema = {
  operationId: 'getRecord',
  summary: 'Read one record',
  description:
    'The `ETag` is that of the whole zone: send it as `If-Match` to change what you have read.',
  tags: ['records'],
  params: AtRecord,
  requestHeaders: { ...takesNoneMatch, ...takesFresh },
  errors: [...domainFailures, recordNotFound(record.id)],
  responses: {
    200: { description: 'The record', headers: { ...zoneTag, ...cacheHeaders } },
    304: { description: 'The zone is still as If-None-Match says', headers: zoneTag },
  },
  response: { 200: HostRecord, 304: z.undefined() },
}

/** GET /api/domains/{domain}/dns/hosts/{id} */
export function getRecord(app: App, zones: ZoneWriter) {
  app.get(
    '/api/domains/:domain/dns/hosts/:record',
    { config: { access: 'viewer', enforcesRecordLimits: true }, schema },
    async (request, reply) => {
      const cached = await zones.read(domainOf(request, request.params.domain), wantsFresh(request))
      const found = toRecords(cached.value).find((each) => each.id === request.params.record)
      if (!found) throw recordNotFound(request.params.record)
      requireRrsetRead(callerOf(request), found)
      tellAge(reply, cached)
      const etag = etagOf(cached.value)
      reply.header('etag', etag)
      if (isCurrent(request.headers['if-none-match'], etag)) return reply.code(304).send(undefined)
      return reply.send(found)
    },
  )
}
