import { callerOf } from '@domains-and-files/auth'
import { type App, methodNotAllowed } from '@domains-and-files/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import {
  concatenationNotSupported,
  malformedTus,
  notOffsetStream,
  offsetConflict,
  tusVersionNotSupported,
  uploadLengthExceeded,
} from '../../errors.ts'
import { encodePath } from '../../files/file-path.ts'
import type { Upload } from '../../uploads/upload-table.ts'
import type { UploadWriter } from '../../uploads/upload-writer.ts'
import type { Uploads } from '../../uploads/uploads.ts'
import { requirePath } from '../callers.ts'
import type { DescribedFile } from '../files/file-schema.ts'
import { registerRawBodies } from '../files/put-file.ts'
import { conditionsOf, refuseContentCoding, storeFiles } from '../files/store-files.ts'
import type { UploadDependencies } from '../files/uploads.ts'
import {
  checksumAlgorithms,
  offsetStream,
  readBytes,
  readChecksum,
  readNewLength,
  readTarget,
} from './tus-headers.ts'
import { createSchema, deleteSchema, patchSchema } from './tus-schemas.ts'

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
      if (!isOffsetStream(headers['content-type'])) delete headers['content-type']
      if (method !== 'OPTIONS' && headers['tus-resumable'] !== '1.0.0')
        throw tusVersionNotSupported()
    })
    scope.addHook('onSend', async ({ method }, reply) => {
      reply.header('tus-resumable', '1.0.0').header('cache-control', 'no-store')
      if (method === 'OPTIONS') reply.headers(abilities(dependencies.limits.maxBytes))
    })
    addRoutes(scope, dependencies)
  })
}

function addRoutes(app: App, dependencies: Dependencies) {
  const config = { access: 'editor', folders: 'handler' } as const
  const { maxBytes } = dependencies.limits
  const url = '/api/uploads/:id'
  const atUpload = (handle: Handler) => (request: NamedRequest, reply: FastifyReply) =>
    handle(request, reply, { ...dependencies, id: request.params.id })
  for (const each of ['/api/uploads', '/api/uploads/', url])
    app.options(each, { schema: { hide: true } }, async (_request, reply) => reply.code(204).send())
  for (const slash of ['', '/'])
    app.post(`/api/uploads${slash}`, { config, schema: createSchema(maxBytes) }, (request, reply) =>
      create(request, reply, { ...dependencies, folder: request.query.folder }),
    )
  app.patch(url, { config, schema: patchSchema(maxBytes) }, atUpload(append))
  app.delete(url, { config, schema: deleteSchema }, atUpload(remove))
  // The document has neither.
  const schema = { hide: true, params: deleteSchema.params }
  app.head(url, { config, schema }, atUpload(describe))
  app.post(url, { config, schema }, (request, reply) => {
    const method = request.headers['x-http-method-override']?.toString().toUpperCase() ?? 'POST'
    const handle = handlers[method]
    if (!handle) throw methodNotAllowed(method, Object.keys(handlers).join(', '))
    return atUpload(handle)(request, reply)
  })
}

type NamedRequest = FastifyRequest & { params: { id: string } }
type Named = Dependencies & { id: string }
type Handler = (request: FastifyRequest, reply: FastifyReply, upload: Named) => Promise<unknown>

/** Of `X-HTTP-Method-Override`. */
const handlers: Record<string, Handler> = { HEAD: describe, PATCH: append, DELETE: remove }

const isOffsetStream = (type: string | undefined) =>
  type?.split(';', 1)[0]?.trim().toLowerCase() === offsetStream

const abilities = (maxBytes: number) => ({
  'tus-version': '1.0.0',
  'tus-max-size': String(maxBytes),
  'tus-extension':
    'creation,creation-with-upload,creation-defer-length,expiration,termination,checksum',
  'tus-checksum-algorithm': checksumAlgorithms.join(','),
})

async function create(
  request: FastifyRequest,
  reply: FastifyReply,
  { folder, ...dependencies }: Dependencies & { folder: string | undefined },
) {
  const { uploads, limits } = dependencies
  const { headers } = request
  if (headers['upload-concat'] !== undefined) throw concatenationNotSupported()
  const length = readNewLength(headers)
  const metadata = headers['upload-metadata']?.toString() ?? ''
  const { path, conditions } = readTarget(metadata, folder)
  const caller = callerOf(request)
  requirePath(caller, path)
  const hasBody = headers['transfer-encoding'] !== undefined || contentLengthOf(request) > 0
  if (hasBody) demandOffsetStream(request)
  limits.checkSize(length ?? 0)
  await limits.checkTarget(path, conditions)
  if (length !== null) await limits.checkQuota(path, length)
  const owner = caller.username
  const created = await uploads.create({ owner, path, metadata, conditions, length })
  const { id } = created
  reply.code(201).header('location', `/api/uploads/${id}`)
  if (!hasBody && length !== 0) return reply.headers(progressOf(created)).send()
  const context = { ...dependencies, offset: 0 }
  try {
    const upload = await uploads.write(id, caller, (writer) => receive(request, writer, context))
    return reply.headers(progressOf(upload)).send()
  } catch (error) {
    // Only a whole upload is worth another attempt: the client has no URL yet.
    if (!isWhole(await uploads.find(id, caller)))
      await uploads.write(id, caller, (writer) => writer.end())
    throw error
  }
}

