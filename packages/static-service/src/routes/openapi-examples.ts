import { type HeaderDoc, paginate } from '@domains-and-files/http'
import * as errors from '../errors.ts'

// Examples and headers of the OpenAPI document that several routes share.

export const file = {
  path: 'notes/hello.txt',
  name: 'hello.txt',
  category: 'document' as const,
  content_type: 'text/plain',
  size: 13,
  sha256: 'a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc',
  url: '/static/notes/hello.txt',
  public: true,
  uploaded_by: 'admin',
  created_at: '2027-01-15T09:30:00.000Z',
  updated_at: '2027-01-15T09:30:00.000Z',
}

export const category = { category: 'document' as const, file_count: 1, total_size: 13 }

const fileNode = {
  name: file.name,
  path: file.path,
  type: 'file' as const,
  size: file.size,
  content_type: file.content_type,
}

const directory = { type: 'directory' as const, file_count: 1, total_size: 13 }

export const tree = {
  name: '',
  path: '',
  ...directory,
  children: [{ name: 'notes', path: 'notes', ...directory, children: [fileNode] }],
}

export const version = {
  id: 1,
  version: '1.4.0',
  changelog: 'Dark mode and a faster start.',
  created_by: 'admin',
  created_at: '2027-01-15T09:30:00.000Z',
  change: 4711,
  files_kept: true,
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

export const changedFile = {
  path: file.path,
  before: null,
  after: { sha256: file.sha256, size: file.size },
}

export const pathState = {
  change: change.id,
  at: change.at,
  by: change.by,
  action: change.action,
  sha256: file.sha256,
  size: file.size,
  content_type: file.content_type,
  is_current: true,
}

export const stats = {
  total_files: 1,
  total_size: 13,
  stored_size: 13,
  past_size: 0,
  categories: [category],
  versions: 1,
}

const etag = '"ea65beb02cd7af588b52298bc8e4c0af"'

export const recordTag: Record<string, HeaderDoc> = {
  etag: { description: 'Changes with every change of the record', example: etag },
}

export const ifNoneMatchHeader: Record<string, HeaderDoc> = {
  'if-none-match': { description: 'ETag of a cached copy: 304 if still current', example: etag },
}

/** Precondition of a change; the tag is that of the record or of the content under /static. */
export const ifMatchHeader: Record<string, HeaderDoc> = {
  'if-match': {
    description: 'Only if the stored file has this ETag; `*`: only if there is one',
    example: etag,
  },
  'if-unmodified-since': {
    description: 'Only if there is no file that was stored after this date; ignored with If-Match',
    example: 'Fri, 15 Jan 2027 09:30:00 GMT',
  },
}

export const uploadConditions: Record<string, HeaderDoc> = {
  ...ifMatchHeader,
  'if-none-match': { description: '`*`: only if there is no such file', example: '*' },
}

const uploadHeaders: Record<string, HeaderDoc> = {
  location: { description: 'URL of the record', example: `/api/files/${file.path}` },
  ...recordTag,
}

/** Of the upload of one file. */
export const storedAnswers = {
  200: { description: 'Replaced: the record of the file', headers: uploadHeaders },
  201: { description: 'Created: the record of the file', headers: uploadHeaders },
}

export const uploadErrors = [
  errors.invalidPath('a segment is . or ..'),
  errors.pathConflict('notes'),
  errors.insufficientStorage(),
  errors.quotaExceeded(10_737_418_240),
  errors.preconditionFailed(file.path),
]

const pagination = paginate({ page: 1, page_size: 50 }, 1)

/** The example of a list that `next` follows: one page. */
export const lastPage = (members: object) => ({
  examples: [{ ...members, pagination, next: null }],
})
