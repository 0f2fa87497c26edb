import { createHash } from 'node:crypto'
import { callerOf } from '@domains-and-files/auth'
import { type App, HttpError, methodNotAllowed } from '@domains-and-files/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import * as errors from '../../errors.ts'
import { encodePath } from '../../files/file-path.ts'
import type { Upload } from '../../uploads/upload-table.ts'
import type { UploadWriter } from '../../uploads/upload-writer.ts'
import type { Uploads } from '../../uploads/uploads.ts'
import { requirePath } from '../callers.ts'
import { registerRawBodies } from '../files/put-file.ts'
import { conditionsOf, readBody, refuseContentCoding, storeFiles } from '../files/store-files.ts'
import type { UploadDependencies } from '../files/uploads.ts'
import { offsetStream, readConditions, readTarget, readTusHeaders } from './tus-headers.ts'
import { tusSchemas } from './tus-schemas.ts'

interface Dependencies extends UploadDependencies {
  uploads: Uploads
}

/**
 * Routes of /api/uploads/: tus 1.0.0 with creation, creation-with-upload, creation-defer-length, expiration, termination and
 * checksum.
 */
export async function registerResumableRoutes(app: App, dependencies: Dependencies) {
  await registerRawBodies(app, (scope) => {
    scope.addHook('onRequest', async ({ method, headers }) => {
      // Another one is ignored, also where it is malformed: the framework would refuse it.
      const [type = ''] = headers['content-type']?.split(';', 1) ?? []
      if (type.trim().toLowerCase() !== offsetStream) delete headers['content-type']
      if (method !== 'OPTIONS' && headers['tus-resumable'] !== '1.0.0')
        throw errors.tusVersionNotSupported()
    })
    scope.addHook('onSend', async (_request, reply) => {
      reply.header('tus-resumable', '1.0.0').header('cache-control', 'no-store')
    })
    addRoutes(scope, dependencies)
  })
}

function addRoutes(app: App, dependencies: Dependencies) {
  const { maxBytes } = dependencies.limits
  const { create: schema, ofUpload } = tusSchemas(maxBytes)
  const abilities = {
    'tus-version': '1.0.0',
    'tus-max-size': String(maxBytes),
    'tus-extension':
      'creation,creation-with-upload,creation-defer-length,expiration,termination,checksum',
    'tus-checksum-algorithm': 'sha1,sha256',
  }
  const [url, ...urls] = ['/api/uploads/:id', '/api/uploads', '/api/uploads/'] as const
  for (const each of [url, ...urls])
    app.options(each, { schema: { hide: true } }, (_request, reply) =>
      reply.code(204).headers(abilities).send(),
    )
  for (const each of urls)
    app.post(each, { config, schema }, (request, reply) =>
      create({ ...dependencies, request, reply, id: '' }, request.query.folder),
    )
  for (const [method, schema] of Object.entries(ofUpload)) {
    const handler = (request: FastifyRequest & { params: Id }, reply: FastifyReply) => {
      const { 'x-http-method-override': override = method } = request.headers
      const named = method === 'POST' ? String(override).toUpperCase() : method
      const handle = handlers[named]
      if (!handle) throw methodNotAllowed(named, Object.keys(handlers).join(', '))
      return handle({ ...dependencies, request, reply, ...request.params })
    }
    app.route({ method, url, config, schema, handler })
  }
}

const config = { access: 'editor', folders: 'handler' } as const

type Id = { id: string }

interface Exchange extends Dependencies, Id {
  request: FastifyRequest
  reply: FastifyReply
}

type Handler = (exchange: Exchange) => Promise<unknown>

async function create(exchange: Exchange, folder: string | undefined) {
  const { request, reply, uploads, limits } = exchange
  const { headers } = request
  if (headers['upload-concat'] !== undefined) throw errors.concatenationNotSupported()
  const sent = readTusHeaders(headers)
  const { 'upload-length': length = null, 'upload-metadata': metadata } = sent
  if ((length === null) === (sent['upload-defer-length'] === undefined))
    throw errors.malformedTus('Send either Upload-Length or Upload-Defer-Length: 1')
  const caller = callerOf(request)
  const path = requirePath(caller, readTarget(metadata, folder))
  const conditions = readConditions(metadata)
  const hasBody = headers['transfer-encoding'] !== undefined || contentLengthOf(request) > 0
  if (hasBody) demandOffsetStream(request)
  limits.checkSize(length ?? 0)
  await limits.checkTarget(path, conditions)
  if (length !== null) await limits.checkQuota(path, length)
  const created = await uploads.create({ owner: caller.username, path, metadata, length })
  reply.code(201).header('location', `/api/uploads/${created.id}`)
  if (!hasBody && length !== 0) return reply.headers(progressOf(created)).send()
  const upload = await uploads.write(created.id, caller, (writer) =>
    receive(exchange, writer, 0).catch(async (error) => {
      // Only a whole upload is worth another attempt: the client has no URL yet.
      if (!isWhole(writer.upload)) await writer.end()
      throw error
    }),
  )
  return reply.headers(progressOf(upload)).send()
}

