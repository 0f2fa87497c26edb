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
import { registerRawBodies } from '../files/put-file.ts'
import { conditionsOf, readBody, refuseContentCoding, storeFiles } from '../files/store-files.ts'
import type { UploadDependencies } from '../files/uploads.ts'
import {
  checkBytes,
  offsetStream,
  readConditions,
  readTarget,
  readTusHeaders,
} from './tus-headers.ts'
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
        throw tusVersionNotSupported()
    })
    scope.addHook('onSend', async (_request, reply) => {
      reply.header('tus-resumable', '1.0.0').header('cache-control', 'no-store')
    })
    const { maxBytes } = dependencies.limits
    const abilities = {
      'tus-version': '1.0.0',
      'tus-max-size': String(maxBytes),
      'tus-extension':
        'creation,creation-with-upload,creation-defer-length,expiration,termination,checksum',
      'tus-checksum-algorithm': 'sha1,sha256',
    }
    for (const each of [...urls, uploadUrl])
      scope.options(each, { schema: { hide: true } }, (_request, reply) =>
        reply.code(204).headers(abilities).send(),
      )
    addRoutes(scope, dependencies)
  })
}

const urls = ['/api/uploads', '/api/uploads/']
const uploadUrl = '/api/uploads/:id'

function addRoutes(app: App, dependencies: Dependencies) {
  const config = { access: 'editor', folders: 'handler' } as const
  const {
    create: schema,
    append: patch,
    remove: deletion,
  } = tusSchemas(dependencies.limits.maxBytes)
  for (const each of urls)
    app.post(each, { config, schema }, (request, reply) =>
      create({ ...dependencies, request, reply }, request.query.folder),
    )
  const at = (handle: Handler) => (request: FastifyRequest & { params: Id }, reply: FastifyReply) =>
    handle({ ...dependencies, request, reply }, request.params)
  app.patch(uploadUrl, { config, schema: patch }, at(append))
  app.delete(uploadUrl, { config, schema: deletion }, at(remove))
  // The document has neither.
  const hidden = { hide: true, params: patch.params }
  app.head(uploadUrl, { config, schema: hidden }, at(describe))
  app.post(uploadUrl, { config, schema: hidden }, (request, reply) => {
    const method = request.headers['x-http-method-override']?.toString().toUpperCase() ?? 'POST'
    const handle = handlers[method]
    if (!handle) throw methodNotAllowed(method, Object.keys(handlers).join(', '))
    return at(handle)(request, reply)
  })
}

interface Exchange extends Dependencies {
  request: FastifyRequest
  reply: FastifyReply
}

type Id = { id: string }
type Handler = (exchange: Exchange, id: Id) => Promise<unknown>

async function create(exchange: Exchange, folder: string | undefined) {
  const { request, reply, uploads, limits } = exchange
  const { headers } = request
  if (headers['upload-concat'] !== undefined) throw concatenationNotSupported()
  const sent = readTusHeaders(headers)
  const { 'upload-length': length = null, 'upload-metadata': metadata } = sent
  if ((length === null) === (sent['upload-defer-length'] === undefined))
    throw malformedTus('Send either Upload-Length or Upload-Defer-Length: 1')
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
    receive(exchange, writer, 0, false).catch(async (error) => {
      // Only a whole upload is worth another attempt: the client has no URL yet.
      if (!isWhole(writer.upload)) await writer.end()
      throw error
    }),
  )
  return reply.headers(progressOf(upload)).send()
}

const describe: Handler = async ({ request, reply, uploads }, { id }) => {
  const upload = await uploads.find(id, callerOf(request))
  const { length, metadata, outcome } = upload
  // A whole upload without a byte has none that could be withheld.
  const isOpen = length === null || (length === 0 && !outcome)
  return reply
    .code(200)
    .headers(progressOf(upload))
    .headers(isOpen ? { 'upload-defer-length': '1' } : { 'upload-length': String(length) })
    .headers(metadata ? { 'upload-metadata': metadata } : {})
    .send()
}

