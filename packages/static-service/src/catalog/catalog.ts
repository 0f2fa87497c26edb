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
import { GroupCommit } from '../sqlite/group-commit.ts'
import { BackgroundChanges } from './background-changes.ts'
import { type ChangeEntry, causeOf, nobody } from './changes/change-entry.ts'
import {
  type CatalogCommand,
  type ChangedPaths,
  type DirectoryMove,
  type FileMove,
  isAlone,
  type Outcome,
  type Removed,
  type Results,
  type TreeChange,
  type TreeCommand,
  type UnfinishedChange,
} from './changes/commands.ts'
import type { SliceLimits } from './changes/directory-changes.ts'
import type { HistoryRules } from './changes/prune-past.ts'
import { Queries, type Totals } from './queries.ts'
import type { CatalogReads } from './reads.ts'

export interface CatalogOptions {
  /** Maximum bytes of the distinct contents; undefined: unlimited. */
  quotaBytes?: number | undefined
  /** How many files a change of a directory has in one transaction. */
  limits?: SliceLimits | undefined
  history?: HistoryRules | undefined
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

/**
 * Which file is at which path, and the version records. Changes are committed in groups, each done whole or not at all, and
 * durable when its promise resolves. Those of more than 20,000 files are recorded, and then done in slices, each whole: after
 * a crash the rest is done when the catalog is opened again. All throw `insufficient_storage` where the disk of the database
 * is full. Each that changes files has one entry in the list of changes, which names the actor.
 */
export abstract class Catalog extends Queries {
  /**
   * Whether only this process changes the catalog. Then a file may be remembered until `onChange` names its path; else
   * it is read for each request.
   */
  abstract readonly isExclusive: boolean
  /** What is read of many rows, or of the past. */
  abstract readonly reads: CatalogReads
  /** All tables of the catalog, and the events that it appends, to be read. */
  readonly database: Sql
  readonly #commits: GroupCommit<CatalogCommand, Outcome>
  readonly #changeListeners: ((paths: ChangedPaths) => void)[] = []
  readonly #freeListeners: ((digests: string[]) => void)[] = []
  readonly #background: BackgroundChanges

