import { type App, Pagination, pageQuery, paginate } from '@house/http'
import { z } from 'zod'
import type { Catalog } from './catalog.ts'
import { directoryNotFound, fileNotFound } from './errors.ts'
import { etagOf, isCurrent } from './etag.ts'
import type { FileRow } from './file-row.ts'
import { categories } from './kind.ts'
import { sorts } from './listing.ts'
import { checkEncoding, readDirectory, readPath, urlOf } from './path.ts'

export const FileRecord = z
  .object({
    path: z.string().meta({ examples: ['img/logo.png'] }),
    name: z.string(),
    category: z.enum(categories),
    content_type: z.string().meta({ examples: ['image/png'] }),
    size: z.int(),
    sha256: z.string().meta({ description: '64 hex digits' }),
    url: z.string().meta({ description: 'where it is served, to everybody' }),
    uploaded_by: z.string(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'File' })

export const CategoryCount = z
  .object({ category: z.enum(categories), file_count: z.int(), total_size: z.int() })
  .meta({ id: 'Category' })

const FileNode = z
  .object({
    name: z.string(),
    path: z.string(),
    type: z.literal('file'),
    size: z.int(),
    content_type: z.string(),
  })
  .meta({ id: 'FileNode' })

const DirectoryNode = z
  .object({
    name: z.string(),
    path: z.string(),
    type: z.literal('directory'),
    file_count: z.int().meta({ description: 'of everything below' }),
    total_size: z.int().meta({ description: 'of everything below' }),
    get children(): z.ZodNullable<
      z.ZodArray<z.ZodUnion<readonly [typeof DirectoryNode, typeof FileNode]>>
    > {
      return z.array(z.union([DirectoryNode, FileNode])).nullable()
    },
    truncated: z
      .literal(true)
      .optional()
      .meta({ description: 'the directory has more children than an answer holds' }),
  })
  .meta({ id: 'DirectoryNode' })

const ListQuery = z.strictObject({
  ...pageQuery(50, 200),
  category: z.enum(categories, `must be one of ${categories.join(', ')}`).optional(),
  search: z
    .string('must be one text')
    .refine((text) => text !== '' && [...text].length <= 200, 'must have 1 to 200 characters')
    .optional()
    .meta({
      description: 'a part of the path; case does not matter',
      minLength: 1,
      maxLength: 200,
    }),
  sort: z.enum(sorts, `must be one of ${sorts.join(', ')}`).default('path'),
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

const FileList = z.object({
  files: z.array(FileRecord),
  pagination: Pagination.extend({
    total_is_exact: z
      .literal(false)
      .optional()
      .meta({ description: 'there are more hits than were counted' }),
  }),
})

export const AtPath = z.object({ '*': z.string().meta({ examples: ['img/logo.png'] }) })

const unchanged = z.undefined().meta({ description: 'the record is still as If-None-Match says' })

/** A file as callers see it; its URL is absolute with a base. */
export const describe = (row: FileRow, base?: string) => ({
  path: row.path,
  name: row.name,
  category: row.category,
  content_type: row.contentType,
  size: row.size,
  sha256: row.digest,
  url: urlOf(row.path, base),
  uploaded_by: row.uploadedBy,
  created_at: row.createdAt,
  updated_at: row.updatedAt,
})

/** The categories that have files, as callers see them. */
export const listCategories = async (catalog: Catalog) =>
  (await catalog.categories()).map(({ category, fileCount, totalSize }) => ({
    category,
    file_count: fileCount,
    total_size: totalSize,
  }))

interface FilesParts {
  catalog: Catalog
  publicBaseUrl: string | undefined
}

/** The routes of /api/files but the uploads. */
export function serveFiles(app: App, { catalog, publicBaseUrl }: FilesParts) {
  const tags = ['files']

  for (const path of ['/api/files', '/api/files/']) {
    app.get(
      path,
      {
        config: { access: 'viewer' },
        schema: {
          operationId: path.endsWith('/') ? 'getFilesSlash' : 'getFiles',
          summary: 'List files',
          tags,
          querystring: ListQuery,
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
        summary: 'Count files by category, largest count first',
        tags,
        response: { 200: z.object({ categories: z.array(CategoryCount) }) },
      },
    },
    async () => ({ categories: await listCategories(catalog) }),
  )

  app.get(
    '/api/files/tree',
    {
      config: { access: 'viewer' },
      schema: {
        summary: 'Show the directories with all that is in them',
        description:
          'At most 10,000 nodes, breadth first. A directory left unopened has `children: null`: ask again with its path as `prefix`.',
        tags,
        querystring: TreeQuery,
        response: { 200: z.object({ tree: DirectoryNode }) },
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
      schema: {
        summary: 'Describe a file',
        tags,
        params: AtPath,
        response: { 200: FileRecord, 304: unchanged },
      },
    },
    async (request, reply) => {
      const path = readPath(request.params['*'])
      const file = await catalog.find(path)
      if (!file) throw fileNotFound(path)
      const etag = etagOf(file)
      reply.header('etag', etag).header('cache-control', 'private, no-cache')
      if (isCurrent(request.headers['if-none-match'], etag)) return reply.code(304).send(undefined)
      return reply.send(describe(file, publicBaseUrl))
    },
  )

  app.delete(
    '/api/files/*',
    {
      config: { access: 'editor' },
      schema: {
        summary: 'Delete a file',
        tags,
        params: AtPath,
        response: { 204: z.undefined().meta({ description: 'deleted' }) },
      },
    },
    async (request, reply) => {
      await catalog.remove(readPath(request.params['*']), conditionsOf(request.headers))
      return reply.code(204).send(undefined)
    },
  )
}

/** What a caller asks of the file as it stands. */
export const conditionsOf = (headers: Record<string, string | string[] | undefined>) => ({
  ifMatch: headers['if-match']?.toString(),
  ifNoneMatch: headers['if-none-match']?.toString(),
})
