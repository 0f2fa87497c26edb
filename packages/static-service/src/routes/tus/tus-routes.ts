import { createHash } from 'node:crypto'
import { type Caller, callerOf } from '@domains-and-files/auth'
import { type App, HttpError, hasBody, methodNotAllowed } from '@domains-and-files/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import * as errors from '../../errors.ts'
import { encodePath } from '../../files/file-path.ts'
import type { Upload, Uploads, UploadWriter } from '../../uploads/uploads.ts'
import { requirePath } from '../callers.ts'
import { registerRawBodies } from '../files/put-file.ts'
import { conditionsOf, readBody, storeFiles } from '../files/store-files.ts'
import type { UploadDependencies } from '../files/uploads.ts'
import * as tus from './tus-schemas.ts'

type Dependencies = UploadDependencies & { uploads: Uploads }

/**
 * Routes of /api/uploads/: tus 1.0.0 with creation, creation-with-upload, creation-defer-length, expiration, termination and
 * checksum.
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
    'tus-extension':
      'creation,creation-with-upload,creation-defer-length,expiration,termination,checksum',
    'tus-checksum-algorithm': 'sha1,sha256',
  }
  const exchangeOf = (request: FastifyRequest, reply: FastifyReply): Exchange => {
    const [caller, sent] = [callerOf(request), tus.readHeaders(request.headers)]
    return { ...dependencies, request, reply, caller, sent }
  }
  const [url, ...urls] = ['/api/uploads/:id', '/api/uploads', '/api/uploads/'] as const
  for (const each of [url, ...urls])
    app.options(each, { schema: { hide: true } }, (_request, reply) =>
      reply.code(204).headers(abilities).send(),
    )
  for (const each of urls)
    app.post(each, { config, schema: tus.creationSchema }, (request, reply) =>
      create(exchangeOf(request, reply), request.query.folder),
    )
  for (const [method, schema] of Object.entries(tus.methodSchemas)) {
    const handler = (request: FastifyRequest & { params: { id: string } }, reply: FastifyReply) => {
      const { 'x-http-method-override': override = method } = request.headers
      const named = method === 'POST' ? String(override).toUpperCase() : method
      const handle = handlers[named]
      if (!handle) throw methodNotAllowed(named, Object.keys(handlers).join(', '))
      return handle(exchangeOf(request, reply), request.params.id)
    }
    app.route({ method, url, config, schema: { ...schema, params: tus.params }, handler })
  }
}

const config = { access: 'editor', folders: 'handler' } as const

interface Exchange extends Dependencies {
  request: FastifyRequest
  reply: FastifyReply
  caller: Caller
  sent: tus.TusHeaders
}

async function create(exchange: Exchange, folder: string | undefined) {
  const { request, reply, uploads, limits, caller, sent } = exchange
  if (request.headers['upload-concat'] !== undefined) throw errors.concatenationNotSupported()
  const { 'upload-length': length = null, 'upload-metadata': metadata } = sent
  if ((length === null) === (sent['upload-defer-length'] === undefined))
    throw errors.malformedTus('Send either Upload-Length or Upload-Defer-Length: 1')
  const path = requirePath(caller, tus.readTarget(metadata, folder))
  limits.checkSize(length ?? 0)
  await limits.checkTarget(path, tus.readConditions(metadata))
  await limits.checkQuota(path, length ?? 0, length ?? limits.maxBytes)
  const created = await uploads.create({ owner: caller.username, path, metadata, length })
  reply.code(201).header('location', `/api/uploads/${created.id}`)
  if (!hasBody(request.raw) && length !== 0) return reply.headers(progressOf(created)).send()
  const upload = await uploads.write(created.id, caller, (writer) =>
    receive(exchange, writer, 0).catch(async (error) => {
      // Only a whole upload is worth another attempt: the client has no URL yet.
      if (!isWhole(writer.upload)) await writer.end()
      throw error
    }),
  )
  return reply.headers(progressOf(upload)).send()
}

const handlers: Record<string, (exchange: Exchange, id: string) => Promise<unknown>> = {
  async HEAD({ reply, uploads, caller }, id) {
    const upload = await uploads.find(id, caller)
    const { length, metadata, outcome } = upload
    // A whole upload without a byte has none that could be withheld.
    const isOpen = length === null || (length === 0 && !outcome)
    reply.headers(isOpen ? { 'upload-defer-length': '1' } : { 'upload-length': String(length) })
    if (metadata) reply.header('upload-metadata', metadata)
    return reply.headers(progressOf(upload)).send()
  },

  async PATCH(exchange, id) {
    const { reply, uploads, caller, sent } = exchange
    const { 'upload-offset': offset } = sent
    if (offset === undefined) throw errors.malformedTus('Send Upload-Offset')
    const upload = await uploads.write(id, caller, (writer) => receive(exchange, writer, offset))
    return reply.code(204).headers(progressOf(upload)).send()
  },

  async DELETE({ reply, uploads, caller }, id) {
    await uploads.write(id, caller, (writer) => writer.end())
    return reply.code(204).send()
  },
}

// Receives the bytes of a request, and stores the file when they are all there. What a whole upload has may come again: an end
// that was refused, or met no response, is tried again.
async function receive(exchange: Exchange, writer: UploadWriter, offset: number) {
  const { request, limits, sent } = exchange
  const { upload } = writer
  const { size, outcome } = upload
  const { 'upload-length': length = upload.length, 'upload-checksum': checksum } = sent
  const conflict = errors.offsetConflict(knownOffset(upload))
  if (isWhole(upload) ? offset > size : offset !== size) throw conflict
  if (length !== (upload.length ?? length) || (length ?? size) < size)
    throw errors.malformedTus('Upload-Length cannot be changed, nor be less than what was sent')
  const demandRoom = (end: number) => {
    if (length !== null && end > length) throw errors.uploadLengthExceeded(length)
    limits.checkSize(length ?? end)
  }
  demandRoom(offset + Number(request.headers['content-length'] ?? 0))
  if (length !== upload.length) await writer.record({ length })
  const [algorithm, digest] = checksum?.split(' ') ?? []
  const hash = algorithm ? createHash(algorithm) : undefined
  await readBody(request.raw, async (chunks) => {
    let end = offset
    try {
      for await (const chunk of chunks) {
        end += chunk.length
        demandRoom(end)
        hash?.update(chunk)
        if (!isWhole(upload)) await writer.write(chunk, !hash)
      }
    } catch (error) {
      if (!hash) await writer.save()
      throw error
    }
    if (end < size) throw conflict
    if (hash && hash.digest('base64') !== digest) throw errors.checksumMismatch()
    await writer.save()
  })
  if (!outcome && isWhole(writer.upload)) await publish(exchange, writer)
}

async function publish(exchange: Exchange, writer: UploadWriter) {
  const { path, owner, metadata, tried } = writer.upload
  const { request, catalog, describe } = exchange
  await writer.record({ tried: 1 })
  await using draft = await writer.stage()
  const row = tried ? await catalog.find(path) : undefined
  const isStored = row?.digest === draft.hash?.digest && row?.uploadedBy === owner
  // A retry may come under another condition than the one that failed.
  const { headers } = request
  const conditions = 'if-match' in headers ? conditionsOf(headers) : tus.readConditions(metadata)
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

const isWhole = ({ size, length }: Upload) => size === length

// The last byte is withheld until the file is stored: a client takes the whole length for success.
const knownOffset = (upload: Upload) =>
  isWhole(upload) && !upload.outcome ? Math.max(0, upload.size - 1) : upload.size

const progressOf = (upload: Upload) => ({
  'upload-offset': String(knownOffset(upload)),
  'upload-expires': new Date(upload.expiresAt).toUTCString(),
  ...JSON.parse(upload.outcome ?? '{}'),
})
