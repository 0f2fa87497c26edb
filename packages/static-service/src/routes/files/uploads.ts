import { callerOf } from '@domains-and-files/auth'
import type { App } from '@domains-and-files/http'
import multipart from '@fastify/multipart'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { BlobStore } from '../../blobs/blob-store.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import {
  contentCodingNotSupported,
  duplicatePath,
  fileMissing,
  fileTooLarge,
  malformedUpload,
  notMultipart,
  reservedPath,
  tooManyFiles,
} from '../../errors.ts'
import { join, readDirectory, readPath, readWrittenPath } from '../../files/file-path.ts'
import type { FileRow } from '../../files/file-record.ts'
import { requirePath } from '../folder-limits.ts'
import { file, uploadConditions, uploadErrors, uploadHeaders } from '../openapi-examples.ts'
import { type DescribeFiles, FileRecord } from './file-schema.ts'
import { conditionsOf } from './files.ts'
import { type FormRules, formOverhead, readForm } from './multipart-form.ts'
import { sendStored, storeFiles } from './store-files.ts'
import { refuseContentCoding, type UploadLimits } from './upload-limits.ts'

export interface UploadDependencies {
  store: BlobStore
  catalog: Catalog
  limits: UploadLimits
  maxBatchFiles: number
  describe: DescribeFiles
  /** Called with each file after it was stored. */
  onStored: (row: FileRow) => void
}

export async function registerUploadRoutes(app: App, dependencies: UploadDependencies) {
  await app.register(async (scope) => {
    // Encapsulated: no other route accepts multipart bodies.
    await scope.register(multipart)
    scope.addHook('onRequest', async ({ headers }) => {
      const type = headers['content-type'] ?? ''
      if (!/^multipart\/form-data(?:\s*;|$)/i.test(type)) throw notMultipart()
      refuseContentCoding(headers)
    })
    uploadFile(scope, dependencies)
    uploadFiles(scope, dependencies)
  })
}

const binary = { type: 'string', format: 'binary' } as const

const formErrors = [
  ...uploadErrors,
  reservedPath('tree'),
  malformedUpload(undefined),
  notMultipart(),
  contentCodingNotSupported(),
]

const uploadFileSchema = (maxBytes: number) => ({
  operationId: 'uploadFile',
  summary: 'Store one file',
  description:
    'Replaces an existing file; `If-None-Match: *` forbids that, `If-Match` allows it for one state of the file only. After the response the bytes are durable; a failed upload leaves nothing behind.',
  tags: ['files'],
  requestHeaders: uploadConditions,
  errors: [...formErrors, fileTooLarge(maxBytes), fileMissing('file'), tooManyFiles(1)],
  responses: {
    200: { description: 'Replaced: the record of the file', headers: uploadHeaders },
    201: { description: 'Created: the record of the file', headers: uploadHeaders },
  },
  consumes: ['multipart/form-data'],
  body: z.any().meta({
    type: 'object',
    examples: [{ file: 'Hello, files\n', path: 'notes/' }],
    required: ['file'],
    properties: {
      file: binary,
      path: {
        type: 'string',
        examples: ['notes/'],
        description: 'whole path, or a directory with a trailing slash; default: the file name',
      },
    },
  }),
  response: { 200: FileRecord, 201: FileRecord },
})

function uploadFile(app: App, dependencies: UploadDependencies) {
  const { store, limits } = dependencies
  app.post(
    '/api/files/upload',
    {
      config: { access: 'editor', folders: 'handler' },
      onRequest: checkLength(limits, 1),
      schema: uploadFileSchema(limits.maxBytes),
    },
    async (request, reply) => {
      const maxFiles = 1
      const admit = admitAt(request, limits, { pathOf: singlePath, maxFiles })
      await using form = await readForm(request, store, { field: 'file', maxFiles, admit })
      const arrivals = form.arrivals(singlePath)
      return sendStored(reply, await storeFiles(request, arrivals, dependencies))
    },
  )
}

const uploadFilesSchema = (maxBytes: number, maxFiles: number) => ({
  operationId: 'uploadFiles',
  summary: 'Store several files, all or none',
  description:
    'A file name may contain a relative directory, as browsers send it for a folder. Replaces existing files.',
  tags: ['files'],
  errors: [
    ...formErrors,
    fileTooLarge(maxBytes),
    fileMissing('files'),
    tooManyFiles(maxFiles),
    duplicatePath(file.path),
  ],
  responses: { 201: { description: 'The records in the order sent' } },
  consumes: ['multipart/form-data'],
  body: z.any().meta({
    type: 'object',
    examples: [{ files: ['Hello, files\n'], path: 'notes' }],
    required: ['files'],
    properties: {
      files: { type: 'array', items: binary },
      path: { type: 'string', description: 'directory of all files', examples: ['notes'] },
    },
  }),
  response: {
    201: z.object({ files: z.array(FileRecord) }).meta({ examples: [{ files: [file] }] }),
  },
})

function uploadFiles(app: App, dependencies: UploadDependencies) {
  const { store, limits, maxBatchFiles: maxFiles } = dependencies
  app.post(
    '/api/files/upload/batch',
    {
      config: { access: 'editor', folders: 'handler' },
      onRequest: checkLength(limits, maxFiles),
      schema: uploadFilesSchema(limits.maxBytes, maxFiles),
    },
    async (request, reply) => {
      const admit = admitAt(request, limits, { pathOf: batchPath, maxFiles })
      await using form = await readForm(request, store, { field: 'files', maxFiles, admit })
      const arrivals = form.arrivals(batchPath)
      checkDistinct(arrivals.map(({ path }) => path))
      const { stored } = await storeFiles(request, arrivals, dependencies)
      return reply.code(201).send({ files: stored.map(({ record }) => record) })
    },
  )
}

/** Refuses a form whose length proves that one of its files is too large. */
const checkLength =
  (limits: UploadLimits, maxFiles: number) =>
  async ({ headers }: FastifyRequest) =>
    limits.checkSize((Number(headers['content-length'] ?? 0) - formOverhead(maxFiles)) / maxFiles)

/** Admits each file at the path that it is going to have, where the field `path` came before it. */
const admitAt =
  (
    request: FastifyRequest,
    limits: UploadLimits,
    { pathOf, maxFiles }: { pathOf: typeof batchPath; maxFiles: number },
  ): FormRules['admit'] =>
  async (name, path) => {
    if (path === undefined || name === '') return limits.meter(undefined)
    const target = requirePath(callerOf(request), pathOf(name, path))
    await limits.checkTarget(target, conditionsOf(request.headers))
    // Of several files the transaction knows whether they exceed the quota together.
    return limits.meter(maxFiles === 1 ? target : undefined)
  }

/** @throws {HttpError} `duplicate_path`. */
export function checkDistinct(paths: string[]): void {
  const seen = new Set<string>()
  for (const path of paths) {
    if (seen.has(path)) throw duplicatePath(path)
    seen.add(path)
  }
}

function singlePath(name: string, path: string | undefined): string {
  if (path === undefined) return readPath(name)
  return path.endsWith('/') ? batchPath(name, path) : readWrittenPath(path)
}

const batchPath = (name: string, path = '') => readPath(join(readDirectory(path), name))
