import {
  type App,
  bodyTooLarge,
  malformedBody,
  operations,
  takeBodies,
  textOf,
  unsupportedMediaType,
} from '@domains-and-files/http'
import { z } from 'zod'
import type { ZoneEdit } from '../../dns/edits/zone-edit.ts'
import { parseZoneFile, printZoneFile } from '../../dns/zone-file/zone-file.ts'
import type { Dependencies } from '../../storage.ts'
import { record } from '../openapi-examples.ts'
import { EmailType, patchFields, Records, type RequestOf, takingRecords, text } from './record-input.ts'
import { AtDomain, readAnswers, reading, readZone, writeZone, writing, zoneAnswers } from './zone-request.ts'
import { describeWrite, describeZone, serializeOnce, ZoneAnswer } from './zone-schema.ts'

const path = '/api/domains/:domain/dns/hosts'

const NewZone = z.strictObject({ hosts: Records, email_type: EmailType.optional() }).meta({ id: 'NewZone' })

const ZonePatch = z
  .strictObject({
    remove: z.array(text, 'must be a list of ids').optional().describe('ids of records'),
    update: z
      .array(z.strictObject({ ...patchFields, id: text }), 'must be a list of changes, each with the id of its record')
      .optional(),
    add: Records.optional(),
    email_type: EmailType.optional(),
  })
  .meta({
    id: 'ZonePatch',
    examples: [{ remove: [record.id], add: [{ name: 'hello', type: 'A', address: '192.0.2.11' }] }],
  })

const reads = operations({
  shared: { ...reading, params: AtDomain },
  getZone: {
    summary: 'Read the records of a domain',
    description: 'Cached for some seconds; every write through this service refreshes the cache.',
    ...readAnswers('The zone', ZoneAnswer),
  },
  getZoneFile: {
    summary: 'Export the records of a domain as a zone file',
    description:
      'RFC 1035. Records and settings that DNS does not have (URL, URL301, FRAME, MXE, ALIAS, email type) are comments, which an import reads.',
    ...readAnswers('The zone file', z.string(), {
      content: 'text/dns',
      example: '$ORIGIN alder-and-finch.com.\nhello\t1800\tIN\tA\t192.0.2.10\n',
    }),
  },
})

const routes = operations({
  shared: { ...writing, ...zoneAnswers, params: AtDomain },
  replaceZone: {
    summary: 'Replace all records of a domain',
    description:
      'Deletes the records that are not in the list: preview it with `dry_run=true`. The list of a GET can be sent back as it is. Answers once the zone was read back and compared.',
    body: NewZone,
  },
  patchZone: {
    enforcesRecordLimits: true,
    summary: 'Remove, change and add records at once',
    description:
      'One write with all of it, or nothing. The records that are not named stay. Faults have pointers such as `/update/2/ttl`.',
    body: ZonePatch,
  },
  putZoneFile: {
    summary: 'Replace all records of a domain by those of a zone file',
    description:
      'Deletes the records that are not in the file: preview it with `dry_run=true`. SOA and NS of the domain itself are skipped with a warning. Faults name their line: `/line/12`. At most 1 MiB.',
    consumes: ['text/dns'],
    errors: [...writing.errors, bodyTooLarge(), unsupportedMediaType(['text/dns'])],
    body: z.string('must be a zone file').meta({ examples: ['hello 1800 IN A 192.0.2.10\n'] }),
  },
})

const replacementOf = ({ body }: RequestOf<typeof routes.replaceZone>): ZoneEdit => ({
  kind: 'replace',
  records: body.hosts,
  emailType: body.email_type,
})

function patchOf({ body }: RequestOf<typeof routes.patchZone>): ZoneEdit {
  const { remove, update, add, email_type: emailType } = body
  // A change that the schema has rejected is undefined.
  const patches = update?.map(({ id, ...patch } = { id: '' }) => ({ id, patch }))
  return { kind: 'batch', remove, update: patches, add, emailType }
}

/** The routes of /api/domains/{domain}/dns/hosts that concern the whole zone. */
export function registerZoneRoutes(app: App, { zones }: Dependencies) {
  app.get(path, { ...reads.getZone, serializerCompiler: serializeOnce }, (request, reply) =>
    readZone(request, reply, zones, (zone) => describeZone(zone)),
  )
  app.put(path, takingRecords(routes.replaceZone, replacementOf), async (request, reply) => {
    return writeZone(request, reply, { zones, edit: replacementOf(request) }, describeWrite)
  })
  app.patch(path, takingRecords(routes.patchZone, patchOf), async (request, reply) => {
    return writeZone(request, reply, { zones, edit: patchOf(request) }, describeWrite)
  })
}

const filePath = '/api/domains/:domain/dns/zonefile'

/** The routes of /api/domains/{domain}/dns/zonefile, the only ones that take text/dns (RFC 4027), and nothing else. */
export async function registerZoneFileRoutes(app: App, { zones }: Dependencies) {
  const write = { ...routes.putZoneFile, bodyLimit: 1024 * 1024 }
  await app.register(async (scope: App) => {
    takeBodies(scope, 'text/dns', textOf)
    scope.get(filePath, reads.getZoneFile, (request, reply) => {
      reply.type('text/dns')
      return readZone(request, reply, zones, printZoneFile)
    })
    scope.put(filePath, write, async (request, reply) => {
      const { warnings, ...file } = parseZoneFile(request.body, request.params.domain.name)
      // A file that lost its content would delete every record.
      if (file.records.length === 0) throw malformedBody('The zone file has no record: delete records by other routes')
      const edit = { kind: 'replace', ...file } as const
      return writeZone(request, reply, { zones, edit }, (result, answering) =>
        describeWrite({ ...result, warnings: [...warnings, ...result.warnings] }, answering),
      )
    })
  })
}
