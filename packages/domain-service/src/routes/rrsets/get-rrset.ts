import { callerOf, requireRrsetRead } from '@domains-and-files/auth'
import { type App, isCurrent } from '@domains-and-files/http'
import { z } from 'zod'
import { etagOf } from '../../dns/record.ts'
import { findRrset, ownerOf } from '../../dns/rrset.ts'
import { rrsetNotFound } from '../../errors.ts'
import type { ZoneWriter } from '../../zones/zone-writer.ts'
import {
  cacheHeaders,
  domainFailures,
  takesFresh,
  takesNoneMatch,
  zoneTag,
} from '../openapi-examples.ts'
import { typeOf } from '../records/record-path.ts'
import { domainOf, tellAge, wantsFresh } from '../zone-request.ts'
import { AtRrset, exampleRrset, Rrset } from './rrset-schema.ts'

const schema = {
  operationId: 'getRrset',
  summary: 'Read one RRset',
  description: 'All records of one name and type. PUT takes what this returns.',
  tags: ['records'],
  params: AtRrset,
  requestHeaders: { ...takesNoneMatch, ...takesFresh },
  errors: [...domainFailures, rrsetNotFound(exampleRrset.name, exampleRrset.type)],
  responses: {
    200: { description: 'The RRset', headers: { ...zoneTag, ...cacheHeaders } },
    304: { description: 'The zone is still as If-None-Match says', headers: zoneTag },
  },
  response: { 200: Rrset, 304: z.undefined() },
}

/** GET /api/domains/{domain}/dns/rrsets/{name}/{type} */
export function getRrset(app: App, zones: ZoneWriter) {
  app.get(
    '/api/domains/:domain/dns/rrsets/:name/:type',
    { config: { access: 'viewer', enforcesRecordLimits: true }, schema },
    async (request, reply) => {
      const domain = domainOf(request, request.params.domain)
      const { name } = request.params
      const type = typeOf(request.params.type)
      requireRrsetRead(callerOf(request), { name: ownerOf(name), type })
      const cached = await zones.read(domain, wantsFresh(request))
      const rrset = findRrset(cached.value, name, type)
      if (!rrset) throw rrsetNotFound(name, type)
      tellAge(reply, cached)
      const etag = etagOf(cached.value)
      reply.header('etag', etag)
      if (isCurrent(request.headers['if-none-match'], etag)) return reply.code(304).send(undefined)
      return reply.send(rrset)
    },
  )
}
