import { callerOf, mayReadRrset } from '@domains-and-files/auth'
import { type App, isCurrent } from '@domains-and-files/http'
import { z } from 'zod'
import { etagOf } from '../../dns/record.ts'
import { ownerOf, toRrsets } from '../../dns/rrset.ts'
import type { ZoneWriter } from '../../zones/zone-writer.ts'
import {
  cacheHeaders,
  domainFailures,
  domain as exampleDomain,
  takesFresh,
  takesNoneMatch,
  zoneTag,
} from '../openapi-examples.ts'
import { AtDomain, domainOf, tellAge, wantsFresh } from '../zone-request.ts'
import { exampleRrset, Rrset } from './rrset-schema.ts'

const schema = {
  operationId: 'listRrsets',
  summary: 'Read the RRsets of a domain',
  description: 'Records of one name and type together. Cached like the zone.',
  tags: ['records'],
  params: AtDomain,
  requestHeaders: { ...takesNoneMatch, ...takesFresh },
  errors: domainFailures,
  responses: {
    200: { description: 'The RRsets', headers: { ...zoneTag, ...cacheHeaders } },
    304: { description: 'The zone is still as If-None-Match says', headers: zoneTag },
  },
  querystring: z.strictObject({
    name: z.string().optional().meta({ description: 'only of this name; @ for the domain itself' }),
    type: z.string().optional().meta({ description: 'only of this type, in any case' }),
  }),
  response: {
    200: z.object({ domain: z.string(), rrsets: z.array(Rrset) }).meta({
      examples: [{ domain: exampleDomain, rrsets: [exampleRrset] }],
    }),
    304: z.undefined(),
  },
}

/** GET /api/domains/{domain}/dns/rrsets */
export function listRrsets(app: App, zones: ZoneWriter) {
  app.get(
    '/api/domains/:domain/dns/rrsets',
    { config: { access: 'viewer', enforcesRecordLimits: true }, schema },
    async (request, reply) => {
      const domain = domainOf(request, request.params.domain)
      const cached = await zones.read(domain, wantsFresh(request))
      const etag = etagOf(cached.value)
      reply.header('etag', etag)
      tellAge(reply, cached)
      if (isCurrent(request.headers['if-none-match'], etag)) return reply.code(304).send(undefined)
      const { name, type } = request.query
      const rrsets = toRrsets(cached.value).filter(
        (each) =>
          mayReadRrset(callerOf(request), each.name, each.type) &&
          (name === undefined || each.name === ownerOf(name)) &&
          (type === undefined || each.type === type.toUpperCase()),
      )
      return reply.send({ domain: domain.name, rrsets })
    },
  )
}
