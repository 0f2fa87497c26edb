import type { Category } from '../files/media-type.ts'
import type { RowOf } from './records.ts'
import type { fileColumns, versionColumns } from './tables.ts'

export interface FileRow extends RowOf<typeof fileColumns> {
  category: Category
}

export type NewFile = Omit<FileRow, 'createdAt' | 'updatedAt'>

export interface NewVersion {
  version: string
  changelog: string
  createdBy: string
  requestId?: string
}

export type VersionRow = RowOf<typeof versionColumns>

export interface CategoryCount {
  category: Category
  fileCount: number
  totalSize: number
}

/** A version in a list: its changelog is truncated to 1 KiB. */
export interface ListedVersion extends VersionRow {
  isTruncated: boolean
}
