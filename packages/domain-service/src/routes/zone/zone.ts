import type { App } from '@domains-and-files/http'
import { z } from 'zod'
import type { ZoneWriter } from '../../zones/zone-writer.ts'
import { patchFailures, record } from '../openapi-examples.ts'
import { EmailType, listedRecordFaults, patchFields, Records, text } from './record-input.ts'
import { AtDomain, readResponses, readSchema, readZone } from './zone-request.ts'
import { describeWrite, describeZone, serializeOnce, ZoneAnswer } from './zone-schema.ts'
import { writeSchema, writeZone, zoneBodyLimit, zoneResponses } from './zone-write.ts'

const path = '/api/domains/:domain/dns/hosts'

/** The routes of /api/domains/{domain}/dns/hosts that concern the whole zone. */
export function registerZoneRoutes(app: App, zones: ZoneWriter) {
  getZone(app, zones)
  replaceZone(app, zones)
  patchZone(app, zones)
}

const getSchema = {
  ...readSchema,
  operationId: 'getZone',
  summary: 'Read the records of a domain',
  description: 'Cached for some seconds; every write through this service refreshes the cache.',
  params: AtDomain,
  responses: readResponses('The zone'),
  response: { 200: ZoneAnswer, 304: z.undefined() },
}

function getZone(app: App, zones: ZoneWriter) {
  app.get(
    path,
    { config: { access: 'viewer' }, schema: getSchema, serializerCompiler: serializeOnce },
    async (request, reply) => {
      const { zone, isCurrent } = await readZone(request, reply, zones)
      return isCurrent ? reply.code(304).send(undefined) : reply.send(describeZone(zone))
    },
  )
}

const NewZone = z.strictObject({ hosts: Records, email_type: EmailType.optional() }).meta({
  id: 'NewZone',
  examples: [
    {
      hosts: [
        { name: '@', type: 'A', address: '192.0.2.1' },
        { name: 'hello', type: 'A', address: '192.0.2.10', ttl: 1800 },
      ],
    },
  ],
})

const replaceSchema = {
  ...writeSchema,
  ...zoneResponses,
  operationId: 'replaceZone',
  summary: 'Replace all records of a domain',
  description:
    'Deletes the records that are not in the list: preview it with `dry_run=true`. The list of a GET can be sent back as it is. Answers once the zone was read back and compared.',
  params: AtDomain,
  body: NewZone,
}

function replaceZone(app: App, zones: ZoneWriter) {
  app.put(
    path,
    {
      config: { access: 'editor', moreFaults: listedRecordFaults('hosts') },
      bodyLimit: zoneBodyLimit,
      schema: replaceSchema,
    },
    async (request, reply) => {
      const { hosts: records, email_type: emailType } = request.body
      const edit = { kind: 'replace', records, emailType } as const
      return writeZone(request, reply, { zones, edit }, describeWrite)
    },
  )
}

const ZonePatch = z
  .strictObject({
    remove: z
      .array(text, 'must be a list of ids')
      .optional()
      .meta({ description: 'ids of records' }),
    update: z
      .array(
        z.strictObject({ ...patchFields, id: text }),
        'must be a list of changes, each with the id of its record',
      )
      .optional(),
    add: Records.optional(),
    email_type: EmailType.optional(),
  })
  .meta({
    id: 'ZonePatch',
    examples: [
      {
        remove: [record.id],
        add: [{ name: 'hello', type: 'A', address: '192.0.2.11' }],
      },
    ],
  })

const patchSchema = {
  ...writeSchema,
  ...zoneResponses,
  operationId: 'patchZone',
  summary: 'Remove, change and add records at once',
  description:
    'One write with all of it, or nothing. The records that are not named stay. Faults have pointers such as `/update/2/ttl`.',
  params: AtDomain,
  errors: patchFailures,
  body: ZonePatch,
}

function patchZone(app: App, zones: ZoneWriter) {
  app.patch(
    path,
    {
      config: {
        access: 'editor',
        enforcesRecordLimits: true,
        moreFaults: listedRecordFaults('add'),
      },
      bodyLimit: zoneBodyLimit,
      schema: patchSchema,
    },
    async (request, reply) => {
      const { remove, update, add, email_type: emailType } = request.body
      const patches = update?.map(({ id, ...patch }) => ({ id, patch }))
      const edit = { kind: 'batch', remove, update: patches, add, emailType } as const
      return writeZone(request, reply, { zones, edit }, describeWrite)
    },
  )
}
