import {
  type App,
  answers,
  bodyChunks,
  HttpError,
  hasBody,
  methodNotAllowed,
  operations,
} from '@domains-and-files/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import * as errors from '../../errors.ts'
import { encodePath } from '../../files/file-path.ts'
import { ownerOf, type Upload, type Uploads, type UploadWriter } from '../../uploads/uploads.ts'
import { requirePath } from '../callers.ts'
import { type FileDependencies, onlyFile, rawBody, registerRawBodies, storeFiles } from '../files/store-files.ts'
import { file, uploadErrors } from '../schemas.ts'
import { readBytes, readChecksum, readMetadata } from './tus-headers.ts'

const headers = {
  location: { description: 'URL of a new upload', example: '/api/uploads/5f0c1a52' },
  'upload-offset': { description: 'Bytes that are durable', example: '8388608' },
}

const folder = z.string().meta({ description: 'Directory of `filename`', examples: ['notes'] })
const url = { params: z.object({ id: z.string().meta({ examples: ['5f0c1a52'] }) }), querystring: z.strictObject({}) }

const faults = [
  errors.malformedTus('Send either Upload-Length or Upload-Defer-Length: 1'),
  ...[errors.concatenationNotSupported(), errors.tusVersionNotSupported()],
  ...[errors.uploadNotFound(), errors.uploadEnded(), errors.uploadLocked()],
  ...[errors.offsetConflict(8_388_608), errors.uploadLengthExceeded(104_857_600)],
  ...[errors.fileTooLarge(10_737_418_240), errors.tooManyUploads(100)],
  ...[errors.notOffsetStream(), errors.checksumMismatch()],
  ...uploadErrors,
]

// In short: clients know the protocol.
const { createUpload, ...methods } = operations({
  shared: {
    access: 'editor',
    folders: 'handler',
    tags: ['files'],
    requestHeaders: {
      'tus-resumable': { description: 'Version of the protocol, the only one', example: '1.0.0' },
      'upload-length': { description: 'Bytes of the file', example: '104857600' },
      'upload-metadata': {
        description: '`path`, `filename`, `overwrite`, `if_match`, each in base64; others are kept',
        example: `path ${Buffer.from(file.path).toString('base64')}`,
      },
      'upload-offset': { description: 'Where the bytes of a PATCH belong', example: '8388608' },
    },
    errors: faults,
  },
  createUpload: {
    optionalSlash: true,
    summary: 'Begin a resumable upload',
    description:
      'tus 1.0.0, for any of its clients. The file takes the path in `Upload-Metadata`, or its `filename` in the directory of the query. A body of `application/offset+octet-stream` is the first bytes.',
    querystring: z.strictObject({ folder: folder.optional() }),
    ...answers(201, 'Created; with all bytes, the file is stored', undefined, headers),
  },
  HEAD: { hide: true },
  POST: { hide: true }, // With its method in a header.
  PATCH: {
    operationId: 'appendToUpload',
    summary: 'Append bytes to an upload',
    description:
      'The request that completes the file stores it, and responds with its `Content-Location`, `ETag` and `Repr-Digest`. It may be repeated. Bytes of a request that is cut count, except with `Upload-Checksum`.',
    consumes: ['application/offset+octet-stream'],
    body: rawBody('Hello, files\n'),
    ...answers(204, 'The bytes are durable', undefined, headers),
  },
  DELETE: {
    operationId: 'deleteUpload',
    summary: 'Remove an unfinished upload',
    description: 'The file of a finished one stays.',
    ...answers(204, 'Removed'),
  },
})

type Dependencies = FileDependencies & { uploads: Uploads }
type Exchange = Dependencies & { request: FastifyRequest; reply: FastifyReply }

