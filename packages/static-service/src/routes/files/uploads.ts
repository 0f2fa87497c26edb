import { callerOf } from '@domains-and-files/auth'
import { type App, answers } from '@domains-and-files/http'
import multipart from '@fastify/multipart'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { BlobStore } from '../../blobs/blob-store.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import * as errors from '../../errors.ts'
import { join, readDirectory, readPath, readWrittenPath } from '../../files/file-path.ts'
import type { FileRow } from '../../files/file-record.ts'
import { requirePath } from '../callers.ts'
import { file, storedAnswers, uploadConditions, uploadErrors } from '../openapi-examples.ts'
import { type DescribeFiles, FileRecord } from './file-schema.ts'
import { type FormRules, formOverhead, readForm } from './multipart-form.ts'
import {
  conditionsOf,
  refuseContentCoding,
  sendStored,
  storeFiles,
  type UploadLimits,
} from './store-files.ts'

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
      if (!/^multipart\/form-data(?:\s*;|$)/i.test(type)) throw errors.notMultipart()
      refuseContentCoding(headers)
    })
    uploadFile(scope, dependencies)
    uploadFiles(scope, dependencies)
  })
}

const binary = { type: 'string', format: 'binary' } as const

const formErrors = [
  ...uploadErrors,
  errors.reservedPath('tree'),
  errors.malformedUpload(undefined),
  errors.notMultipart(),
  errors.contentCodingNotSupported(),
]

const uploadFileSchema = (maxBytes: number) => ({
  operationId: 'uploadFile',
  summary: 'Store one file',
  description:
    'Replaces an existing file; `If-None-Match: *` forbids that, `If-Match` allows it for one state of the file only. After the response the bytes are durable; a failed upload leaves nothing behind.',
  tags: ['files'],
  requestHeaders: uploadConditions,
  errors: [
    ...formErrors,
    errors.fileTooLarge(maxBytes),
    errors.fileMissing('file'),
    errors.tooManyFiles(1),
  ],
  responses: storedAnswers,
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
  const form = { field: 'file', maxFiles: 1, pathOf: singlePath }
  app.post(
    '/api/files/upload',
    {
      config: { access: 'editor', folders: 'handler' },
      schema: uploadFileSchema(dependencies.limits.maxBytes),
    },
    async (request, reply) => sendStored(reply, await storeForm(request, form, dependencies)),
  )
}

const uploadFilesSchema = (maxBytes: number, maxFiles: number) => ({
  operationId: 'uploadFiles',
  summary: 'Store several files, all or none',
  description:
    'A file name may contain a relative directory, as browsers send it for a folder. Replaces existing files; `If-None-Match: *` forbids that, and the refusal names all that exist in `paths`.',
  tags: ['files'],
  requestHeaders: uploadConditions,
  errors: [
    ...formErrors,
    errors.fileTooLarge(maxBytes),
    errors.fileMissing('files'),
    errors.tooManyFiles(maxFiles),
    errors.duplicatePath(file.path),
  ],
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
  ...answers(
    201,
    'The records in the order sent',
    z.object({ files: z.array(FileRecord) }).meta({ examples: [{ files: [file] }] }),
  ),
})

function uploadFiles(app: App, dependencies: UploadDependencies) {
  const { limits, maxBatchFiles: maxFiles } = dependencies
  const form = { field: 'files', maxFiles, pathOf: batchPath }
  app.post(
    '/api/files/upload/batch',
    {
      config: { access: 'editor', folders: 'handler' },
      schema: uploadFilesSchema(limits.maxBytes, maxFiles),
    },
    async (request, reply) => {
      const { stored } = await storeForm(request, form, dependencies)
      return reply.code(201).send({ files: stored.map(({ record }) => record) })
    },
  )
}

type Form = Omit<FormRules, 'admit'>

/** Stores the files of a form. Admits each at its final path, if the field `path` came before it. */
async function storeForm(request: FastifyRequest, form: Form, dependencies: UploadDependencies) {
  const { store, limits } = dependencies
  const { pathOf, maxFiles } = form
  // Rejects without reading if the length proves that one of the files is too large.
  const length = Number(request.headers['content-length'] ?? 0)
  limits.checkSize((length - formOverhead(maxFiles)) / maxFiles)
  const targets: string[] = []
  async function admit(name: string, path: string | undefined) {
    if (path === undefined || name === '') return limits.meter(undefined)
    const target = requirePath(callerOf(request), pathOf(name, path))
    targets.push(target)
    checkDistinct(targets)
    // For several files, the transaction checks conditions, to name all that fail, and the quota.
    await limits.checkTarget(target, maxFiles === 1 ? conditionsOf(request.headers) : {})
    return limits.meter(maxFiles === 1 ? target : undefined)
  }
  await using received = await readForm(request, store, { ...form, admit })
  checkDistinct(received.arrivals.map(({ path }) => path))
  return await storeFiles(request, received.arrivals, dependencies)
}

/** @throws {HttpError} `duplicate_path`. */
export function checkDistinct(paths: string[]): void {
  const seen = new Set<string>()
  for (const path of paths) {
    if (seen.has(path)) throw errors.duplicatePath(path)
    seen.add(path)
  }
}

function singlePath(name: string, path: string | undefined): string {
  if (path === undefined) return readPath(name)
  return path.endsWith('/') ? batchPath(name, path) : readWrittenPath(path)
}

const batchPath = (name: string, path = '') => readPath(join(readDirectory(path), name))
