import {
  type App,
  afterQuery,
  answers,
  booleanQuery,
  nextOf,
  operations,
  pageQuery,
  paginate,
  uncheckedJson,
  wholeNumber,
} from '@domains-and-files/http'
import { z } from 'zod'
import { sortKeysOf, sorts } from '../../catalog/listing/list-query.ts'
import { directoryNotFound } from '../../errors.ts'
import { readDirectory } from '../../files/file-path.ts'
import { categories } from '../../files/media-type.ts'
import { FileList, Path, Size } from '../schemas.ts'
import type { FileDependencies } from './store-files.ts'

/** A directory in a query; the root is empty. */
export const prefixQuery = (description: string) =>
  z.string('must be given once').transform(readDirectory).default('').meta({ type: 'string', description })

export const ListQuery = z.strictObject({
  ...pageQuery(50, 200),
  ...afterQuery(z.strictObject({ path: z.string().max(1024), size: z.int(), updatedAt: z.iso.datetime() })),
  category: z.enum(categories).optional().describe('only files of this category'),
  search: z
    .string('must be given once')
    .refine((text) => text !== '' && [...text].length <= 200, 'must have 1 to 200 characters')
    .optional()
    .meta({ description: 'part of the path, case-insensitive', minLength: 1, maxLength: 200 }),
  prefix: prefixQuery('only files below this directory'),
  recursive: booleanQuery(true, 'false: only files directly in the directory'),
  sort: z.enum(sorts).default('path').describe('with a leading -: descending'),
})

export const UsageQuery = z.strictObject({ prefix: prefixQuery('only files below this directory') })

const TreeQuery = z.strictObject({
  prefix: prefixQuery('the directory to start at'),
  // Of all: a path has at most 32 segments.
  depth: wholeNumber(0, 999_999_999).default(32).describe('number of levels to open'),
})

export const CategoryCount = z
  .object({ category: z.enum(categories), file_count: z.int(), total_size: z.int() })
  .meta({ id: 'Category' })

const FileNode = z
  .object({
    name: z.string().meta({ examples: ['hello.txt'] }),
    path: Path,
    type: z.literal('file'),
    size: Size,
    content_type: z.string().meta({ examples: ['text/plain'] }),
  })
  .meta({ id: 'FileNode' })

export const DirectoryNode = z
  .object({
    name: z.string().meta({ examples: ['notes'] }),
    path: z.string().meta({ examples: ['notes'] }),
    type: z.literal('directory'),
    file_count: z.int().describe('including everything below'),
    total_size: z.int().describe('including everything below'),
    get children(): z.ZodNullable<z.ZodArray<z.ZodUnion<readonly [typeof DirectoryNode, typeof FileNode]>>> {
      return z.array(z.union([DirectoryNode, FileNode])).nullable()
    },
    truncated: z.literal(true).optional().describe('the directory has more children than a response can hold'),
  })
  .meta({ id: 'DirectoryNode' })

const routes = operations({
  shared: { access: 'viewer', folders: 'prefix', optionalSlash: true, tags: ['files'] },
  listFiles: {
    summary: 'List files',
    description:
      'A page past the end is an empty list. Pages by `after` repeat and skip nothing while files come and go.',
    querystring: ListQuery,
    ...answers(200, 'One page of the list', FileList),
  },
  listCategories: {
    summary: 'Count files by category, largest count first',
    description: 'The category follows from the media type of a file.',
    querystring: UsageQuery,
    ...answers(200, 'The categories with at least one file', z.object({ categories: z.array(CategoryCount) })),
  },
  getTree: {
    summary: 'Show a directory with everything below it',
    description:
      'At most 10,000 nodes, breadth first. An unopened directory has `children: null`: request it with its path as `prefix`.',
    querystring: TreeQuery,
    ...answers(200, 'The directory and what lies below it', z.object({ tree: DirectoryNode })),
  },
})

export function registerBrowseRoutes(app: App, { catalog, describe }: FileDependencies) {
  const serializerCompiler = uncheckedJson
  app.get('/api/files', { ...routes.listFiles, serializerCompiler }, async (request, reply) => {
    const { query } = request
    const list = await catalog.reads.list(query)
    return {
      files: await describe(list.rows),
      pagination: {
        ...paginate(query, list.total),
        ...(list.isExact ? {} : { total_is_exact: false as const }),
      },
      next: nextOf(request, reply, list.next && sortKeysOf(list.next)),
    }
  })
  app.get('/api/files/categories', { ...routes.listCategories, serializerCompiler }, async ({ query }) => {
    const { categories } = await catalog.reads.usage(query.prefix)
    return { categories }
  })
  app.get('/api/files/tree', routes.getTree, async (request, reply) => {
    const json = await catalog.reads.tree(request.query)
    if (!json) throw directoryNotFound(request.query.prefix)
    // The read worker serialized it: 10,000 nodes would block the event loop.
    return reply.type('application/json; charset=utf-8').send(Buffer.from(json) as never)
  })
}