/** Routes of /api/uploads/: tus 1.0.0. */
export async function registerResumableRoutes(app: App, dependencies: Dependencies) {
  await registerRawBodies(app, (scope) => {
    scope.addHook('onRequest', async ({ method, headers, raw }) => {
      if (method === 'OPTIONS') return
      if (headers['tus-resumable'] !== '1.0.0') throw errors.tusVersionNotSupported()
      const { 'content-type': type = '' } = headers
      const isOffsetStream = /^application\/offset\+octet-stream\s*(?:;|$)/i.test(type)
      if (!isOffsetStream && (method === 'PATCH' || hasBody(raw))) throw errors.notOffsetStream()
    })
    scope.addHook('onSend', async (_request, reply) => {
      reply.header('tus-resumable', '1.0.0').header('cache-control', 'no-store')
    })
    addRoutes(scope, dependencies)
  })
}

function addRoutes(app: App, dependencies: Dependencies) {
  const abilities = {
    'tus-version': '1.0.0',
    'tus-max-size': String(dependencies.limits.maxBytes),
    'tus-extension': 'creation,creation-with-upload,creation-defer-length,expiration,termination,checksum',
    'tus-checksum-algorithm': 'sha1,sha256',
  }
  const sendAbilities = (_request: FastifyRequest, reply: FastifyReply) => reply.code(204).headers(abilities).send()
  app.options('/api/uploads', { config: { optionalSlash: true }, schema: { hide: true } }, sendAbilities)
  app.options('/api/uploads/:id', { schema: { hide: true } }, sendAbilities)
  app.post('/api/uploads', createUpload, (request, reply) =>
    create({ ...dependencies, request, reply }, request.query.folder),
  )
  const handler = (request: FastifyRequest & { params: { id: string } }, reply: FastifyReply) => {
    const { 'x-http-method-override': override = 'POST' } = request.headers
    const method = request.method === 'POST' ? String(override).toUpperCase() : request.method
    const handle = handlers[method]
    if (!handle) throw methodNotAllowed(method, Object.keys(handlers).join(', '))
    return handle({ ...dependencies, request, reply }, request.params.id)
  }
  for (const [method, { config, schema }] of Object.entries(methods))
    app.route({ method, url: '/api/uploads/:id', config, schema: { ...schema, ...url }, handler })
}

async function create(exchange: Exchange, folder: string | undefined) {
  const { request, reply, uploads, limits } = exchange
  const { caller } = request
  const { 'upload-concat': concat, 'upload-defer-length': deferred } = request.headers
  if (concat !== undefined) throw errors.concatenationNotSupported()
  const length = readBytes(request.headers, 'upload-length') ?? null
  const metadata = String(request.headers['upload-metadata'] ?? '')
  if (deferred !== (length === null ? '1' : undefined))
    throw errors.malformedTus('Send either Upload-Length or Upload-Defer-Length: 1')
  const { conditions, pathIn } = readMetadata(metadata)
  const path = requirePath(caller, pathIn(folder))
  limits.checkSize(length ?? 0)
  await limits.checkTarget(path, conditions)
  await limits.checkQuota(path, length ?? 0, length ?? limits.maxBytes)
  const created = await uploads.create({ owner: ownerOf(caller), path, metadata, length })
  reply.code(201).header('location', `/api/uploads/${created.id}`)
  if (!hasBody(request.raw) && length !== 0) return reply.headers(progressOf(created)).send()
  const receiving = uploads.write(created.id, caller, (writer) => receive(exchange, writer, 0))
  const upload = await receiving.catch(async (error) => {
    // Only a whole upload is worth another attempt: the client has no URL yet.
    if (!isWhole(await uploads.find(created.id, caller))) await uploads.end(created.id, caller)
    throw error
  })
  return reply.headers(progressOf(upload)).send()
}

