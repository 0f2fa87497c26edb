import { Next, Pagination } from '@domains-and-files/http'
import { z } from 'zod'
import * as errors from '../errors.ts'
import { categories } from '../files/media-type.ts'

// What several routes share of their schemas and of the OpenAPI document.

export const file = {
  path: 'notes/hello.txt',
  size: 13,
  sha256: 'a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc',
}

export const change = {
  id: 4711,
  at: '2027-01-15T09:30:00.000Z',
  by: 'admin',
  token: null,
  request_id: '9f1c2a4e-5b7d-4c3a-8e6f-0a1b2c3d4e5f',
  action: 'upload' as const,
  prefix: null,
  version: null,
  added: 1,
  replaced: 0,
  removed: 0,
  bytes: 13,
  paths: [file.path],
}

// Fields of several resources, with examples.

export const Path = z.string().meta({ examples: [file.path] })
export const Size = z.int().meta({ description: 'bytes', examples: [file.size] })
export const Sha256 = z.string().meta({ description: '64 hex digits', examples: [file.sha256] })
export const Username = z.string().meta({ description: 'username', examples: ['admin'] })
export const VersionName = z.string().meta({ description: 'name of the version', examples: ['1.4.0'] })

/** The rest of a URL, as the parameters of a route. */
export const restOfUrl = (description: string, example: string) =>
  z.object({ '*': z.string().meta({ description, examples: [example] }) })

const etag = '"ea65beb02cd7af588b52298bc8e4c0af"'

export const recordTag = {
  etag: { description: 'Changes with every change of the record', example: etag },
}

export const ifNoneMatchHeader = {
  'if-none-match': { description: 'ETag of a cached copy: 304 if still current', example: etag },
}

/** Precondition of a change; the tag is that of the record or of the content under /static. */
export const ifMatchHeader = {
  'if-match': {
    description: 'Only if the stored file has this ETag; `*`: only if there is one',
    example: etag,
  },
  'if-unmodified-since': {
    description: 'Only if there is no file that was stored after this date; ignored with If-Match',
    example: 'Fri, 15 Jan 2027 09:30:00 GMT',
  },
}

export const uploadConditions = {
  ...ifMatchHeader,
  'if-none-match': { description: '`*`: only if there is no such file', example: '*' },
}

export const fileTooLarge = errors.fileTooLarge(1_073_741_824)

export const noRoom = [errors.insufficientStorage(), errors.quotaExceeded(10_737_418_240)]

export const uploadErrors = [
  errors.invalidPath('a segment is . or ..'),
  errors.pathConflict('notes'),
  ...noRoom,
  errors.preconditionFailed(file.path),
]

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
export const storedAnswers = {
  responses: {
    200: { description: 'Replaced: the record of the file', ...stored },
    201: { description: 'Created: the record of the file', ...stored },
  },
}

export const FileList = z.object({
  files: z.array(FileRecord),
  pagination: Pagination.extend({
    total_is_exact: z.literal(false).optional().describe('total_items is a lower bound'),
  }),
  next: Next,
})
