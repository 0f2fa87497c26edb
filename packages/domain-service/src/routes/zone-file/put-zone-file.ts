import type { App } from '@domains-and-files/http'
import { z } from 'zod'
import { etagOf } from '../../dns/record.ts'
import { parseZoneFile } from '../../dns/zone-file/parse-zone-file.ts'
import type { ZoneWriter } from '../../zones/zone-writer.ts'
import { acceptedResponse, queueIfPreferred } from '../asynchronous-write.ts'
import { Change } from '../change-schema.ts'
import { writeFailures, writeHeaders, zoneTag } from '../openapi-examples.ts'
import { AtDomain, domainOf, writeOf, writeQuery } from '../zone-request.ts'
import { describeWrite, WrittenAnswer } from '../zone-schema.ts'

const schema = {
  operationId: 'putZoneFile',
  summary: 'Replace all records of a domain by those of a zone file',
  description:
    'Deletes the records that are not in the file: preview it with `dry_run=true`. SOA and NS of the domain itself are skipped with a warning. Faults name their line: `/line/12`.',
  tags: ['records'],
  params: AtDomain,
  requestHeaders: writeHeaders,
  errors: writeFailures,
  responses: {
    200: { description: 'The zone as it now is, and what changed', headers: zoneTag },
    202: acceptedResponse,
  },
  consumes: ['text/dns'],
  querystring: z.strictObject(writeQuery),
  body: z.string('must be a zone file').meta({ examples: ['hello 1800 IN A 192.0.2.10\n'] }),
  response: { 200: WrittenAnswer, 202: Change },
}

/** PUT /api/domains/{domain}/dns/zonefile */
export function putZoneFile(app: App, zones: ZoneWriter) {
  app.put(
    '/api/domains/:domain/dns/zonefile',
    { config: { access: 'editor' }, bodyLimit, schema },
    async (request, reply) => {
      const domain = domainOf(request, request.params.domain)
      const { warnings, ...file } = parseZoneFile(request.body, domain.name)
      const write = {
        ...writeOf(request, { kind: 'replace', ...file }),
        ifNoneMatch: request.headers['if-none-match'],
      }
      const queued = await queueIfPreferred(request, reply, { zones, domain, write })
      if (queued) return reply.code(202).send(queued)
      const result = await zones.write(domain, write)
      const all = { ...result, warnings: [...warnings, ...result.warnings] }
      return reply.header('etag', etagOf(result.zone)).send(describeWrite(all, write.dryRun))
    },
  )
}

// 150 TXT records of 2500 characters, each character four octets as \DDD.
const bodyLimit = 8 * 1024 * 1024
