import type { HeaderDoc } from '@domains-and-files/http'
import {
  insufficientStorage,
  invalidPath,
  pathConflict,
  preconditionFailed,
  quotaExceeded,
} from '../errors.ts'

// What the description of the API shows: one file, one version, and what several routes tell alike.

export const file = {
  path: 'notes/hello.txt',
  name: 'hello.txt',
  category: 'document' as const,
  content_type: 'text/plain',
  size: 13,
  sha256: 'a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc',
  url: '/static/notes/hello.txt',
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
  changelog: 'Dark mode, and a faster start.',
  created_by: 'admin',
  created_at: '2027-01-15T09:30:00.000Z',
}

export const stats = {
  total_files: 1,
  total_size: 13,
  stored_size: 13,
  categories: [category],
  versions: 1,
}

const etag = '"ea65beb02cd7af588b52298bc8e4c0af"'

/** The tag of an answer that is a record. */
export const recordTag: Record<string, HeaderDoc> = {
  etag: { description: 'Of this record: another after every change of it', example: etag },
}

export const takesNoneMatch: Record<string, HeaderDoc> = {
  'if-none-match': {
    description: 'The ETag of what you have: 304 if it is still that',
    example: etag,
  },
}

/** Only if it is as I know it; the tag is that of the record, or of the content as /static tells it. */
export const takesMatch: Record<string, HeaderDoc> = {
  'if-match': {
    description: 'Only if the file that is there has this ETag; `*`: only if there is one',
    example: etag,
  },
}

/** What any upload can come to. */
export const uploadFailures = [
  invalidPath('a segment is . or ..'),
  pathConflict('notes'),
  insufficientStorage(),
  quotaExceeded(10_737_418_240),
  preconditionFailed(file.path),
]
