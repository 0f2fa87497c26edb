import { HttpError } from '@domains-and-files/http'
import {
  DatabaseFullError,
  DatabaseUnavailableError,
  type Row,
  type Sql,
} from '@domains-and-files/persistence'
import type { StoredBlob } from '../blobs/staged-blob.ts'
import type { FileRow, NewFile, NewVersion, VersionRow } from '../files/file-record.ts'
import type { Conditions } from '../rfc9110/entity-tags.ts'
import type { Link } from '../sharing/links.ts'
import { GroupCommit, type Outcome } from '../sqlite/worker-commits.ts'
import { BackgroundChanges } from './background-changes.ts'
import { type ChangeEntry, causeOf, nobody } from './changes/change-entry.ts'
import type {
  CatalogCommand,
  ChangedPaths,
  DirectoryMove,
  Done,
  FileMove,
  LoneCommand,
  Removed,
  Results,
  SmallCommand,
  TreeChange,
  TreeCommand,
  UnfinishedChange,
} from './changes/commands.ts'
import type { SliceLimits } from './changes/directory-changes.ts'
import type { HistoryRules } from './changes/prune-past.ts'
import { Queries, type Totals } from './queries.ts'
import type { CatalogReads } from './reads.ts'

export interface CatalogOptions {
  /** Maximum bytes of the distinct blobs; undefined: unlimited. */
  quotaBytes?: number | undefined
  /** Maximum files per transaction of a directory change. */
  limits?: SliceLimits | undefined
  history?: HistoryRules | undefined
}

export interface CatalogStatus {
  /** Whether the database answers. */
  isAvailable: boolean
  /** Current counters, or those of the last probe; undefined if they cannot be read. */
  totals: Totals | undefined
  /** The newest version record; null where none is known. */
  newestVersion: string | null
}

/** Called with the version of the access rules; a promise where newer ones must be loaded. */
export type RulesCheck = (version: number) => Promise<void> | undefined

/**
 * Maps paths to files, and holds the version records. Changes are committed in groups; each is atomic, and durable when
 * its promise resolves. A change of more than 20,000 files is recorded first, then done in atomic slices: after a
 * crash, the next opening of the catalog completes it. All throw `insufficient_storage` when the disk of the database
 * is full. Each change of files has one entry in the list of changes, which names the actor.
 */
export abstract class Catalog extends Queries {
  /**
   * Whether only this process changes the catalog. If so, callers may cache a file until `onChange` names its path;
   * otherwise they must read it for each request.
   */
  abstract readonly isExclusive: boolean
  /** Queries over many rows, or over the past. */
  abstract readonly reads: CatalogReads
  /** For reading only: all tables of the catalog, and the events that it appends. */
  readonly database: Sql
  readonly #commits: GroupCommit<CatalogCommand, Done>
  readonly #changeListeners: ((paths: ChangedPaths) => void)[] = []
  readonly #freeListeners: ((digests: string[]) => void)[] = []
  readonly #background: BackgroundChanges

