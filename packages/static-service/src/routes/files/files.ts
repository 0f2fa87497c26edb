import type { IncomingHttpHeaders } from 'node:http'
import { type App, isCurrent, readIfMatch, readIfNoneMatch } from '@domains-and-files/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Catalog } from '../../catalog/catalog.ts'
import { fileNotFound, invalidPath, preconditionFailed, reservedPath } from '../../errors.ts'
import { hasEncodedSlash, readUrlPath } from '../../files/file-path.ts'
import { readHttpDate } from '../../rfc9110/conditional-requests.ts'
import type { Conditions } from '../../rfc9110/entity-tags.ts'
import { actorOf } from '../actor.ts'
import { file, ifMatchHeader, ifNoneMatchHeader, recordTag } from '../openapi-examples.ts'
import type { CachedRecord, FileRecordCache } from './file-record-cache.ts'
import { FileRecord } from './file-schema.ts'

interface Dependencies {
  catalog: Catalog
  records: FileRecordCache
}

export function registerFileRoutes(app: App, dependencies: Dependencies) {
  getFile(app, dependencies)
  deleteFile(app, dependencies)
}

export const FilePath = z.object({
  '*': z.string().meta({
    description: 'path of a file, its slashes not percent-encoded',
    examples: [file.path],
  }),
})

export const pathFaults = [invalidPath('a segment is empty'), reservedPath('tree')]

const getFileSchema = {
  operationId: 'getFile',
  summary: 'Read the record of a file',
  description: 'What is stored about it, not its bytes: those are at `/static/{path}`.',
  tags: ['files'],
  params: FilePath,
  requestHeaders: ifNoneMatchHeader,
  errors: [...pathFaults, fileNotFound(file.path)],
  responses: {
    200: { description: 'The record of the file', headers: recordTag },
    304: { description: 'Not modified since the record of If-None-Match', headers: recordTag },
  },
  response: { 200: FileRecord, 304: z.undefined() },
}

function getFile(app: App, { records }: Dependencies) {
  app.get(
    '/api/files/*',
    {
      config: { access: 'viewer', folders: 'path' },
      // After authorization, before validation: a URL without a query needs none, and the cache knows valid paths only.
      onRequest: (request, reply, done) => {
        const { url } = request
        const isPlain = !url.includes('?') && !hasEncodedSlash(url)
        const record = isPlain ? records.peek(request.params['*']) : undefined
        if (!record) return done()
        sendRecord(request, reply, record)
      },
      schema: getFileSchema,
    },
    async (request, reply) => {
      const path = readUrlPath(request.url, request.params['*'])
      const record = await records.find(path)
      if (!record) throw fileNotFound(path)
      return sendRecord(request, reply, record)
    },
  )
}

function sendRecord(request: FastifyRequest, reply: FastifyReply, { etag, json }: CachedRecord) {
  reply.header('etag', etag).header('cache-control', 'private, no-cache')
  if (isCurrent(request.headers['if-none-match'], etag)) return reply.code(304).send()
  return reply.header('content-type', 'application/json; charset=utf-8').send(json)
}

const deleteFileSchema = {
  operationId: 'deleteFile',
  summary: 'Delete a file',
  description: 'After the response no GET returns the file.',
  tags: ['files'],
  params: FilePath,
  requestHeaders: ifMatchHeader,
  errors: [...pathFaults, fileNotFound(file.path), preconditionFailed(file.path)],
  responses: { 204: { description: 'Deleted' } },
  response: { 204: z.undefined() },
}

function deleteFile(app: App, { catalog }: Dependencies) {
  app.delete(
    '/api/files/*',
    { config: { access: 'editor', folders: 'path' }, schema: deleteFileSchema },
    async (request, reply) => {
      const path = readUrlPath(request.url, request.params['*'])
      await catalog.remove(path, conditionsOf(request.headers), actorOf(request))
      return reply.code(204).send(undefined)
    },
  )
}

/** Preconditions of a request on the stored file (RFC 9110, 13.1). */
export function conditionsOf(headers: IncomingHttpHeaders): Conditions {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  const ifUnmodifiedSince = readHttpDate(headers['if-unmodified-since'])
  return {
    ifMatch: ifMatch === undefined ? undefined : readIfMatch(ifMatch),
    ifNoneMatch: ifNoneMatch === undefined ? undefined : readIfNoneMatch(ifNoneMatch),
    // A malformed date is ignored (13.1.4).
    ifUnmodifiedSince,
  }
}
