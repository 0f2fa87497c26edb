import type { Row, SqlTransaction } from '@domains-and-files/persistence'
import type { StoredBlob } from '../../blobs/staged-blob.ts'
import type { FileRow, NewFile, NewVersion, VersionRow } from '../../files/file-record.ts'
import type { Category } from '../../files/media-type.ts'
import type { Conditions } from '../../rfc9110/entity-tags.ts'
import type { Link } from '../../sharing/links.ts'
import type { TreeState } from '../list-query.ts'
import type { Actor, ChangeCause, ChangeEntry } from './change-entry.ts'

// Commands of the catalog and their results. Each command is atomic.

/** State that the commands of a group share. */
export interface Group {
  transaction: SqlTransaction
  nowMs: number
  /** Ended files to keep: all, those that the newest version shows, or none. `nothing`: marks no versions either. */
  keeps: 'all' | 'versions' | 'none' | 'nothing'
  /** Maximum bytes of current and past blobs together. */
  quota: number | undefined
  /** Digests without references left. */
  freed: string[]
  /** Digests without bytes: commands that name them are rejected. */
  missing: Set<string>
  /** Blobs that got their first reference, or lost their last one. */
  references: Map<string, { before: boolean; after: boolean }>
}

export type CatalogCommand = SmallCommand | LoneCommand

/** Commands that share a transaction. */
export type SmallCommand =
  | FileCommand
  | { kind: 'record'; version: NewVersion }
  | { kind: 'recordUsedUp'; links: Link[] }

/** Commands on files that they name. */
export type FileCommand =
  | PutCommand
  | { kind: 'remove'; actor: Actor; paths: string[]; conditions: Conditions }
  | { kind: 'moveFiles'; actor: Actor; moves: FileMove[] }

/** Commands on all files below a directory. */
export type DirectoryCommand =
  | ({ kind: 'changeBelow' } & UnfinishedChange)
  /** Records a checked change, which `continue` carries out in slices. */
  | ({ kind: 'begin' } & UnfinishedChange)
  /** The next slice of a change that was begun. */
  | { kind: 'continue'; id: number }
  /** Abandons a change that was begun. */
  | { kind: 'abandon'; id: number }

/** A change of all files below a directory, in one transaction or in slices. */
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
  /** Type under the new name, derived from `digest`; the command is rejected if the file has another digest by now. */
  type?: { digest: string; contentType: string; category: Category } | undefined
}

/** Commands on files that they do not name, or on very many. Each is a transaction of its own. */
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

/** Prunes a batch of expired past; with `need`, the oldest past, of so many bytes. */
export interface PruneCommand {
  kind: 'prune'
  need: number | undefined
}

/** Removes files with all their past, including deleted paths. */
export interface ForgetCommand {
  kind: 'forget'
  actor: Actor
  paths: string[]
}

/** Reverts a change. */
export interface RevertCommand {
  kind: 'revert'
  actor: Actor
  change: number
  /** Also reverts files that were changed since. */
  overwrite: boolean
}

/** Paths that a command changed; `all` if they are many. */
export type ChangedPaths = string[] | 'all'

/** The result of each command. */
export interface Results {
  put: { rows: FileRow[]; wasNew: boolean }
  remove: Removed
  /** The number of files. */
  moveFiles: number
  record: VersionRow
  recordUsedUp: undefined
  /** Undefined: too many files for one transaction; nothing was changed. */
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

/** The outcome of a successful command. */
export interface Done<Value = unknown> {
  value: Value
  changed?: ChangedPaths
  /** Digests that this command, or others of its group, left unreferenced. */
  freed?: string[]
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

/** Replaces a directory, in one transaction. */
export interface TreeCommand {
  kind: 'replaceTree'
  actor: Actor
  /** The root is empty. */
  directory: string
  source: TreeSource
  /** Keeps files that the source does not name. */
  isMerge: boolean
  /** Preconditions on the entity tag of the tree. */
  conditions: Pick<Conditions, 'ifMatch' | 'ifNoneMatch'>
  /** Recorded with the change. */
  version: NewVersion | undefined
  /** Nothing is changed. */
  isDryRun: boolean
  /** Maximum files of the tree before and after. */
  maxFiles: number
}

export type TreeSource =
  /** `areStored`: their blobs did not arrive with the request; rejected if no file has them any more. */
  | { files: NewFile[]; areStored: boolean }
  /** A directory, possibly the same: its current state, or the state after a change. */
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

/** Keeps blobs without a file for a day, until a manifest of the caller names them. */
export interface KeepCommand {
  kind: 'keepContents'
  contents: StoredBlob[]
  callerId: string
  /** Rejected where they and the current files exceed the quota. */
  isLimited: boolean
}