  constructor(database: Sql, { history }: CatalogOptions) {
    super(database)
    this.database = database
    this.#commits = new GroupCommit(
      this.#commit,
      (error) =>
        error instanceof DatabaseUnavailableError ||
        (error instanceof HttpError && error.status === 503),
    )
    this.#background = new BackgroundChanges({
      ...{ database, history },
      submit: (command) => this.#submitAlone(command),
    })
  }

  /** One outcome per command, in order; each command is atomic. */
  protected abstract commit(commands: CatalogCommand[]): Promise<Outcome<Done>[]>

  abstract find(path: string): Promise<FileRow | undefined>

  /** As `find`, but synchronous; absent where the database cannot do that. */
  findNow?(path: string): FileRow | undefined

  /**
   * Makes each look-up pass the version of the access rules that it read to `check`, and wait for it, before it returns
   * the file. Present only where other processes change the rules.
   */
  checkRules?(check: RulesCheck): void

  /** For health checks and metrics; synchronous. */
  abstract status(): CatalogStatus

  /** Queries without a result yet. */
  abstract readonly waitingQueries: number

  protected abstract closeDatabase(): Promise<void>

  /** Completes changes that an earlier process left, and prunes history. Not for maintenance commands. */
  startBackground(): void {
    this.#background.start(this.isExclusive)
  }

  /** Stops background work, so that it frees no more blobs; changes in slices continue after the next opening. */
  stopBackground(): Promise<void> {
    return this.#background.close()
  }

  async close(): Promise<void> {
    await this.stopBackground()
    await this.closeDatabase()
  }

  /** Calls `listener` with the changed paths after each commit of this process, before the change resolves. */
  onChange(listener: (paths: ChangedPaths) => void): void {
    this.#changeListeners.push(listener)
  }

  /** Calls `listener` after each commit of this process with the digests that lost their last reference. */
  onFree(listener: (digests: string[]) => void): void {
    this.#freeListeners.push(listener)
  }

  /** Changes that wait for their commit. */
  get waitingChanges(): number {
    return this.#commits.queued
  }

  /**
   * Stores these files atomically; each replaces the file at its path. Their blobs must already be stored.
   * @throws {HttpError} `path_conflict`, `precondition_failed` or `quota_exceeded`.
   */
  put(files: NewFile[], conditions: Conditions = {}, actor = nobody) {
    return this.#submit({ kind: 'put', actor, files, conditions })
  }

  /** @throws {HttpError} `file_not_found` or `precondition_failed`. */
  async remove(path: string, conditions: Conditions = {}, actor = nobody): Promise<void> {
    await this.#submit({ kind: 'remove', actor, paths: [path], conditions })
  }

  /** Removes these files, or none. @throws {HttpError} `file_not_found`. */
  removeAll(paths: string[], actor = nobody): Promise<Removed> {
    return this.#submit({ kind: 'remove', actor, paths, conditions: {} })
  }

  /**
   * Removes these files with all their past, atomically; also the past of deleted paths. Entries of changes keep only
   * the names. `freed`: unreferenced digests for `BlobStore.erase`.
   * @throws {HttpError} `file_not_found` where a path never had a file.
   */
  forget(paths: string[], actor = nobody): Promise<Removed & { freed: string[] }> {
    return this.#submitAlone({ kind: 'forget', actor, paths })
  }

  /** Removes every file below a directory; the root is empty. @throws {HttpError} `directory_not_found`. */
  async removeBelow(directory: string, actor = nobody): Promise<Removed> {
    const cause = causeOf(actor, 'delete', directory)
    const change = { directory, target: null, overwrite: 0, cause }
    const removed = await this.#submitAlone({ kind: 'changeBelow', ...change }).catch(ignoreFull)
    return removed ?? this.#inSlices(change)
  }

  /**
   * Moves these files, or none; returns their number, or undefined if the digest of one differs from that of its `type`.
   * @throws {HttpError} `file_not_found`, `path_conflict`, `invalid_path` or `reserved_path`.
   */
  async moveFiles(moves: FileMove[], actor = nobody) {
    return this.#submit({ kind: 'moveFiles', actor, moves }).catch((error) => {
      if (error instanceof HttpError && error.code === 'precondition_failed') return undefined
      throw error
    })
  }

  /**
   * Moves every file below a directory, or none; returns their number. The root is empty. A move in slices stops at a
   * file that was stored in its way meanwhile.
   * @throws {HttpError} `directory_not_found`, `path_conflict`, `invalid_path` or `reserved_path`.
   */
  async moveDirectory(move: DirectoryMove, actor = nobody): Promise<number> {
    const { from: directory, to: target, overwrite } = move
    const cause = causeOf(actor, 'move')
    const change = { directory, target, overwrite: Number(overwrite), cause }
    const moved = await this.#submitAlone({ kind: 'changeBelow', ...change })
    if (moved) return moved.files
    await this.reads.checkMove(move)
    return (await this.#inSlices(change)).files
  }

  /**
   * Keeps durable blobs without a file for a caller, for a day.
   * @throws {HttpError} `quota_exceeded` if they are limited and, with the current files, exceed the quota.
   */
  async keepContents(
    contents: StoredBlob[],
    { callerId, isLimited }: { callerId: string; isLimited: boolean },
  ): Promise<void> {
    await this.#submitAlone({ kind: 'keepContents', contents, callerId, isLimited })
  }

  /**
   * Replaces a directory by the source in one transaction, for any number of files.
   * @throws {HttpError} `precondition_failed`, `version_exists`, `tree_too_large`, `directory_not_found`, `path_conflict`,
   *   `invalid_path`, `reserved_path` or `quota_exceeded`.
   */
  replaceTree(command: Omit<TreeCommand, 'kind'>): Promise<TreeChange> {
    return this.#submitAlone({ kind: 'replaceTree', ...command })
  }

  /**
   * Reverts a change and nothing else; returns the new change. With `overwrite`, also reverts files that were changed
   * since.
   * @throws {HttpError} `change_not_found`, `revert_conflict`, `history_gone`, `path_conflict` or `quota_exceeded`.
   */
  revert(change: number, overwrite: boolean, actor = nobody): Promise<ChangeEntry> {
    return this.#submitAlone({ kind: 'revert', actor, change, overwrite })
  }

  /** Removes the oldest past, up to `bytes` and 1,000 files; returns the number of files, 0 if there is no past. */
  async dropPast(bytes: number): Promise<number> {
    return (await this.#submitAlone({ kind: 'prune', need: bytes })).rows
  }

  /** @throws {HttpError} `version_exists`. */
  async record(version: NewVersion): Promise<VersionRow> {
    const recorded = await this.#submit({ kind: 'record', version })
    // The new version may displace an older one, whose files can then be pruned.
    void this.#background.prune()
    return recorded
  }

  /** Records an event for each of these links, once. */
  async recordUsedUp(links: Link[]): Promise<void> {
    await this.#submit({ kind: 'recordUsedUp', links })
  }

  /**
   * Inserts rows that `readCatalog` returned unchanged, and counts them, in one transaction. Keeps existing rows, so
   * that an interrupted restore can be repeated.
   */
  async importRows(table: string, rows: Row[]): Promise<void> {
    await this.#submitAlone({ kind: 'import', table, rows })
  }

  /** For any number of files. */
  async #inSlices(change: UnfinishedChange): Promise<Removed> {
    return this.#background.carryOut(await this.#submitAlone({ kind: 'begin', ...change }))
  }

  // A command has no other result than that of its kind.
  #submit<Of extends SmallCommand>(command: Of) {
    return this.#commits.submit(command) as Promise<Results[Of['kind']]>
  }

  #submitAlone<Of extends LoneCommand>(command: Of) {
    return this.#commits.submit(command, 'large') as Promise<Results[Of['kind']]>
  }

  // Listeners run before any command of the group resolves.
  readonly #commit = async (commands: CatalogCommand[]): Promise<Outcome<Done>[]> => {
    const outcomes = await this.commit(commands)
    for (const outcome of outcomes) {
      if ('error' in outcome) continue
      const { changed, freed = [] } = outcome
      if (changed) for (const listener of this.#changeListeners) listener(changed)
      if (freed.length > 0) for (const listener of this.#freeListeners) listener(freed)
    }
    return outcomes
  }
}

// A disk without room for the whole change may have room for its slices.
function ignoreFull(error: unknown): undefined {
  if (!(error instanceof DatabaseFullError)) throw error
}
