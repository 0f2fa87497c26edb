import { type App, answers, eachAnswer, isCurrent, operations } from '@domains-and-files/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Catalog } from '../../catalog/catalog.ts'
import { fileNotFound, preconditionFailed } from '../../errors.ts'
import { hasEncodedSlash, readUrlPath } from '../../files/file-path.ts'
import { LruLoader } from '../../serving/content-stream.ts'
import { actorOf } from '../callers.ts'
import { file, ifMatchHeader, ifNoneMatchHeader, recordTag } from '../openapi-examples.ts'
import { FileRecord } from './file-schema.ts'
import { conditionsOf, type FileDependencies } from './store-files.ts'

interface Dependencies extends FileDependencies {
  records: RecordCache
}

/**
 * Serialized file records, bounded in bytes. Never stale: the catalog reports a change, and its entry is invalidated,
 * before the change is answered. Empty where other processes change the catalog, too.
 */
export type RecordCache = LruLoader<CachedRecord>

/** File record as sent: its entity tag and its JSON. */
interface CachedRecord {
  etag: string
  json: string
}

export function createRecordCache(catalog: Catalog, memoryBytes: number): RecordCache {
  const records: RecordCache = new LruLoader(memoryBytes, ({ etag, json }) => etag.length + json.length)
  catalog.onChange(records.invalidate)
  return records
}

export const FilePath = z.object({
  '*': z.string().meta({
    description: 'path of a file, its slashes not percent-encoded',
    examples: [file.path],
  }),
})

function sendRecord(request: FastifyRequest, reply: FastifyReply, { etag, json }: CachedRecord) {
  reply.header('etag', etag).header('cache-control', 'private, no-cache')
  if (isCurrent(request.headers['if-none-match'], etag)) return reply.code(304).send()
  return reply.header('content-type', 'application/json; charset=utf-8').send(json)
}

const routes = operations({
  shared: { access: 'viewer', folders: 'path', tags: ['files'] },
  getFile: {
    summary: 'Read the record of a file',
    description: 'What is stored about it, not its bytes: those are at `/static/{path}`.',
    params: FilePath,
    requestHeaders: ifNoneMatchHeader,
    ...eachAnswer({
      200: { description: 'The record of the file', headers: recordTag, body: FileRecord },
      304: { description: 'Not modified since the record of If-None-Match', headers: recordTag },
    }),
  },
  deleteFile: {
    access: 'editor',
    summary: 'Delete a file',
    description: 'After the response no GET returns the file.',
    params: FilePath,
    requestHeaders: ifMatchHeader,
    errors: [preconditionFailed(file.path)],
    ...answers(204, 'Deleted'),
  },
})

export function registerFileRoutes(app: App, { catalog, describe, records }: Dependencies) {
  async function read(path: string): Promise<CachedRecord | undefined> {
    const row = await catalog.find(path)
    const [found] = row ? await describe([row]) : []
    return found && { etag: found.etag(), json: JSON.stringify(found.record) }
  }
  app.get(
    '/api/files/*',
    {
      ...routes.getFile,
      // After authorization, before validation: a URL without a query needs none, and the cache knows valid paths only.
      onRequest: (request, reply, done) => {
        const { url } = request
        const isPlain = !url.includes('?') && !hasEncodedSlash(url)
        const record = isPlain ? records.peek(request.params['*']) : undefined
        if (!record) return done()
        sendRecord(request, reply, record)
      },
    },
    async (request, reply) => {
      const path = readUrlPath(request.url, request.params['*'])
      // Not cached where other processes may change it.
      const load = () => read(path)
      const record = await (catalog.isExclusive ? records.get(path, load) : load())
      if (!record) throw fileNotFound(path)
      return sendRecord(request, reply, record)
    },
  )
  app.delete('/api/files/*', routes.deleteFile, async (request) => {
    const path = readUrlPath(request.url, request.params['*'])
    const conditions = conditionsOf(request.headers)
    await catalog.writes.remove({ paths: [path], conditions, actor: actorOf(request) })
  })
}
