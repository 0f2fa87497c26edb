import type { Category } from './media-type.ts'

export interface NewFile {
  path: string
  digest: string
  size: number
  contentType: string
  category: Category
  uploadedBy: string
}

export interface FileRow extends NewFile {
  createdAt: string
  updatedAt: string
}

export interface NewVersion {
  version: string
  changelog: string
  createdBy: string
  requestId?: string
}

export interface VersionRow extends NewVersion {
  id: number
  createdAt: string
  /** Files are as this change left them. */
  changeId: number
  /** 1; 0 once some of them have been pruned. */
  filesKept: number
}

export interface CategoryCount {
  category: Category
  fileCount: number
  totalSize: number
}

/** A version in a list: its changelog is truncated to 1 KiB. */
export interface ListedVersion extends VersionRow {
  isTruncated: boolean
}