async function describe(request: FastifyRequest, reply: FastifyReply, { id, uploads }: Named) {
  const upload = await uploads.find(id, callerOf(request))
  const { metadata } = upload
  // A whole upload without a byte has none that could be withheld.
  const isOpen = upload.length === null || (upload.length === 0 && !upload.outcome)
  return reply
    .code(200)
    .headers(progressOf(upload))
    .headers(isOpen ? { 'upload-defer-length': '1' } : { 'upload-length': String(upload.length) })
    .headers(metadata ? { 'upload-metadata': metadata } : {})
    .send()
}

async function append(
  request: FastifyRequest,
  reply: FastifyReply,
  { id, ...dependencies }: Named,
) {
  demandOffsetStream(request)
  const offset = readBytes(request.headers, 'upload-offset')
  if (offset === undefined) throw malformedTus('Send Upload-Offset')
  const { uploads } = dependencies
  const caller = callerOf(request)
  const found = await uploads.find(id, caller)
  const upload = found.outcome
    ? await repeat(request, found, offset)
    : await uploads.write(id, caller, async (writer) => {
        if (writer.upload.outcome) await repeat(request, writer.upload, offset)
        else await receive(request, writer, { ...dependencies, offset })
      })
  return reply.code(204).headers(progressOf(upload)).send()
}

async function remove(request: FastifyRequest, reply: FastifyReply, { id, uploads }: Named) {
  await uploads.write(id, callerOf(request), (writer) => writer.end())
  return reply.code(204).send()
}

/** The last PATCH of a published upload, which may have met no response: its bytes are there. */
async function repeat({ raw }: FastifyRequest, upload: Upload, offset: number): Promise<Upload> {
  let end = offset
  for await (const chunk of raw.iterator({ destroyOnReturn: false })) end += chunk.length
  if (end !== upload.size) throw offsetConflict(upload.size)
  return upload
}

interface Receiving extends Dependencies {
  offset: number
}

// Receives the bytes of a request, and stores the file when they are all there.
async function receive(request: FastifyRequest, writer: UploadWriter, context: Receiving) {
  const { offset, limits } = context
  const { headers, raw } = request
  const checksum = readChecksum(headers)
  const { size, publishing } = writer.upload
  const known = knownOffset(writer.upload)
  // The file may be stored, though nobody was told: the last request comes again.
  const isRepeat = publishing !== null
  if (offset > size || (offset < known && !isRepeat)) throw offsetConflict(known)
  const announced = readBytes(headers, 'upload-length')
  const length = writer.upload.length ?? announced ?? null
  if (length !== null && (length < size || (announced ?? length) !== length))
    throw malformedTus('Upload-Length cannot be changed, nor be less than what was sent')
  limits.checkSize(length ?? offset + contentLengthOf(request))
  demandWithin(length, offset + contentLengthOf(request))
  if (length !== writer.upload.length && length !== null) await writer.setLength(length)
  let end = offset
  const check = (chunk?: Buffer) => {
    end += chunk?.length ?? 0
    if (!chunk && end < size) throw offsetConflict(known)
    demandWithin(length ?? limits.maxBytes, end)
    checksum?.(chunk)
  }
  await writer.receive({ body: raw, skip: size - offset, isWhole: checksum !== undefined, check })
  if (isWhole(writer.upload)) await publish(request, writer, context)
}

async function publish(
  request: FastifyRequest,
  writer: UploadWriter,
  { catalog, describe: describeFiles, onStored, limits }: Dependencies,
) {
  const { path, owner, conditions, length } = writer.upload
  limits.checkSize(length ?? 0)
  // A retry may come under another condition than the one that failed.
  const isRetry = request.headers['if-match'] !== undefined
  await writer.publish({
    findStored: async (digest) => {
      const row = await catalog.find(path)
      const isStored = row?.digest === digest && row.uploadedBy === owner
      return isStored ? outcomeOf(await describeFiles([row])) : undefined
    },
    store: async (draft) => {
      const { stored } = await storeFiles(
        request,
        [{ path, draft }],
        { catalog, describe: describeFiles, onStored },
        isRetry ? conditionsOf(request.headers) : conditions,
      )
      return outcomeOf(stored)
    },
  })
}

function outcomeOf([file]: DescribedFile[]) {
  if (!file) throw new Error('the catalog returned no row')
  const { record, etag } = file
  return {
    'content-location': `/api/files/${encodePath(record.path)}`,
    etag: etag(),
    'repr-digest': `sha-256=:${Buffer.from(record.sha256, 'hex').toString('base64')}:`,
  }
}

const isWhole = ({ size, length }: Upload) => size === length

// The last byte is withheld until the file is stored: a client takes the whole length for success.
const knownOffset = (upload: Upload) =>
  isWhole(upload) && !upload.outcome ? Math.max(0, upload.size - 1) : upload.size

const progressOf = (upload: Upload) => ({
  'upload-offset': String(knownOffset(upload)),
  'upload-expires': new Date(upload.expiresAt).toUTCString(),
  ...upload.outcome,
})

const contentLengthOf = ({ headers }: FastifyRequest) => Number(headers['content-length'] ?? 0)

function demandOffsetStream({ headers }: FastifyRequest) {
  refuseContentCoding(headers)
  if (headers['content-type'] === undefined) throw notOffsetStream()
}

function demandWithin(length: number | null, end: number) {
  if (length !== null && end > length) throw uploadLengthExceeded(length)
}