const describe: Handler = async ({ request, reply, uploads, id }) => {
  const upload = await uploads.find(id, callerOf(request))
  const { length, metadata, outcome } = upload
  // A whole upload without a byte has none that could be withheld.
  const isOpen = length === null || (length === 0 && !outcome)
  return reply
    .headers(progressOf(upload))
    .headers(isOpen ? { 'upload-defer-length': '1' } : { 'upload-length': String(length) })
    .headers(metadata ? { 'upload-metadata': metadata } : {})
    .send()
}

const append: Handler = async (exchange) => {
  const { request, reply, uploads, id } = exchange
  demandOffsetStream(request)
  const { 'upload-offset': offset } = readTusHeaders(request.headers)
  if (offset === undefined) throw errors.malformedTus('Send Upload-Offset')
  const upload = await uploads.write(id, callerOf(request), (writer) =>
    receive(exchange, writer, offset),
  )
  return reply.code(204).headers(progressOf(upload)).send()
}

const remove: Handler = async ({ request, reply, uploads, id }) => {
  await uploads.write(id, callerOf(request), (writer) => writer.end())
  return reply.code(204).send()
}

const handlers: Record<string, Handler> = { HEAD: describe, PATCH: append, DELETE: remove }

// Receives the bytes of a request, and stores the file when they are all there. What a whole upload has may come again: an end
// that was refused, or met no response, is tried again.
async function receive(exchange: Exchange, writer: UploadWriter, offset: number) {
  const { request, limits } = exchange
  const { upload } = writer
  const { size, outcome } = upload
  const { 'upload-length': sent, 'upload-checksum': checksum } = readTusHeaders(request.headers)
  const conflict = errors.offsetConflict(knownOffset(upload))
  if (isWhole(upload) ? offset > size : offset !== size) throw conflict
  const length = lengthOf(upload, sent)
  const demandRoom = (end: number) => {
    if (length !== null && end > length) throw errors.uploadLengthExceeded(length)
    limits.checkSize(length ?? end)
  }
  demandRoom(offset + contentLengthOf(request))
  if (length !== upload.length) await writer.record({ length })
  const [algorithm, digest] = checksum?.split(' ') ?? []
  const hash = algorithm === undefined ? undefined : createHash(algorithm)
  async function* appended(chunks: AsyncIterable<Buffer>) {
    let end = offset
    for await (const chunk of chunks) {
      const skipped = Math.min(Math.max(0, size - end), chunk.length)
      end += chunk.length
      demandRoom(end)
      hash?.update(chunk)
      yield chunk.subarray(skipped)
    }
    if (end < size) throw conflict
    if (hash && hash.digest('base64') !== digest) throw errors.checksumMismatch()
  }
  await readBody(request.raw, async (chunks) => {
    if (!outcome) return writer.receive(appended(chunks), hash !== undefined)
    for await (const _ of appended(chunks)); // The file is stored.
  })
  if (!outcome && isWhole(writer.upload)) await publish(exchange, writer, upload.tried === 1)
}

async function publish(exchange: Exchange, writer: UploadWriter, mayBeStored: boolean) {
  const { path, owner, metadata } = writer.upload
  const { request, catalog, describe } = exchange
  await using draft = await writer.stage()
  const row = mayBeStored ? await catalog.find(path) : undefined
  const isStored = row?.digest === draft.hash?.digest && row?.uploadedBy === owner
  // A retry may come under another condition than the one that failed.
  const isChanged = request.headers['if-match'] !== undefined
  const conditions = isChanged ? conditionsOf(request.headers) : readConditions(metadata)
  const { stored } = isStored
    ? { stored: await describe([row]) }
    : await storeFiles(request, [{ path, draft }], exchange, conditions).catch(async (error) => {
        const isRefused = error instanceof HttpError && error.status !== 503
        if (isRefused) await writer.record({ tried: 0 })
        throw error
      })
  const [file] = stored
  if (!file) throw new Error('the catalog returned no row')
  const outcome = {
    'content-location': `/api/files/${encodePath(file.record.path)}`,
    etag: file.etag(),
    'repr-digest': `sha-256=:${Buffer.from(file.record.sha256, 'hex').toString('base64')}:`,
  }
  await writer.end(JSON.stringify(outcome))
}

function lengthOf({ size, length }: Upload, sent = length): number | null {
  if (sent !== (length ?? sent) || (sent !== null && sent < size))
    throw errors.malformedTus('Upload-Length cannot be changed, nor be less than what was sent')
  return sent
}

const isWhole = ({ size, length }: Upload) => size === length

// The last byte is withheld until the file is stored: a client takes the whole length for success.
const knownOffset = (upload: Upload) =>
  isWhole(upload) && !upload.outcome ? Math.max(0, upload.size - 1) : upload.size

const progressOf = (upload: Upload) => ({
  'upload-offset': String(knownOffset(upload)),
  'upload-expires': new Date(upload.expiresAt).toUTCString(),
  ...JSON.parse(upload.outcome ?? '{}'),
})

const contentLengthOf = ({ headers }: FastifyRequest) => Number(headers['content-length'] ?? 0)

function demandOffsetStream({ headers }: FastifyRequest) {
  refuseContentCoding(headers)
  if (headers['content-type'] === undefined) throw errors.notOffsetStream()
}
