import { isUtf8 } from 'node:buffer'
import { type App, malformedBody, receiveBody } from '@domains-and-files/http'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { parseZoneFile } from '../../dns/zone-file/parse-zone-file.ts'
import { printZoneFile } from '../../dns/zone-file/print-zone-file.ts'
import type { ZoneWriter } from '../../zones/zone-writer.ts'
import { AtDomain, readResponses, readSchema, readZone } from './zone-request.ts'
import { describeWrite } from './zone-schema.ts'
import { writeSchema, writeZone, zoneResponses } from './zone-write.ts'

const path = '/api/domains/:domain/dns/zonefile'

/** The routes of /api/domains/{domain}/dns/zonefile, the only ones that take text/dns (RFC 4027), and nothing else. */
export async function registerZoneFileRoutes(app: App, zones: ZoneWriter) {
  await app.register(async (scope: App) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('text/dns', async (request: FastifyRequest) => {
      const body = await receiveBody(request)
      if (!isUtf8(body)) throw malformedBody('The body is not valid UTF-8')
      return body.toString()
    })
    getZoneFile(scope, zones)
    putZoneFile(scope, zones)
  })
}

const getSchema = {
  ...readSchema,
  operationId: 'getZoneFile',
  summary: 'Export the records of a domain as a zone file',
  description:
    'RFC 1035. Records and settings that DNS does not have (URL, URL301, FRAME, MXE, ALIAS, email type) are comments, which an import reads.',
  params: AtDomain,
  responses: {
    ...readResponses('The zone'),
    200: {
      ...readResponses('The zone file')[200],
      content: 'text/dns',
      example: '$ORIGIN alder-and-finch.com.\nhello\t1800\tIN\tA\t192.0.2.10\n',
    },
  },
  response: { 200: z.string(), 304: z.undefined() },
}

function getZoneFile(app: App, zones: ZoneWriter) {
  app.get(path, { config: { access: 'viewer' }, schema: getSchema }, async (request, reply) => {
    const { zone, isCurrent } = await readZone(request, reply, zones)
    if (isCurrent) return reply.code(304).send(undefined)
    return reply.type('text/dns').send(printZoneFile(zone))
  })
}

const putSchema = {
  ...writeSchema,
  ...zoneResponses,
  operationId: 'putZoneFile',
  summary: 'Replace all records of a domain by those of a zone file',
  description:
    'Deletes the records that are not in the file: preview it with `dry_run=true`. SOA and NS of the domain itself are skipped with a warning. Faults name their line: `/line/12`. At most 1 MiB.',
  params: AtDomain,
  consumes: ['text/dns'],
  body: z.string('must be a zone file').meta({ examples: ['hello 1800 IN A 192.0.2.10\n'] }),
}

function putZoneFile(app: App, zones: ZoneWriter) {
  app.put(
    path,
    { config: { access: 'editor' }, bodyLimit, schema: putSchema },
    async (request, reply) => {
      const { warnings, ...file } = parseZoneFile(request.body, request.params.domain)
      // A file that lost its content would delete every record.
      if (file.records.length === 0)
        throw malformedBody('The zone file has no record: delete records by other routes')
      const edit = { kind: 'replace', ...file } as const
      return writeZone(request, reply, { zones, edit }, (result, answering) =>
        describeWrite({ ...result, warnings: [...warnings, ...result.warnings] }, answering),
      )
    },
  )
}

const bodyLimit = 1024 * 1024