const handlers: Record<string, (exchange: Exchange, id: string) => Promise<unknown>> = {
  async HEAD({ request, reply, uploads }, id) {
    const upload = await uploads.find(id, request.caller)
    const { length, metadata, outcome } = upload
    // A complete upload of zero bytes has no last byte to withhold.
    const isOpen = length === null || (length === 0 && !outcome)
    reply.headers(isOpen ? { 'upload-defer-length': '1' } : { 'upload-length': String(length) })
    if (metadata) reply.header('upload-metadata', metadata)
    return reply.headers(progressOf(upload)).send()
  },

  async PATCH(exchange, id) {
    const { request, reply, uploads } = exchange
    const offset = readBytes(request.headers, 'upload-offset')
    if (offset === undefined) throw errors.malformedTus('Send Upload-Offset')
    const upload = await uploads.write(id, request.caller, (writer) => receive(exchange, writer, offset))
    return reply.code(204).headers(progressOf(upload)).send()
  },

  async DELETE({ request, reply, uploads }, id) {
    await uploads.end(id, request.caller)
    return reply.code(204).send()
  },
}

// Receives the bytes of a request, and stores the file once it is complete. A client may send the end of a complete
// upload again, after a rejection or a lost response.
async function receive(exchange: Exchange, writer: UploadWriter, offset: number) {
  const { raw, headers } = exchange.request
  const { upload } = writer
  const { size } = upload
  const checksum = readChecksum(headers)
  const length = readBytes(headers, 'upload-length') ?? upload.length
  const conflict = errors.offsetConflict(knownOffset(upload))
  if (isWhole(upload) ? offset > size : offset !== size) throw conflict
  if (length !== (upload.length ?? length) || (length ?? size) < size)
    throw errors.malformedTus('Upload-Length cannot be changed, nor be less than what was sent')
  const demandRoom = (end: number) => {
    if (length !== null && end > length) throw errors.uploadLengthExceeded(length)
    exchange.limits.checkSize(length ?? end)
  }
  demandRoom(offset + (Number(headers['content-length']) || 0)) // NaN: sent in chunks.
  if (length !== upload.length) await writer.record({ length })
  writer.isTentative = checksum !== undefined
  let end = offset
  for await (const chunk of bodyChunks(raw)) {
    end += chunk.length
    demandRoom(end)
    checksum?.hash.update(chunk)
    if (!isWhole(upload)) await writer.write(chunk)
  }
  if (end < size) throw conflict
  if (checksum && checksum.hash.digest('base64') !== checksum.digest) throw errors.checksumMismatch()
  writer.isTentative = false
  await (end === length && !upload.outcome ? publish(exchange, writer) : writer.save())
}

async function publish(exchange: Exchange, writer: UploadWriter) {
  const { path, metadata, tried } = writer.upload
  const { request, catalog, describe } = exchange
  await writer.save({ tried: 1 })
  await using draft = await writer.stage()
  const row = tried ? await catalog.find(path) : undefined
  const isStored = row?.digest === draft.hash?.digest && row?.uploadedBy === request.caller.username
  // A retry may come under another condition than the one that failed.
  const conditions = 'if-match' in request.headers ? undefined : readMetadata(metadata).conditions
  const stored = isStored
    ? { rows: [row], records: await describe([row]) }
    : await storeFiles(request, [{ path, draft }], exchange, conditions).catch(async (error) => {
        if (error instanceof HttpError) await writer.record({ tried })
        throw error
      })
  const { record, etag } = onlyFile(stored)
  const ended = writer.end({
    'content-location': `/api/files/${encodePath(path)}`,
    etag,
    'repr-digest': `sha-256=:${Buffer.from(record.sha256, 'hex').toString('base64')}:`,
  })
  // The file is stored all the same. A repetition of the request finds it.
  await ended.catch((err) => request.log.warn({ err }, 'end of an upload not recorded'))
}

const isWhole = ({ size, length }: Upload) => size === length

// Withholds the last byte until the file is stored: clients take the full offset as success.
const knownOffset = (upload: Upload) =>
  isWhole(upload) && !upload.outcome ? Math.max(0, upload.size - 1) : upload.size

const progressOf = (upload: Upload) => ({
  'upload-offset': String(knownOffset(upload)),
  'upload-expires': new Date(upload.expiresAt).toUTCString(),
  ...JSON.parse(upload.outcome ?? '{}'),
})
