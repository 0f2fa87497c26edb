import { callerOf } from '@domains-and-files/auth'
import type { App } from '@domains-and-files/http'
import multipart from '@fastify/multipart'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { BlobStore } from '../blobs/blob-store.ts'
import type { Catalog } from '../catalog/catalog.ts'
import {
  duplicatePath,
  fileMissing,
  fileTooLarge,
  malformedUpload,
  notMultipart,
  reservedPath,
  tooManyFiles,
} from '../errors.ts'
import { encodePath, join, readDirectory, readPath, readWrittenPath } from '../files/file-path.ts'
import type { FileRow } from '../files/file-record.ts'
import { categoryOf, contentTypeOf } from '../files/media-type.ts'
import { nameOf } from '../files/path-segments.ts'
import { describe, FileRecord } from './file-schema.ts'
import { conditionsOf } from './files.ts'
import { type MultipartForm, readForm } from './multipart-form.ts'
import { file, takesMatch, uploadFailures } from './openapi-examples.ts'

interface UploadParts {
  store: BlobStore
  catalog: Catalog
  maxUploadBytes: number
  maxBatchFiles: number
  quotaBytes: number | undefined
  publicBaseUrl: string | undefined
  /** Told of each file once it is stored. */
  onStored: (row: FileRow) => void
}

const binary = { type: 'string', format: 'binary' } as const

const SingleForm = z.any().meta({
  type: 'object',
  examples: [{ file: 'Hello, files\n', path: 'notes/' }],
  required: ['file'],
  properties: {
    file: binary,
    path: {
      type: 'string',
      examples: ['notes/'],
      description: 'the whole path, or with a slash at its end the directory; else the file name',
    },
  },
})

const BatchForm = z.any().meta({
  type: 'object',
  examples: [{ files: ['Hello, files\n'], path: 'notes' }],
  required: ['files'],
  properties: {
    files: { type: 'array', items: binary },
    path: { type: 'string', description: 'the directory for all', examples: ['notes'] },
  },
})

const location = {
  location: { description: 'Where the record can be read', example: `/api/files/${file.path}` },
}

/** The routes of /api/files/upload. */
export async function registerUploadRoutes(app: App, parts: UploadParts): Promise<void> {
  const { maxUploadBytes: maxBytes, maxBatchFiles, quotaBytes, publicBaseUrl } = parts
  const config = { access: 'editor' as const }
  const formFailures = [
    ...uploadFailures,
    reservedPath('tree'),
    malformedUpload(undefined),
    notMultipart(),
    fileTooLarge(maxBytes),
  ]
  const tags = ['files']

  await app.register(async (scope) => {
    // Here only: no other route takes a multipart body.
    await scope.register(multipart)
    scope.addHook('onRequest', async (request) => {
      const type = request.headers['content-type'] ?? ''
      if (!/^multipart\/form-data(?:\s*;|$)/i.test(type)) throw notMultipart()
    })

    scope.post(
      '/api/files/upload',
      {
        config,
        schema: {
          operationId: 'uploadFile',
          summary: 'Store one file',
          description:
            'A file that is there is replaced: with `If-None-Match: *` only if there is none, with `If-Match` only if it is that one. Answered when the bytes are on the disk, flushed; what fails leaves nothing behind.',
          tags,
          requestHeaders: {
            ...takesMatch,
            'if-none-match': { description: '`*`: only if there is no such file', example: '*' },
          },
          errors: [...formFailures, fileMissing('file'), tooManyFiles(1)],
          responses: {
            200: { description: 'A file was replaced: its record', headers: location },
            201: { description: 'A new file was stored: its record', headers: location },
          },
          consumes: ['multipart/form-data'],
          body: SingleForm,
          response: { 200: FileRecord, 201: FileRecord },
        },
      },
      async (request, reply) => {
        const rules = {
          field: 'file',
          maxFiles: 1,
          maxBytes,
          quotaBytes,
          room: parts.catalog.mostOfContent,
        }
        await using form = await readForm(request, parts.store, rules)
        const { rows, wasNew } = await keep(request, form, singlePath)
        const [row] = rows
        if (!row) throw new Error('the catalog did not say what it stored')
        return reply
          .code(wasNew ? 201 : 200)
          .header('location', `/api/files/${encodePath(row.path)}`)
          .send(describe(row, publicBaseUrl))
      },
    )

    scope.post(
      '/api/files/upload/batch',
      {
        config,
        schema: {
          operationId: 'uploadFiles',
          summary: 'Store several files, all or none',
          description:
            'A name may hold directories, as browsers send them for a folder, and keeps them. Files that are there are replaced.',
          tags,
          errors: [
            ...formFailures,
            fileMissing('files'),
            tooManyFiles(maxBatchFiles),
            duplicatePath(file.path),
          ],
          responses: { 201: { description: 'The records of all, in the order sent' } },
          consumes: ['multipart/form-data'],
          body: BatchForm,
          response: {
            201: z.object({ files: z.array(FileRecord) }).meta({ examples: [{ files: [file] }] }),
          },
        },
      },
      async (request, reply) => {
        const rules = {
          field: 'files',
          maxFiles: maxBatchFiles,
          maxBytes,
          quotaBytes,
          room: parts.catalog.mostOfContent,
        }
        await using form = await readForm(request, parts.store, rules)
        const { rows } = await keep(request, form, batchPath)
        return reply.code(201).send({ files: rows.map((row) => describe(row, publicBaseUrl)) })
      },
    )
  })

  // Bytes first, rows last: all are durable before any is visible.
  async function keep(request: FastifyRequest, form: MultipartForm, pathOf: PathRule) {
    const paths = form.files.map(({ name }) => pathOf(name, form.path))
    const twice = paths.find((path, at) => paths.indexOf(path) !== at)
    if (twice !== undefined) throw duplicatePath(twice)
    const uploadedBy = callerOf(request).username
    const contents = new Map<string, Uint8Array>()
    const files = await Promise.all(
      form.files.map(async ({ draft }, at) => {
        const path = paths[at] ?? ''
        const contentType = await contentTypeOf(nameOf(path), draft.head)
        const { bytes, ...blob } = await draft.keep()
        if (bytes) contents.set(blob.digest, bytes)
        return { ...blob, path, contentType, category: categoryOf(contentType), uploadedBy }
      }),
    )
    const stored = await parts.catalog.put(files, conditionsOf(request.headers), contents)
    for (const row of stored.rows) parts.onStored(row)
    return stored
  }
}

type PathRule = (name: string, path: string | undefined) => string

const singlePath: PathRule = (name, path) => {
  if (path === undefined) return readPath(name)
  return path.endsWith('/') ? batchPath(name, path) : readWrittenPath(path)
}

const batchPath: PathRule = (name, path = '') => readPath(join(readDirectory(path), name))