const append: Handler = async (exchange, { id }) => {
  const { request, reply, uploads } = exchange
  demandOffsetStream(request)
  const { 'upload-offset': offset } = readTusHeaders(request.headers)
  if (offset === undefined) throw malformedTus('Send Upload-Offset')
  const upload = await uploads.write(id, callerOf(request), (writer) =>
    (writer.upload.outcome ? repeat : receive)(exchange, writer, offset),
  )
  return reply.code(204).headers(progressOf(upload)).send()
}

const remove: Handler = async ({ request, reply, uploads }, { id }) => {
  await uploads.write(id, callerOf(request), (writer) => writer.end())
  return reply.code(204).send()
}

const handlers: Record<string, Handler> = { HEAD: describe, PATCH: append, DELETE: remove }

/** The last PATCH of a published upload, which may have met no response: its bytes are there. */
async function repeat({ request }: Exchange, { upload: { size } }: UploadWriter, offset: number) {
  let end = offset
  for await (const chunk of request.raw.iterator({ destroyOnReturn: false })) end += chunk.length
  if (end !== size) throw offsetConflict(size)
}

// Receives the bytes of a request, and stores the file when they are all there. After an earlier attempt at that, the last
// request may come again: the file may be stored, though nobody was told.
async function receive(
  exchange: Exchange,
  writer: UploadWriter,
  offset: number,
  isRepeated = isWhole(writer.upload),
) {
  const { request, limits } = exchange
  const { size, length: known } = writer.upload
  const { 'upload-length': sent, 'upload-checksum': checksum } = readTusHeaders(request.headers)
  if (isRepeated ? offset > size : offset !== size) throw offsetConflict(knownOffset(writer.upload))
  const length = known ?? sent ?? null
  if (length !== null && (length < size || (sent ?? length) !== length))
    throw malformedTus('Upload-Length cannot be changed, nor be less than what was sent')
  limits.checkSize(length ?? offset + contentLengthOf(request))
  const maxBytes = length ?? limits.maxBytes
  demandWithin(maxBytes, offset + contentLengthOf(request))
  if (length !== known) await writer.record({ length })
  const check = checksum === undefined ? undefined : checkBytes(checksum)
  async function* appended(chunks: AsyncIterable<Buffer>) {
    let end = offset
    for await (const chunk of chunks) {
      const skipped = Math.min(Math.max(0, size - end), chunk.length)
      end += chunk.length
      demandWithin(maxBytes, end)
      check?.(chunk)
      yield chunk.subarray(skipped)
    }
    if (end < size) throw offsetConflict(knownOffset(writer.upload))
    check?.()
  }
  await readBody(request.raw, (chunks) => writer.receive(appended(chunks), check !== undefined))
  if (isWhole(writer.upload)) await publish(exchange, writer, isRepeated)
}

async function publish(exchange: Exchange, writer: UploadWriter, isRepeated: boolean) {
  const { path, owner, metadata } = writer.upload
  const { request, catalog, describe } = exchange
  const draft = await writer.seal()
  const row = isRepeated ? await catalog.find(path) : undefined
  const isStored = row?.digest === draft.digest && row.uploadedBy === owner
  // A retry may come under another condition than the one that failed.
  const isChanged = request.headers['if-match'] !== undefined
  const conditions = isChanged ? conditionsOf(request.headers) : readConditions(metadata)
  const { stored } = isStored
    ? { stored: await describe([row]) }
    : await storeFiles(request, [{ path, draft }], exchange, conditions)
  const [file] = stored
  if (!file) throw new Error('the catalog returned no row')
  const outcome = {
    'content-location': `/api/files/${encodePath(file.record.path)}`,
    etag: file.etag(),
    'repr-digest': `sha-256=:${Buffer.from(draft.digest, 'hex').toString('base64')}:`,
  }
  await writer.finish(JSON.stringify(outcome))
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
  if (headers['content-type'] === undefined) throw notOffsetStream()
}

function demandWithin(length: number, end: number) {
  if (end > length) throw uploadLengthExceeded(length)
}
