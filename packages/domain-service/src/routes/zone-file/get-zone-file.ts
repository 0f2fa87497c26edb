import { type App, isCurrent } from '@domains-and-files/http'
import { z } from 'zod'
import { etagOf } from '../../dns/record.ts'
import { printZoneFile } from '../../dns/zone-file/print-zone-file.ts'
import type { ZoneWriter } from '../../zones/zone-writer.ts'
import {
  cacheHeaders,
  domainFailures,
  takesFresh,
  takesNoneMatch,
  zoneTag,
} from '../openapi-examples.ts'
import { AtDomain, domainOf, tellAge, wantsFresh } from '../zone-request.ts'

const schema = {
  operationId: 'getZoneFile',
  summary: 'Export the records of a domain as a zone file',
  description:
    'RFC 1035. Records and settings that DNS does not have (URL, URL301, FRAME, MXE, ALIAS, email type) are comments, which an import reads.',
  tags: ['records'],
  params: AtDomain,
  requestHeaders: { ...takesNoneMatch, ...takesFresh },
  errors: domainFailures,
  responses: {
    200: {
      description: 'The zone file',
      headers: { ...zoneTag, ...cacheHeaders },
      content: 'text/dns',
      example: '$ORIGIN alder-and-finch.com.\nhello\t1800\tIN\tA\t192.0.2.10\n',
    },
    304: { description: 'The zone is still as If-None-Match says', headers: zoneTag },
  },
  response: { 200: z.string(), 304: z.undefined() },
}

/** GET /api/domains/{domain}/dns/zonefile */
export function getZoneFile(app: App, zones: ZoneWriter) {
  app.get(
    '/api/domains/:domain/dns/zonefile',
    { config: { access: 'viewer' }, schema },
    async (request, reply) => {
      const cached = await zones.read(domainOf(request, request.params.domain), wantsFresh(request))
      const etag = etagOf(cached.value)
      reply.header('etag', etag)
      tellAge(reply, cached)
      if (isCurrent(request.headers['if-none-match'], etag)) return reply.code(304).send(undefined)
      return reply.type('text/dns').send(printZoneFile(cached.value))
    },
  )
}
