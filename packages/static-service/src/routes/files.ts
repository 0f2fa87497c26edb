import type { IncomingHttpHeaders } from 'node:http'
import {
  type App,
  isCurrent,
  pageQuery,
  paginate,
  readIfMatch,
  readIfNoneMatch,
} from '@domains-and-files/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Catalog } from '../catalog/catalog.ts'
import { sorts } from '../catalog/search/list-files.ts'
import {
  directoryNotFound,
  fileNotFound,
  invalidPath,
  preconditionFailed,
  reservedPath,
} from '../errors.ts'
import { checkEncoding, readDirectory, readPath } from '../files/file-path.ts'
import { categories } from '../files/media-type.ts'
import type { Conditions } from '../rfc9110/entity-tags.ts'
import type { FileRecordCache, WrittenRecord } from './file-record-cache.ts'
import { CategoryCount, DirectoryNode, describe, FileList, FileRecord } from './file-schema.ts'
import {
  category,
  file as exampleFile,
  tree as exampleTree,
  recordTag,
  takesMatch,
  takesNoneMatch,
} from './openapi-examples.ts'

const ListQuery = z.strictObject({
  ...pageQuery(50, 200),
  category: z
    .enum(categories, `must be one of ${categories.join(', ')}`)
    .optional()
    .meta({ description: 'only files of this category' }),
  search: z
    .string('must be one text')
    .refine((text) => text !== '' && [...text].length <= 200, 'must have 1 to 200 characters')
    .optional()
    .meta({
      description: 'a part of the path; case does not matter',
      minLength: 1,
      maxLength: 200,
    }),
  sort: z
    .enum(sorts, `must be one of ${sorts.join(', ')}`)
    .default('path')
    .meta({ description: 'with - before it: descending' }),
})

const deepest = 32

const TreeQuery = z.strictObject({
  prefix: z
    .string('must be one text')
    .default('')
    .meta({ description: 'the directory to start at' }),
  depth: z
    .string('must be a whole number')
    .regex(/^[0-9]{1,9}$/, 'must be a whole number from 0')
    .transform(Number)
    .default(deepest)
    .meta({ type: 'integer', description: 'how many levels to open' }),
})

const AtPath = z.object({
  '*': z.string().meta({ description: 'the path of a file', examples: [exampleFile.path] }),
})

const unusable = [invalidPath('a segment is empty'), reservedPath('tree')]

/** The categories that have files, as callers see them. */
export const listCategories = async (catalog: Catalog) =>
  (await catalog.categories()).map(({ category, fileCount, totalSize }) => ({
    category,
    file_count: fileCount,
    total_size: totalSize,
  }))

interface FilesParts {
  catalog: Catalog
  records: FileRecordCache
  publicBaseUrl: string | undefined
}

/** The routes of /api/files but the uploads. */
export function registerFileRoutes(app: App, { catalog, records, publicBaseUrl }: FilesParts) {
  const tags = ['files']

  for (const path of ['/api/files', '/api/files/']) {
    app.get(
      path,
      {
        config: { access: 'viewer' },
        schema: {
          operationId: 'listFiles',
          summary: 'List files',
          description:
            'By category, by a part of the path, in the order that you say. A page past the end is an empty list.',
          tags,
          querystring: ListQuery,
          responses: { 200: { description: 'One page of the list' } },
          response: { 200: FileList },
        },
      },
      async ({ query }) => {
        const list = await catalog.list({ ...query, pageSize: query.page_size })
        return {
          files: list.rows.map((row) => describe(row, publicBaseUrl)),
          pagination: {
            ...paginate(query, list.total),
            ...(list.isExact ? {} : { total_is_exact: false as const }),
          },
        }
      },
    )
  }

  app.get(
    '/api/files/categories',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'listCategories',
        summary: 'Count files by category, largest count first',
        tags,
        responses: { 200: { description: 'The categories that have files' } },
        response: {
          200: z
            .object({ categories: z.array(CategoryCount) })
            .meta({ examples: [{ categories: [category] }] }),
        },
      },
    },
    async () => ({ categories: await listCategories(catalog) }),
  )

  app.get(
    '/api/files/tree',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getTree',
        summary: 'Show the directories with all that is in them',
        description:
          'At most 10,000 nodes, breadth first. A directory left unopened has `children: null`: ask again with its path as `prefix`.',
        tags,
        querystring: TreeQuery,
        errors: [...unusable, directoryNotFound('notes/old')],
        responses: { 200: { description: 'The directory, with what lies below it' } },
        response: {
          200: z.object({ tree: DirectoryNode }).meta({ examples: [{ tree: exampleTree }] }),
        },
      },
    },
    async (request, reply) => {
      const { prefix, depth } = request.query
      checkEncoding(request.url)
      const tree = await catalog.tree({ prefix: readDirectory(prefix), depth })
      if (!tree) throw directoryNotFound(prefix)
      // It comes written from the thread that read it.
      return reply.type('application/json; charset=utf-8').send(Buffer.from(tree) as never)
    },
  )

  app.get(
    '/api/files/*',
    {
      config: { access: 'viewer' },
      // After the caller was admitted, and before the rest is parsed: what has no query has nothing to parse.
      onRequest: (request, reply, done) => {
        const record = request.url.includes('?') ? undefined : records.recall(request.params['*'])
        if (!record) return done()
        answerRecord(request, reply, record)
      },
      schema: {
        operationId: 'getFile',
        summary: 'Describe a file',
        tags,
        params: AtPath,
        requestHeaders: takesNoneMatch,
        errors: [...unusable, fileNotFound(exampleFile.path)],
        responses: {
          200: { description: 'The record of the file', headers: recordTag },
          304: { description: 'The record is still as If-None-Match says', headers: recordTag },
        },
        response: { 200: FileRecord, 304: z.undefined() },
      },
    },
    async (request, reply) => {
      const path = readPath(request.params['*'])
      const record = await records.find(path)
      if (!record) throw fileNotFound(path)
      return answerRecord(request, reply, record)
    },
  )

  app.delete(
    '/api/files/*',
    {
      config: { access: 'editor' },
      schema: {
        operationId: 'deleteFile',
        summary: 'Delete a file',
        description: 'Once it is answered, no later GET sees the file.',
        tags,
        params: AtPath,
        requestHeaders: takesMatch,
        errors: [...unusable, fileNotFound(exampleFile.path), preconditionFailed(exampleFile.path)],
        responses: { 204: { description: 'Deleted' } },
        response: { 204: z.undefined() },
      },
    },
    async (request, reply) => {
      await catalog.remove(readPath(request.params['*']), conditionsOf(request.headers))
      return reply.code(204).send(undefined)
    },
  )
}

function answerRecord(request: FastifyRequest, reply: FastifyReply, { etag, json }: WrittenRecord) {
  reply.header('etag', etag).header('cache-control', 'private, no-cache')
  if (isCurrent(request.headers['if-none-match'], etag)) return reply.code(304).send()
  return reply.header('content-type', 'application/json; charset=utf-8').send(json)
}

/** The preconditions on the stored file that a request carries. */
export function conditionsOf(headers: IncomingHttpHeaders): Conditions {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  return {
    ifMatch: ifMatch === undefined ? undefined : readIfMatch(ifMatch),
    ifNoneMatch: ifNoneMatch === undefined ? undefined : readIfNoneMatch(ifNoneMatch),
  }
}
