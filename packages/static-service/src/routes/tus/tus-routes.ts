import { type App, bodyChunks, HttpError, hasBody, methodNotAllowed } from '@domains-and-files/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import * as errors from '../../errors.ts'
import { encodePath } from '../../files/file-path.ts'
import type { Upload, Uploads, UploadWriter } from '../../uploads/uploads.ts'
import { requirePath } from '../callers.ts'
import { type FileDependencies, onlyFile, registerRawBodies, storeFiles } from '../files/store-files.ts'
import * as tus from './tus-schemas.ts'

type Dependencies = FileDependencies & { uploads: Uploads }
type Exchange = Dependencies & { request: FastifyRequest; reply: FastifyReply }

/**
 * Routes of /api/uploads/: tus 1.0.0 with creation, creation-with-upload, creation-defer-length, expiration,
 * termination and checksum.
 */
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
  const [url, ...urls] = ['/api/uploads/:id', '/api/uploads', '/api/uploads/'] as const
  const forAnyone = { schema: { hide: true } }
  for (const each of [url, ...urls])
    app.options(each, forAnyone, (_request, reply) => reply.code(204).headers(abilities).send())
  for (const each of urls)
    app.post(each, { config, schema: tus.creationSchema }, (request, reply) =>
      create({ ...dependencies, request, reply }, request.query.folder),
    )
  const handler = (request: FastifyRequest & { params: { id: string } }, reply: FastifyReply) => {
    const { 'x-http-method-override': override = 'POST' } = request.headers
    const method = request.method === 'POST' ? String(override).toUpperCase() : request.method
    const handle = handlers[method]
    if (!handle) throw methodNotAllowed(method, Object.keys(handlers).join(', '))
    return handle({ ...dependencies, request, reply }, request.params.id)
  }
  for (const [method, schema] of Object.entries(tus.methodSchemas))
    app.route({ method, url, config, schema: { ...schema, params: tus.params }, handler })
}

const config = { access: 'editor', folders: 'handler' } as const

async function create(exchange: Exchange, folder: string | undefined) {
  const { request, reply, uploads, limits } = exchange
  const { caller } = request
  const { 'upload-concat': concat, 'upload-defer-length': deferred } = request.headers
  if (concat !== undefined) throw errors.concatenationNotSupported()
  const length = tus.readBytes(request.headers, 'upload-length') ?? null
  const metadata = String(request.headers['upload-metadata'] ?? '')
  if (deferred !== (length === null ? '1' : undefined))
    throw errors.malformedTus('Send either Upload-Length or Upload-Defer-Length: 1')
  const { conditions, pathIn } = tus.readMetadata(metadata)
  const path = requirePath(caller, pathIn(folder))
  limits.checkSize(length ?? 0)
  await limits.checkTarget(path, conditions)
  await limits.checkQuota(path, length ?? 0, length ?? limits.maxBytes)
  const created = await uploads.create({ owner: caller.username, path, metadata, length })
  reply.code(201).header('location', `/api/uploads/${created.id}`)
  if (!hasBody(request.raw) && length !== 0) return reply.headers(progressOf(created)).send()
  const work = (writer: UploadWriter) => receive(exchange, writer, 0)
  const upload = await uploads.write(created.id, caller, work).catch(async (error) => {
    // Only a whole upload is worth another attempt: the client has no URL yet.
    await uploads.write(created.id, caller, async (writer) => {
      if (!isWhole(writer.upload)) await writer.end()
    })
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
    const offset = tus.readBytes(request.headers, 'upload-offset')
    if (offset === undefined) throw errors.malformedTus('Send Upload-Offset')
    const work = (writer: UploadWriter) => receive(exchange, writer, offset)
    const upload = await uploads.write(id, request.caller, work)
    return reply.code(204).headers(progressOf(upload)).send()
  },

  async DELETE({ request, reply, uploads }, id) {
    await uploads.write(id, request.caller, (writer) => writer.end())
    return reply.code(204).send()
  },
}

// Receives the bytes of a request, and stores the file once it is complete. A client may send the end of a complete
// upload again, after a rejection or a lost response.
async function receive(exchange: Exchange, writer: UploadWriter, offset: number) {
  const { raw, headers } = exchange.request
  const { upload } = writer
  const { size } = upload
  const checksum = tus.readChecksum(headers)
  const length = tus.readBytes(headers, 'upload-length') ?? upload.length
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
  const { path, owner, metadata, tried } = writer.upload
  const { request, catalog, describe } = exchange
  await writer.save({ tried: 1 })
  await using draft = await writer.stage()
  const row = tried ? await catalog.find(path) : undefined
  const isStored = row?.digest === draft.hash?.digest && row?.uploadedBy === owner
  // A retry may come under another condition than the one that failed.
  const conditions = 'if-match' in request.headers ? undefined : tus.readMetadata(metadata).conditions
  const stored = isStored
    ? { rows: [row], records: await describe([row]) }
    : await storeFiles(request, [{ path, draft }], exchange, conditions).catch(async (error) => {
        if (error instanceof HttpError && error.status !== 503) await writer.record({ tried: 0 })
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
