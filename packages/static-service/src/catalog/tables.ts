import type { Category } from '../files/media-type.ts'
import { columns, type RowOf, selected } from './records.ts'

// The tables of the catalog by the members of their rows, as statements read and write them: see `migrations.ts`.

/** A file as a change made it, in `files` and `past_files`. */
export const fileColumns = columns({
  path: 'text',
  digest: 'text',
  size: 'bigint',
  contentType: 'text',
  category: 'text',
  uploadedBy: 'text',
  createdAt: 'text',
  updatedAt: 'text',
})

export interface FileRow extends RowOf<typeof fileColumns> {
  category: Category
}

export type NewFile = Omit<FileRow, 'createdAt' | 'updatedAt'>

/** The columns of a `FileRow`. */
export const fileRow = selected(fileColumns)

/** A stored file with its number, and the change that made its row. */
export const storedColumns = columns({ ...fileColumns, id: 'bigint', changeId: 'bigint' })

export type StoredFile = FileRow & RowOf<typeof storedColumns>

/** A row of `past_files`. */
export const pastColumns = columns({
  ...fileColumns,
  changeId: 'bigint',
  endedBy: 'bigint',
  endedAt: 'text',
})

export const directoryColumns = columns({
  path: 'text',
  children: 'bigint',
  files: 'file_count bigint',
  bytes: 'total_size bigint',
})

export type DirectoryCounts = RowOf<typeof directoryColumns>

/** Counts of current and past files per blob. */
export const blobColumns = columns({
  digest: 'text',
  size: 'bigint',
  refs: 'bigint',
  past: 'bigint',
})

export type BlobReferences = RowOf<typeof blobColumns>

/** Files by category. */
export const categoryColumns = columns({
  category: 'text',
  files: 'file_count bigint',
  bytes: 'total_size bigint',
})

/** A version record. Its files are as its change left them; `filesKept` is 1, or 0 once some of them have been pruned. */
export const versionColumns = columns({
  id: 'bigint',
  version: 'text',
  changelog: 'text',
  createdBy: 'text',
  createdAt: 'text',
  changeId: 'bigint',
  filesKept: 'bigint',
})

export type VersionRow = RowOf<typeof versionColumns>

/** A `ChangeEntry`; its paths are JSON. */
export const entryColumns = columns({
  id: 'bigint',
  at: 'text',
  by: 'changed_by text',
  token: 'text',
  requestId: 'text',
  action: 'text',
  prefix: 'text',
  version: 'text',
  added: 'bigint',
  replaced: 'bigint',
  removed: 'bigint',
  bytes: 'bigint',
  paths: 'text',
})

/** A file before and after a change; the states are JSON. */
export const changedColumns = columns({
  changeId: 'bigint',
  path: 'text',
  beforeChange: 'bigint',
  before: 'text',
  after: 'text',
})

/** A file as a change found or left it. */
export type RecordedState = Omit<RowOf<typeof fileColumns>, 'path' | 'uploadedBy' | 'createdAt'>

/** The request that changes files. */
export interface Actor {
  /** Username. */
  by: string
  /** Name of its API token; null: a session. */
  token: string | null
  requestId: string
}

/** The actor of changes without a request. */
export const nobody: Actor = { by: '', token: null, requestId: '' }

export const changeActions = ['upload', 'delete', 'move', 'deploy', 'restore', 'revert'] as const

export type ChangeAction = (typeof changeActions)[number]

/** Why a change was made. */
export interface ChangeCause extends Actor {
  action: ChangeAction
  /** The directory that the request named, with a trailing slash; `/` is the root. */
  prefix?: string | null
  /** The version that was recorded with it. */
  version?: string | null
}

/** A change of the catalog: what one request did to files, in one transaction or in slices. */
export interface ChangeEntry extends Required<ChangeCause> {
  /** Increases with each change; may have gaps. */
  id: number
  /** ISO 8601; never earlier than the previous change. */
  at: string
  added: number
  replaced: number
  removed: number
  /** Bytes of the stored files; if it stored none, of the removed ones. */
  bytes: number
  /** The first ten paths. */
  paths: string[]
  /** Whether any of its files has been forgotten since. */
  isForgotten: boolean
}
