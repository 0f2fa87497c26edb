import { Next, Pagination } from '@domains-and-files/http'
import { DatabaseUnavailableError } from '@domains-and-files/persistence'
import { z } from 'zod'
import { urlOf } from '../../files/file-path.ts'
import type { CategoryCount as Count, FileRow } from '../../files/file-record.ts'
import { categories } from '../../files/media-type.ts'
import { etagOf } from '../../rfc9110/entity-tags.ts'
import type { AccessRules } from '../../sharing/access-rules.ts'
import { category, file, lastPage } from '../openapi-examples.ts'

// Files, directories and categories as the API describes them.

export const FileRecord = z
  .object({
    path: z.string(),
    name: z.string().meta({ description: 'last segment of the path' }),
    category: z.enum(categories).meta({ description: 'derived from the content type' }),
    content_type: z.string().meta({
      description: 'from the extension, else from the first bytes',
      examples: ['image/png'],
    }),
    size: z.int().meta({ description: 'bytes' }),
    sha256: z.string().meta({ description: '64 hex digits' }),
    url: z.string().meta({ description: 'URL of the content' }),
    public: z.boolean().meta({ description: 'whether everybody may read the content' }),
    uploaded_by: z.string().meta({ description: 'username' }),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'StoredFile', examples: [file] })

export const CategoryCount = z
  .object({ category: z.enum(categories), file_count: z.int(), total_size: z.int() })
  .meta({ id: 'Category', examples: [category] })

const FileNode = z
  .object({
    name: z.string(),
    path: z.string(),
    type: z.literal('file'),
    size: z.int(),
    content_type: z.string(),
  })
  .meta({ id: 'FileNode' })

export const DirectoryNode = z
  .object({
    name: z.string(),
    path: z.string(),
    type: z.literal('directory'),
    file_count: z.int().meta({ description: 'including everything below' }),
    total_size: z.int().meta({ description: 'including everything below' }),
    get children(): z.ZodNullable<
      z.ZodArray<z.ZodUnion<readonly [typeof DirectoryNode, typeof FileNode]>>
    > {
      return z.array(z.union([DirectoryNode, FileNode])).nullable()
    },
    truncated: z
      .literal(true)
      .optional()
      .meta({ description: 'the directory has more children than a response can hold' }),
  })
  .meta({ id: 'DirectoryNode' })

export const FileList = z
  .object({
    files: z.array(FileRecord),
    pagination: Pagination.extend({
      total_is_exact: z
        .literal(false)
        .optional()
        .meta({ description: 'total_items is a lower bound' }),
    }),
    next: Next,
  })
  .meta(lastPage({ files: [file] }))

export type DescribeFiles = (rows: FileRow[]) => Promise<DescribedFile[]>

export interface DescribedFile {
  record: z.infer<typeof FileRecord>
  /** Lazy: lists need no tag, and hashing costs as much as the rest of a row. */
  etag: () => string
}

// The file is already stored, so a failed refresh is no error: uses the last known rules.
function ignoreUnavailable(error: unknown) {
  if (!(error instanceof DatabaseUnavailableError)) throw error
}

/** Their URLs are absolute with a base. */
export const fileDescriber =
  (rules: AccessRules, base?: string): DescribeFiles =>
  async (rows) => {
    await rules.refresh().catch(ignoreUnavailable)
    return rows.map((row) => {
      const isPublic = rules.isPublic(row.path)
      return {
        record: {
          path: row.path,
          name: row.name,
          category: row.category,
          content_type: row.contentType,
          size: row.size,
          sha256: row.digest,
          url: urlOf(row.path, base),
          public: isPublic,
          uploaded_by: row.uploadedBy,
          created_at: row.createdAt,
          updated_at: row.updatedAt,
        },
        etag: () => etagOf(row, isPublic),
      }
    })
  }

export const describeCategory = ({ category, fileCount, totalSize }: Count) => ({
  category,
  file_count: fileCount,
  total_size: totalSize,
})
