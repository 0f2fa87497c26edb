import type { FileRow, NewFile, NewVersion, VersionRow } from '../files/file-record.ts'
import type { Category } from '../files/media-type.ts'
import type { Conditions } from '../rfc9110/entity-tags.ts'

// What the write worker is asked to change, and what it answers. Each command is done whole or not at all.

export type CatalogCommand =
  | PutCommand
  | { kind: 'remove'; path: string; conditions: Conditions }
  | { kind: 'removeAll'; paths: string[] }
  | { kind: 'removeBelow'; directory: string }
  | MoveFileCommand
  | { kind: 'moveDirectory'; from: string; to: string; overwrite: boolean }
  | { kind: 'record'; version: NewVersion }

export interface PutCommand {
  kind: 'put'
  files: NewFile[]
  conditions: Conditions
  quota: number | undefined
}

export interface MoveFileCommand {
  kind: 'moveFile'
  from: string
  to: string
  overwrite: boolean
  /** The content that the type was derived from; the command is rejected when the file has another by now. */
  digest: string
  contentType: string
  category: Category
}

/** Paths that a command changed; `all` where they are many. */
export type ChangedPaths = string[] | 'all'

export type Outcome =
  | { done: 'put'; rows: FileRow[]; wasNew: boolean; freed: string[]; changed: ChangedPaths }
  | { done: 'remove'; files: number; bytesFreed: number; freed: string[]; changed: ChangedPaths }
  | { done: 'move'; files: number; freed: string[]; changed: ChangedPaths }
  | { done: 'record'; version: VersionRow }
  | { refused: Rejection; path: string }
  | { failed: string; code: string }

export type Rejection =
  | 'path_conflict'
  | 'target_exists'
  | 'move_into_itself'
  | 'invalid_target'
  | 'content_changed'
  | 'content_missing'
  | 'precondition_failed'
  | 'quota_exceeded'
  | 'file_not_found'
  | 'directory_not_found'
  | 'version_exists'

/** Rolls a command back. */
export class Rejected extends Error {
  readonly reason: Rejection
  readonly path: string

  constructor(reason: Rejection, path: string) {
    super(reason)
    this.reason = reason
    this.path = path
  }
}
