import { type App, answers, bodyChunks, isNotModified, operations, unsupportedCoding } from '@domains-and-files/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import * as errors from '../../errors.ts'
import { checkDigests } from '../../files/content-digest.ts'
import { hasEncodedSlash, readUrlPath } from '../../files/file-path.ts'
import type { SentRecord, ServedFile } from '../../serving/served-file.ts'
import { actorOf } from '../callers.ts'
import {
  FileRecord,
  file,
  fileTooLarge,
  ifMatchHeader,
  ifNoneMatchHeader,
  recordTag,
  restOfUrl,
  storedAnswers,
  uploadConditions,
  uploadErrors,
} from '../schemas.ts'
import { conditionsOf, type FileDependencies, onlyFile, rawBody, sendStored, stage, storeFiles } from './store-files.ts'

const params = restOfUrl('path of a file, its slashes not percent-encoded', file.path)

function sendRecord(request: FastifyRequest, reply: FastifyReply, { etag, json }: SentRecord) {
  reply.header('etag', etag).header('cache-control', 'private, no-cache')
  if (isNotModified(request, etag)) return reply.code(304).send()
  return reply.header('content-type', 'application/json; charset=utf-8').send(json)
}

const routes = operations({
  shared: { access: 'viewer', folders: 'path', tags: ['files'] },
  getFile: {
    summary: 'Read the record of a file',
    description: 'What is stored about it, not its bytes: those are at `/static/{path}`.',
    params,
    requestHeaders: ifNoneMatchHeader,
    responses: {
      200: { description: 'The record of the file', headers: recordTag, body: FileRecord },
      304: { description: 'Not modified since the record of If-None-Match', headers: recordTag },
    },
  },
  deleteFile: {
    access: 'editor',
    summary: 'Delete a file',
    description: 'After the response no GET returns the file.',
    params,
    requestHeaders: ifMatchHeader,
    errors: [errors.preconditionFailed(file.path)],
    ...answers(204, 'Deleted'),
  },
  putFile: {
    access: 'editor',
    summary: 'Store the request body as a file',
    description:
      'The body is the file, of any content type: `curl -T`. Replaces an existing file under the same conditions as an upload. The ETag of the response is that of the record; If-Match also accepts the quoted `sha256`.',
    params,
    requestHeaders: {
      ...uploadConditions,
      'content-digest': {
        description: 'SHA-256 of the body (RFC 9530), checked before anything is stored',
        example: `sha-256=:${Buffer.from(file.sha256, 'hex').toString('base64')}:`,
      },
    },
    errors: [
      ...uploadErrors,
      errors.encodedSlash('notes/hello.txt'),
      errors.digestMismatch('Content-Digest'),
      errors.partialPut(),
      unsupportedCoding(),
      fileTooLarge,
    ],
    ...storedAnswers,
    consumes: ['application/octet-stream'],
    body: rawBody('Hello, files\n'),
  },
})

export function registerFileRoutes(app: App, { catalog, cache, describe }: FileDependencies) {
  async function recordOf(file: ServedFile): Promise<SentRecord> {
    const rows = [file.row]
    const { record, etag } = onlyFile({ rows, records: await describe(rows) })
    const sent = { etag, json: JSON.stringify(record) }
    // Not kept where other processes may change the access rules.
    if (catalog.isExclusive) file.record = sent
    return sent
  }
  app.get(
    '/api/files/*',
    {
      ...routes.getFile,
      // After authorization, before validation: a URL without a query needs none, and the cache knows valid paths only.
      onRequest: (request, reply, done) => {
        const { url } = request
        const isPlain = !url.includes('?') && !hasEncodedSlash(url)
        const record = isPlain ? cache.files.peek(request.params['*'])?.record : undefined
        if (!record) return done()
        sendRecord(request, reply, record)
      },
    },
    async (request, reply) => {
      const path = readUrlPath(request.url, request.params['*'])
      const file = await cache.find(path)
      if (!file) throw errors.fileNotFound(path)
      return sendRecord(request, reply, file.record ?? (await recordOf(file)))
    },
  )
  app.delete('/api/files/*', routes.deleteFile, async (request) => {
    const path = readUrlPath(request.url, request.params['*'])
    const conditions = conditionsOf(request.headers)
    await catalog.writes.remove({ paths: [path], conditions, actor: actorOf(request) })
  })
}

/** PUT of a file, in the scope of `registerRawBodies`. */
export function registerPutFileRoute(app: App, dependencies: FileDependencies) {
  const { store, limits } = dependencies
  app.put('/api/files/*', routes.putFile, async (request, reply) => {
    const { headers, url } = request
    const path = readUrlPath(url, request.params['*'])
    // Validates the headers before the first byte of the body.
    if (headers['content-range'] !== undefined) throw errors.partialPut()
    const digests = checkDigests(request.raw)
    await limits.checkTarget(path, conditionsOf(headers))
    await limits.checkLength(path, headers)
    await using draft = store.draft()
    await stage(bodyChunks(request.raw), draft, { limits, path, onChunk: digests.update })
    digests.end()
    return sendStored(reply, await storeFiles(request, [{ path, draft }], dependencies))
  })
}
