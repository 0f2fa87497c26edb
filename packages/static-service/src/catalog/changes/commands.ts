import type { Row } from '@domains-and-files/persistence'
import type { StoredBlob } from '../../blobs/staged-blob.ts'
import type { FileRow, NewFile, NewVersion, VersionRow } from '../../files/file-record.ts'
import type { Category } from '../../files/media-type.ts'
import type { Conditions } from '../../rfc9110/entity-tags.ts'
import type { Link } from '../../sharing/links.ts'
import type { TreeState } from '../list-query.ts'
import type { Actor, ChangeEntry } from './change-entry.ts'

// What the catalog is asked to change, and what it answers. Each command is done whole or not at all.

export type CatalogCommand =
  | FileCommand
  | LoneCommand
  | { kind: 'record'; version: NewVersion }
  | { kind: 'recordUsedUp'; links: Link[] }

/** Commands on files that they name. */
export type FileCommand =
  | PutCommand
  | { kind: 'remove'; actor: Actor; paths: string[]; conditions: Conditions }
  | { kind: 'moveFiles'; actor: Actor; moves: FileMove[] }

/** Commands on all files below a directory. Each is a transaction of its own. */
export type DirectoryCommand =
  | ({ kind: 'removeBelow' } & Sliced & { directory: string })
  | ({ kind: 'moveDirectory' } & Sliced & DirectoryMove)
  /** The next slice of a change that was begun. */
  | { kind: 'continue'; id: number }
  /** Gives a change up that was begun. */
  | { kind: 'abandon'; id: number }

interface Sliced {
  actor: Actor
  /** True: the change is recorded, and carried out by `continue`; it has been checked. */
  inSlices?: boolean
}

export interface PutCommand {
  kind: 'put'
  actor: Actor
  files: NewFile[]
  conditions: Conditions
  quota: number | undefined
}

export interface FileMove {
  from: string
  to: string
  overwrite: boolean
  /** Of another name; the command is rejected when the file has another content by now than the type was derived from. */
  type?: { digest: string; contentType: string; category: Category } | undefined
}

/** Commands on files that they do not name, or on very many. */
export type LoneCommand =
  | DirectoryCommand
  | TreeCommand
  | KeepCommand
  | RevertCommand
  | PruneCommand
  | ForgetCommand
  | ImportCommand

/** Adds rows of a backup. */
export interface ImportCommand {
  kind: 'import'
  table: string
  rows: Row[]
}

/** Removes a batch of the past that need not be kept any more; with `need` of the oldest, of so many bytes. */
export interface PruneCommand {
  kind: 'prune'
  need: number | undefined
}

/** Removes files with all their past, also of paths that were deleted before. */
export interface ForgetCommand {
  kind: 'forget'
  actor: Actor
  paths: string[]
}

/** Takes a change back. */
export interface RevertCommand {
  kind: 'revert'
  actor: Actor
  change: number
  /** Also where files were changed since. */
  overwrite: boolean
  quota: number | undefined
}

/** Whether a command is a transaction of its own. */
export const isAlone = (command: CatalogCommand): command is LoneCommand =>
  !['put', 'remove', 'moveFiles', 'record', 'recordUsedUp'].includes(command.kind)

/** Paths that a command changed; `all` where they are many. */
export type ChangedPaths = string[] | 'all'

interface Changed {
  changed: ChangedPaths
  /** Digests that nothing refers to any more. */
  freed: string[]
}

export type Outcome =
  | ({ done: 'put'; rows: FileRow[]; wasNew: boolean } & Changed)
  | ({ done: 'remove' } & Removed & Changed)
  | ({ done: 'move'; files: number } & Changed)
  | ({ done: 'tree'; tree: TreeChange } & Changed)
  /** A slice of a change that was begun. */
  | ({ done: 'slice'; isLast: boolean } & Removed & Changed)
  /** The change is recorded: it continues in slices. */
  | { done: 'begun'; id: number }
  | ({ done: 'revert'; change: ChangeEntry } & Changed)
  | ({ done: 'prune'; rows: number; bytes: number; isLast: boolean } & Changed)
  | { done: 'record'; version: VersionRow }
  /** Contents are kept. */
  | ({ done: 'keep' } & Changed)
  /** Rows of a restore or events are there, or a change is given up. */
  | { done: 'other' }
  /** `paths`: where there are several. */
  | { refused: Rejection; path: string; paths?: string[] }
  /** `error` where it did not cross threads. */
  | { failed: string; code: string; error?: unknown }

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
  | 'tree_changed'
  | 'tree_too_large'
  | 'change_not_found'
  | 'revert_conflict'
  | 'history_gone'
  /** The files are too many for one transaction. */
  | 'too_many_files'

/** Rolls a command back. */
export class Rejected extends Error {
  readonly reason: Rejection
  readonly paths: string[]

  constructor(reason: Rejection, paths: string | string[]) {
    super(reason)
    this.reason = reason
    this.paths = [paths].flat()
  }
}

/** @throws all other errors. */
export function refusalOf(error: unknown): Outcome {
  if (error instanceof Rejected)
    return { refused: error.reason, path: error.paths[0] ?? '', paths: error.paths }
  throw error
}

export interface Removed {
  files: number
  bytesFreed: number
}

export interface DirectoryMove {
  from: string
  to: string
  overwrite: boolean
}

/** What a directory becomes, in one transaction. */
export interface TreeCommand {
  kind: 'replaceTree'
  actor: Actor
  /** The root is empty. */
  directory: string
  source: TreeSource
  /** Whether files that the source does not name stay. */
  isMerge: boolean
  /** On the entity tag of the tree. */
  conditions: Pick<Conditions, 'ifMatch' | 'ifNoneMatch'>
  /** Recorded with the change. */
  version: NewVersion | undefined
  /** Nothing is changed. */
  isDryRun: boolean
  /** Of the tree before and after. */
  maxFiles: number
  quota: number | undefined
}

export type TreeSource =
  /** `areStored`: their contents did not arrive with the request, and are refused where a file no longer has them. */
  | { files: NewFile[]; areStored: boolean }
  /** Another directory, or the same, as it is in the transaction, or as a change left it. */
  | { from: string; change?: number | undefined }

export interface TreeChange extends TreeState {
  /** Null: nothing was changed. */
  change: ChangeEntry | null
  added: number
  replaced: number
  removed: number
  unchanged: number
  /** The files that were stored. */
  rows: FileRow[]
}

/** Keeps contents without a file for a day: a manifest of the caller is going to name them. */
export interface KeepCommand {
  kind: 'keepContents'
  contents: StoredBlob[]
  callerId: string
  /** Days that the past is kept. */
  keepDays: number
  /** Rejected where they and the current files exceed the quota. */
  isLimited: boolean
}
