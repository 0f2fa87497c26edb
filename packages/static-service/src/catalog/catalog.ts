import type { Row, Sql, Table } from '@domains-and-files/persistence'
import type { StoredBlob } from '../blobs/staged-blob.ts'
import type {
  CategoryCount,
  FileRow,
  ListedVersion,
  NewFile,
  NewVersion,
  VersionRow,
} from '../files/file-record.ts'
import type { Conditions } from '../rfc9110/entity-tags.ts'
import type { Link } from '../sharing/links.ts'
import type { Actor, ChangeEntry } from './changes/change-entry.ts'
import type {
  ChangedPaths,
  DirectoryMove,
  MoveFileCommand,
  TreeChange,
  TreeCommand,
} from './changes/commands.ts'
import type { Miscount } from './find-miscounts.ts'
import type { HistoryReads } from './history/past-files.ts'
import type { FileList, ListQuery, TreeQuery } from './list-query.ts'
import type { OpenedTree, TreeFile, TreePageQuery, TreeQueryAt } from './listing/tree-files.ts'

/** Which file is at which path, and the version records. A change is durable when its promise resolves. */
export interface Catalog extends CatalogChanges, CatalogReads, CatalogArchive {
  /** Holds the events that it appends, to be read. */
  readonly outbox: Sql
  /** Ends what runs in the background, so that it frees no more contents; changes in slices go on after the next opening. */
  stopBackground(): Promise<void>
  close(): Promise<void>
}

/**
 * Changes, each done whole or not at all. Those of more than 20,000 files are recorded, and then done in slices, each whole:
 * after a crash the rest is done when the catalog is opened again. All throw `insufficient_storage` where the disk of the
 * database is full. Each that changes files has one entry in the list of changes, which names the actor.
 */
export interface CatalogChanges {
  /**
   * Stores these files, all or none, each in place of what was at its path. Their contents must be stored already.
   * @throws {HttpError} `path_conflict`, `precondition_failed` or `quota_exceeded`.
   */
  put(
    files: NewFile[],
    conditions?: Conditions,
    actor?: Actor,
  ): Promise<{ rows: FileRow[]; wasNew: boolean }>

  /** @throws {HttpError} `file_not_found` or `precondition_failed`. */
  remove(path: string, conditions?: Conditions, actor?: Actor): Promise<void>

  /**
   * Removes these files, or none.
   * @throws {HttpError} `file_not_found`.
   */
  removeAll(paths: string[], actor?: Actor): Promise<Removed>

  /**
   * Removes these files with all their past, or none; also what was at a path before it was deleted. Entries of changes keep
   * the names alone. `freed`: what nothing needs any more, for `BlobStore.erase`.
   * @throws {HttpError} `file_not_found` where a path never had a file.
   */
  forget(paths: string[], actor?: Actor): Promise<Removed & { freed: string[] }>

  /**
   * Removes every file below a directory; the root is empty.
   * @throws {HttpError} `directory_not_found`.
   */
  removeBelow(directory: string, actor?: Actor): Promise<Removed>

  /**
   * Moves one file; returns the number of files moved, or undefined when the file has another content than `digest`.
   * @throws {HttpError} `file_not_found` or `path_conflict`.
   */
  moveFile(move: FileMove, actor?: Actor): Promise<number | undefined>

  /**
   * Moves every file below a directory, or none; returns their number. The root is empty. One in slices ends where a file has
   * been stored in its way meanwhile.
   * @throws {HttpError} `directory_not_found`, `path_conflict`, `invalid_path` or `reserved_path`.
   */
  moveDirectory(move: DirectoryMove, actor?: Actor): Promise<number>

  /**
   * Keeps durable contents for a day without a file, for a caller.
   * @throws {HttpError} `quota_exceeded` where they are limited and exceed the quota with the current files.
   */
  keepContents(
    contents: StoredBlob[],
    options: { callerId: string; isLimited: boolean },
  ): Promise<void>

  /**
   * Makes a directory what the source is, whatever the number of its files.
   * @throws {HttpError} `precondition_failed`, `version_exists`, `tree_too_large`, `directory_not_found`, `path_conflict`,
   *   `invalid_path`, `reserved_path` or `quota_exceeded`.
   */
  replaceTree(command: TreeReplacement): Promise<TreeChange>

  /**
   * Takes back what a change did and nothing else; returns the change that does so. With `overwrite` also files that were
   * changed since.
   * @throws {HttpError} `change_not_found`, `revert_conflict`, `history_gone`, `path_conflict` or `quota_exceeded`.
   */
  revert(change: number, overwrite: boolean, actor?: Actor): Promise<ChangeEntry>

  /** Removes the oldest past, up to so many bytes and 1,000 files; returns how many: 0: there is none. */
  dropPast(bytes: number): Promise<number>

  /** @throws {HttpError} `version_exists`. */
  record(version: NewVersion): Promise<VersionRow>