  constructor(database: Sql, { history }: CatalogOptions) {
    super(database)
    this.database = database
    this.#commits = new GroupCommit(this.#commit, {
      isOutage: (error) =>
        error instanceof DatabaseUnavailableError ||
        (error instanceof HttpError && error.status === 503),
      isLarge: isAlone,
    })
    this.#background = new BackgroundChanges({
      ...{ database, history },
      submit: (command) => this.#submit(command),
    })
  }

  /** One outcome per command, in order, each command done whole or not at all. */
  protected abstract commit(commands: CatalogCommand[]): Promise<Outcome[]>

  abstract find(path: string): Promise<FileRow | undefined>

  /** As `find`; only where a look-up needs no waiting. */
  findNow?(path: string): FileRow | undefined

  /**
   * From now on a file is found after `check` of the version of the access rules that its look-up read; only where other
   * processes change them.
   */
  checkRules?(check: RulesCheck): void

  /** For health checks and metrics; waits for nothing. */
  abstract status(): CatalogStatus

  /** Queries that wait for an answer. */
  abstract readonly waitingQueries: number

  protected abstract closeDatabase(): Promise<void>

  /** Carries out what an earlier process left, and ends the past in time. Not in commands. */
  startBackground(): void {
    this.#background.start(this.isExclusive)
  }

  /** Ends what runs in the background, so that it frees no more contents; changes in slices go on after the next opening. */
  stopBackground(): Promise<void> {
    return this.#background.close()
  }

  async close(): Promise<void> {
    await this.stopBackground()
    await this.closeDatabase()
  }

  /** Called after each commit of this process with the changed paths, before the change is answered. */
  onChange(listener: (paths: ChangedPaths) => void): void {
    this.#changeListeners.push(listener)
  }

  /** Called after each commit of this process with the digests that nothing refers to any more. */
  onFree(listener: (digests: string[]) => void): void {
    this.#freeListeners.push(listener)
  }

  /** Changes that wait for their commit. */
  get waitingChanges(): number {
    return this.#commits.queued
  }

  /**
   * Stores these files, all or none, each in place of what was at its path. Their contents must be stored already.
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
   * Removes these files with all their past, or none; also what was at a path before it was deleted. Entries of changes keep
   * the names alone. `freed`: what nothing needs any more, for `BlobStore.erase`.
   * @throws {HttpError} `file_not_found` where a path never had a file.
   */
  forget(paths: string[], actor = nobody): Promise<Removed & { freed: string[] }> {
    return this.#submit({ kind: 'forget', actor, paths })
  }

  /** Removes every file below a directory; the root is empty. @throws {HttpError} `directory_not_found`. */
  async removeBelow(directory: string, actor = nobody): Promise<Removed> {
    const cause = causeOf(actor, 'delete', directory)
    const change = { directory, target: null, overwrite: 0, cause }
    const removed = await this.#submit({ kind: 'changeBelow', ...change }).catch(ignoreFull)
    return removed ?? this.#inSlices(change)
  }

  /**
   * Moves these files, or none; returns their number, or undefined when one has another content than that of its `type`.
   * @throws {HttpError} `file_not_found`, `path_conflict`, `invalid_path` or `reserved_path`.
   */
  async moveFiles(moves: FileMove[], actor = nobody) {
    return this.#submit({ kind: 'moveFiles', actor, moves }).catch((error) => {
      if (error instanceof HttpError && error.code === 'precondition_failed') return undefined
      throw error
    })
  }

  /**
   * Moves every file below a directory, or none; returns their number. The root is empty. One in slices ends where a file has
   * been stored in its way meanwhile.
   * @throws {HttpError} `directory_not_found`, `path_conflict`, `invalid_path` or `reserved_path`.
   */
  async moveDirectory(move: DirectoryMove, actor = nobody): Promise<number> {
    const { from: directory, to: target, overwrite } = move
    const cause = causeOf(actor, 'move')
    const change = { directory, target, overwrite: Number(overwrite), cause }
    const moved = await this.#submit({ kind: 'changeBelow', ...change })
    if (moved) return moved.files
    await this.reads.checkMove(move)
    return (await this.#inSlices(change)).files
  }

  /**
   * Keeps durable contents for a day without a file, for a caller.
   * @throws {HttpError} `quota_exceeded` where they are limited and exceed the quota with the current files.
   */
  async keepContents(
    contents: StoredBlob[],
    { callerId, isLimited }: { callerId: string; isLimited: boolean },
  ): Promise<void> {
    await this.#submit({ kind: 'keepContents', contents, callerId, isLimited })
  }

  /**
   * Makes a directory what the source is, whatever the number of its files.
   * @throws {HttpError} `precondition_failed`, `version_exists`, `tree_too_large`, `directory_not_found`, `path_conflict`,
   *   `invalid_path`, `reserved_path` or `quota_exceeded`.
   */
  replaceTree(command: Omit<TreeCommand, 'kind'>): Promise<TreeChange> {
    return this.#submit({ kind: 'replaceTree', ...command })
  }

  /**
   * Takes back what a change did and nothing else; returns the change that does so. With `overwrite` also files that were
   * changed since.
   * @throws {HttpError} `change_not_found`, `revert_conflict`, `history_gone`, `path_conflict` or `quota_exceeded`.
   */
  revert(change: number, overwrite: boolean, actor = nobody): Promise<ChangeEntry> {
    return this.#submit({ kind: 'revert', actor, change, overwrite })
  }

  /** Removes the oldest past, up to so many bytes and 1,000 files; returns how many: 0: there is none. */
  async dropPast(bytes: number): Promise<number> {
    return (await this.#submit({ kind: 'prune', need: bytes })).rows
  }

  /** @throws {HttpError} `version_exists`. */
  async record(version: NewVersion): Promise<VersionRow> {
    const recorded = await this.#submit({ kind: 'record', version })
    // An older version may not keep its files any more.
    void this.#background.prune()
    return recorded
  }

  /** Records an event for each of these links, once. */
  async recordUsedUp(links: Link[]): Promise<void> {
    await this.#submit({ kind: 'recordUsedUp', links })
  }

  /**
   * Adds rows that `readCatalog` has read as they are, and counts them, in one transaction. Leaves those that exist, so that an
   * interrupted restore can be repeated.
   */
  async importRows(table: string, rows: Row[]): Promise<void> {
    await this.#submit({ kind: 'import', table, rows })
  }

  /** Whatever the number of its files. */
  async #inSlices(change: UnfinishedChange): Promise<Removed> {
    return this.#background.carryOut(await this.#submit({ kind: 'begin', ...change }))
  }

  async #submit<Of extends CatalogCommand>(command: Of): Promise<Results[Of['kind']]> {
    const outcome = await this.#commits.submit(command)
    if ('error' in outcome) throw outcome.error
    return outcome.value as Results[Of['kind']] // A command of this kind has no other.
  }

  // Listeners run before any caller of the group is answered.
  readonly #commit = async (commands: CatalogCommand[]): Promise<Outcome[]> => {
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

// Where the disk has no room for a whole change, it may have some for slices of it.
function ignoreFull(error: unknown): undefined {
  if (!(error instanceof DatabaseFullError)) throw error
}
