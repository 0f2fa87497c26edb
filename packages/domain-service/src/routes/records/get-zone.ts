import { type App, isCurrent } from '@domains-and-files/http'
import { z } from 'zod'
import { etagOf } from '../../dns/record.ts'
import type { ZoneWriter } from '../../zones/zone-writer.ts'
import {
  cacheHeaders,
  domainFailures,
  takesFresh,
  takesNoneMatch,
  zoneTag,
} from '../openapi-examples.ts'
import { AtDomain, domainOf, tellAge, wantsFresh } from '../zone-request.ts'
import { describeZone, serializeOnce, ZoneAnswer } from '../zone-schema.ts'

const schema = {
  operationId: 'getZone',
  summary: 'Read the records of a domain',
  description: 'Cached for some seconds; every write through this service refreshes the cache.',
  tags: ['records'],
  params: AtDomain,
  requestHeaders: { ...takesNoneMatch, ...takesFresh },
  errors: domainFailures,
  responses: {
    200: { description: 'The zone', headers: { ...zoneTag, ...cacheHeaders } },
    304: { description: 'The zone is still as If-None-Match says', headers: zoneTag },
  },
  response: { 200: ZoneAnswer, 304: z.undefined() },
}

/** GET /api/domains/{domain}/dns/hosts */
export function getZone(app: App, zones: ZoneWriter) {
  app.get(
    '/api/domains/:domain/dns/hosts',
    { config: { access: 'viewer' }, schema, serializerCompiler: serializeOnce },
    async (request, reply) => {
      const cached = await zones.read(domainOf(request, request.params.domain), wantsFresh(request))
      const etag = etagOf(cached.value)
      reply.header('etag', etag)
      tellAge(reply, cached)
      if (isCurrent(request.headers['if-none-match'], etag)) return reply.code(304).send(undefined)
      return reply.send(describeZone(cached.value))
    },
  )
}