  /** Records an event for each of these links, once. */
  recordUsedUp(links: Link[]): Promise<void>

  /** Called after each commit of this process with the changed paths, before the change is answered. */
  onChange(listener: (paths: ChangedPaths) => void): void

  /** Called after each commit of this process with the digests that nothing refers to any more. */
  onFree(listener: (digests: string[]) => void): void
}

export type FileMove = Omit<MoveFileCommand, 'kind' | 'actor'>

export type TreeReplacement = Omit<TreeCommand, 'kind' | 'quota'>

export interface CatalogReads {
  /**
   * Whether only this process changes the catalog. Then a file may be remembered until `onChange` names its path; else
   * it is read for each request.
   */
  readonly isExclusive: boolean

  find(path: string): Promise<FileRow | undefined>

  /**
   * From now on a file is found after `check` of the version of the access rules that its look-up read; only where other
   * processes change them.
   */
  checkRules(check: RulesCheck): void

  /** As `find`; only where a look-up needs no waiting. */
  findNow?(path: string): FileRow | undefined

  /**
   * Checks whether `put` of one file would be refused now, before its content has arrived.
   * @throws {HttpError} `path_conflict` or `precondition_failed`.
   */
  checkPut(path: string, conditions: Conditions): Promise<void>

  /**
   * Checks whether `put` of a content of a size in this range would certainly exceed the quota now.
   * @throws {HttpError} `quota_exceeded`.
   */
  checkQuota(path: string, size: SizeRange): Promise<void>

  list(query: ListQuery): Promise<FileList>

  /** The tree as JSON; undefined when there is no such directory. */
  tree(query: TreeQuery): Promise<Uint8Array | undefined>

  /** What is stored below a directory; the root is empty. */
  usage(directory: string): Promise<Usage>

  /**
   * All files below a directory, as a change left them, or as they are now; the root is empty. Undefined: there is no such
   * change yet.
   */
  openTree(query: TreeQueryAt): Promise<OpenedTree | undefined>

  readTreePage(query: TreePageQuery): Promise<TreeFile[]>

  totals(): Promise<Totals>

  newestVersion(): Promise<VersionRow | undefined>

  findVersion(version: string): Promise<VersionRow | undefined>

  /** Newest first, changelogs cut to 1 KiB. */
  listVersions(page: number, pageSize: number): Promise<ListedVersion[]>

  /** What requests did to files, and files as they were. */
  readonly history: HistoryReads

  isReferenced(digest: string): Promise<boolean>

  /** The first two hex digits of the digests of all contents. */
  contentPrefixes(): Promise<string[]>

  /** All contents that files refer to whose digest begins with these hex digits. */
  contents(prefix: string): Promise<{ digest: string; size: number }[]>

  /** The sizes of those of these contents that are stored and that the reader may know of, by digest. */
  contentSizes(digests: string[], reader: ContentReader): Promise<Map<string, number>>

  /** For health checks and metrics; waits for nothing. */
  status(): CatalogStatus

  /** Changes that wait for their commit, and queries that wait for an answer. */
  readonly waiting: { changes: number; questions: number }
}

export interface CatalogStatus {
  /** Whether the database answers. */
  isAvailable: boolean
  /** Counters as they are now, or as the last probe found them; undefined where they cannot be read. */
  totals: Totals | undefined
  /** The newest version record; null where none is known. */
  newestVersion: string | null
}

/** Called with the version of the access rules; a promise where newer ones must be loaded. */
export type RulesCheck = (version: number) => Promise<void> | undefined

/** What backup, restore and check need besides `CatalogReads`. */
export interface CatalogArchive {
  /** Reads all rows as of one moment. Services may go on changing the catalog. */
  snapshot<T>(work: (tables: Table[]) => Promise<T>): Promise<T>

  /**
   * Adds rows of a table of a snapshot as they are, and counts them, in one transaction. Leaves those that exist, so that an
   * interrupted restore can be repeated.
   */
  importRows(table: string, rows: Row[]): Promise<void>

  /** What of the catalog does not agree with itself: rows, references and every count that is kept. */
  findMiscounts(): Promise<Miscount[]>

  /** The files with this content, now or in the past, by path. */
  pathsOf(digest: string): Promise<string[]>
}

export interface Totals {
  totalFiles: number
  totalSize: number
  /** Bytes of the distinct contents of files. */
  storedSize: number
  /** Bytes of the distinct contents that are kept only for the history. */
  pastSize: number
  versions: number
}

export interface Usage extends Totals {
  /** Those with files, largest count first. */
  categories: CategoryCount[]
}

/** Who names contents: limited to folders, those that a file there has or had, and those that are kept for it. */
export interface ContentReader {
  /** As `Caller.id`. */
  id: string
  /** Each ends in a slash; undefined: all. */
  folders?: readonly string[] | undefined
}

export interface SizeRange {
  minBytes: number
  maxBytes: number
}

export interface Removed {
  files: number
  bytesFreed: number
}
