import type { Row } from '@domains-and-files/persistence'
import type { StoredBlob } from '../../blobs/staged-blob.ts'
import type { FileRow, NewFile, NewVersion, VersionRow } from '../../files/file-record.ts'
import type { Category } from '../../files/media-type.ts'
import type { Conditions } from '../../rfc9110/entity-tags.ts'
import type { Link } from '../../sharing/links.ts'
import type { TreeState } from '../list-query.ts'
import type { Actor, ChangeCause, ChangeEntry } from './change-entry.ts'

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
  | ({ kind: 'changeBelow' } & UnfinishedChange)
  /** Records a change that `continue` carries out in slices; it has been checked. */
  | ({ kind: 'begin' } & UnfinishedChange)
  /** The next slice of a change that was begun. */
  | { kind: 'continue'; id: number }
  /** Gives a change up that was begun. */
  | { kind: 'abandon'; id: number }

/** A change of all files below a directory: as a whole, or in slices. */
export interface UnfinishedChange {
  directory: string
  /** Null: a deletion. */
  target: string | null
  /** 0 or 1. */
  overwrite: number
  cause: ChangeCause
}

export interface PutCommand {
  kind: 'put'
  actor: Actor
  files: NewFile[]
  conditions: Conditions
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
}

/** Whether a command is a transaction of its own. */
export const isAlone = (command: CatalogCommand): command is LoneCommand =>
  !['put', 'remove', 'moveFiles', 'record', 'recordUsedUp'].includes(command.kind)

/** Paths that a command changed; `all` where they are many. */
export type ChangedPaths = string[] | 'all'

/** What each command answers. */
export interface Results {
  put: { rows: FileRow[]; wasNew: boolean }
  remove: Removed
  /** The number of files. */
  moveFiles: number
  record: VersionRow
  recordUsedUp: undefined
  /** Undefined: the files are too many for one transaction; nothing is changed. */
  changeBelow: Removed | undefined
  /** The number of the change. */
  begin: number
  continue: Removed & { isLast: boolean }
  abandon: undefined
  replaceTree: TreeChange
  keepContents: undefined
  revert: ChangeEntry
  prune: { rows: number; isLast: boolean }
  forget: Removed & { freed: string[] }
  import: undefined
}

export type Command<Of extends keyof Results> = Extract<CatalogCommand, { kind: Of }>

/** What a command has done. */
export interface Done<Value = unknown> {
  value: Value
  changed?: ChangedPaths
  /** Digests that nothing refers to any more, by this command or others of its group. */
  freed?: string[]
}

/** An `HttpError` for a command that is refused, else why it failed. */
export type Outcome = Done | { error: unknown }

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
  /** Rejected where they and the current files exceed the quota. */
  isLimited: boolean
}
