import { eachAnswer, Next, Pagination } from '@domains-and-files/http'
import { DatabaseUnavailableError } from '@domains-and-files/persistence'
import { z } from 'zod'
import type { CategoryCount as Count } from '../../catalog/reads.ts'
import type { FileRow } from '../../catalog/tables.ts'
import { nameOf, urlOf } from '../../files/file-path.ts'
import { categories } from '../../files/media-type.ts'
import type { AccessRules } from '../../sharing/access-rules.ts'
import { file, Path, recordTag, Sha256, Size, Username } from '../openapi-examples.ts'

// Files, directories and categories as the API describes them.

export const FileRecord = z
  .object({
    path: Path,
    name: z.string().meta({ description: 'last segment of the path', examples: ['hello.txt'] }),
    category: z.enum(categories).meta({ description: 'derived from the content type', examples: ['document'] }),
    content_type: z.string().meta({
      description: 'from the extension, else from the first bytes',
      examples: ['text/plain'],
    }),
    size: Size,
    sha256: Sha256,
    url: z.string().meta({ description: 'URL of the content', examples: ['/static/notes/hello.txt'] }),
    public: z.boolean().describe('whether everybody may read the content'),
    uploaded_by: Username,
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'StoredFile' })

const location = { description: 'URL of the record', example: `/api/files/${file.path}` }
const stored = { headers: { location, ...recordTag }, body: FileRecord }

/** Of the upload of one file. */
export const storedAnswers = eachAnswer({
  200: { description: 'Replaced: the record of the file', ...stored },
  201: { description: 'Created: the record of the file', ...stored },
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

export const FileList = z.object({
  files: z.array(FileRecord),
  pagination: Pagination.extend({
    total_is_exact: z.literal(false).optional().describe('total_items is a lower bound'),
  }),
  next: Next,
})

export type DescribeFiles = (rows: FileRow[]) => Promise<z.infer<typeof FileRecord>[]>

// The file is already stored, so a failed refresh is no error: uses the last known rules.
function ignoreUnavailable(error: unknown) {
  if (!(error instanceof DatabaseUnavailableError)) throw error
}

/** Their URLs are absolute with a base. */
export const fileDescriber =
  (rules: AccessRules, base?: string): DescribeFiles =>
  async (rows) => {
    await rules.refresh().catch(ignoreUnavailable)
    return rows.map((row) => ({
      path: row.path,
      name: nameOf(row.path),
      category: row.category,
      content_type: row.contentType,
      size: row.size,
      sha256: row.digest,
      url: urlOf(row.path, base),
      public: rules.isPublic(row.path),
      uploaded_by: row.uploadedBy,
      created_at: row.createdAt,
      updated_at: row.updatedAt,
    }))
  }

export const describeCategory = ({ category, fileCount, totalSize }: Count) => ({
  category,
  file_count: fileCount,
  total_size: totalSize,
})
