import {
  directoryNotFound,
  fileNotFound,
  invalidPath,
  moveIntoItself,
  pathConflict,
  preconditionFailed,
  quotaExceeded,
  reservedPath,
  targetExists,
  versionExists,
} from '../errors.ts'
import type {
  CategoryCount,
  FileRow,
  NewFile,
  NewVersion,
  VersionRow,
} from '../files/file-record.ts'
import { findPathFault } from '../files/path-rules.ts'
import { type Conditions, holds } from '../rfc9110/entity-tags.ts'
import { GroupCommit } from '../sqlite/group-commit.ts'
import { storageFailure } from '../sqlite/storage-failure.ts'
import { WorkerRpc } from '../sqlite/worker-rpc.ts'
import type {
  CatalogCommand,
  ChangedPaths,
  MoveFileCommand,
  Outcome,
  Rejection,
} from './commands.ts'
import { type Database, databaseFile, openReader } from './database.ts'
import type { TreeQuery } from './directory-tree.ts'
import { type ListedVersion, Queries, type Totals } from './queries.ts'
import type { FileList, ListQuery } from './search/list-query.ts'
import type { ReadWorkerMethods } from './workers/read-worker.ts'
import type { WriteWorkerMethods } from './workers/write-worker.ts'

export interface CatalogOptions {
  /** Bytes that the distinct contents may have together; absent: no bound. */
  quotaBytes?: number | undefined
}

interface Parts {
  writer: WorkerRpc<WriteWorkerMethods>
  reader: WorkerRpc<ReadWorkerMethods>
  quota: number | undefined
}

/**
 * What is stored under which path. What was answered is durable. Lookups are made here; whatever could take long is
 * done in threads, so that no question about a million files holds up the others.
 */
export class Catalog {
  readonly #quota: number | undefined
  readonly #db: Database
  readonly #queries: Queries
  readonly #writer: WorkerRpc<WriteWorkerMethods>
  readonly #reader: WorkerRpc<ReadWorkerMethods>
  readonly #commits: GroupCommit<CatalogCommand, Outcome>
  readonly #changeListeners: ((paths: ChangedPaths) => void)[] = []
  readonly #freeListeners: ((digests: string[]) => void)[] = []

  /** The data folder must be there. */
  static async open(dataDir: string, options: CatalogOptions = {}): Promise<Catalog> {
    const file = databaseFile(dataDir)
    const writer = new WorkerRpc<WriteWorkerMethods>(
      new URL('./workers/write-worker.ts', import.meta.url),
      file,
    )
    const reader = new WorkerRpc<ReadWorkerMethods>(
      new URL('./workers/read-worker.ts', import.meta.url),
      file,
    )
    await writer.ask('ready', null)
    return new Catalog(openReader(file), { writer, reader, quota: options.quotaBytes })
  }

  private constructor(db: Database, { writer, reader, quota }: Parts) {
    this.#db = db
    this.#queries = new Queries(db)
    this.#writer = writer
    this.#reader = reader
    this.#commits = new GroupCommit((commands) => this.#commit(commands))
    this.#quota = quota
  }

  async find(path: string): Promise<FileRow | undefined> {
    return this.#queries.find(path)
  }

  /**
   * Checks whether `put` of one file would be refused now, before its content has arrived.
   * @throws {HttpError} `path_conflict` or `precondition_failed`.
   */
  checkPut(path: string, conditions: Conditions): void {
    const row = this.#queries.find(path)
    if (!row && this.#queries.conflictsWith(path)) throw pathConflict(path)
    if (!holds(conditions, row)) throw preconditionFailed(path)
  }

  /**
   * Checks whether `put` of a content of a size in this range would certainly exceed the quota now.
   * @throws {HttpError} `quota_exceeded`.
   */
  checkQuota(path: string, size: { minBytes: number; maxBytes: number }): void {
    const quota = this.#quota
    if (quota === undefined) return
    const { storedSize } = this.#queries.totals()
    if (storedSize + size.minBytes <= quota) return
    // It may equal a stored content, which takes no more room, or replace one.
    if (this.#queries.hasFileOfSize(size)) return
    if (storedSize - this.#queries.freedBy(path) + size.minBytes > quota) throw quotaExceeded(quota)
  }

  /**
   * Stores these files, all or none, each in place of what was at its path. Their contents must be stored already.
   * @throws {HttpError} `path_conflict`, `precondition_failed`, `quota_exceeded` or `insufficient_storage`.
   */
  async put(
    files: NewFile[],
    conditions: Conditions = {},
  ): Promise<{ rows: FileRow[]; wasNew: boolean }> {
    const outcome = await this.#change({ kind: 'put', files, conditions, quota: this.#quota })
    if ('done' in outcome && outcome.done === 'put') return outcome
    throw this.#refusal(outcome)
  }

  /** @throws {HttpError} `file_not_found`, `precondition_failed` or `insufficient_storage`. */
  async remove(path: string, conditions: Conditions = {}): Promise<void> {
    const outcome = await this.#change({ kind: 'remove', path, conditions })
    if (!('done' in outcome)) throw this.#refusal(outcome)
  }

  /**
   * Removes these files, or none.
   * @throws {HttpError} `file_not_found` or `insufficient_storage`.
   */
  removeAll(paths: string[]): Promise<{ files: number; bytesFreed: number }> {
    return this.#removeMany({ kind: 'removeAll', paths })
  }

  /**
   * Removes every file below a directory; the root is empty.
   * @throws {HttpError} `directory_not_found` or `insufficient_storage`.
   */
  removeBelow(directory: string): Promise<{ files: number; bytesFreed: number }> {
    return this.#removeMany({ kind: 'removeBelow', directory })
  }

  /**
   * Moves one file; returns the number of files moved, or undefined when the file has another content than `digest`.
   * @throws {HttpError} `file_not_found`, `path_conflict` or `insufficient_storage`.
   */
  async moveFile(move: Omit<MoveFileCommand, 'kind'>): Promise<number | undefined> {
    const outcome = await this.#change({ kind: 'moveFile', ...move })
    if ('refused' in outcome && outcome.refused === 'content_changed') return undefined
    if ('done' in outcome && outcome.done === 'move') return outcome.files
    throw this.#refusal(outcome)
  }

  /**
   * Moves every file below a directory, or none; returns their number. The root is empty.
   * @throws {HttpError} `directory_not_found`, `path_conflict`, `invalid_path`, `reserved_path` or
   *   `insufficient_storage`.
   */
  async moveDirectory(move: { from: string; to: string; overwrite: boolean }): Promise<number> {
    const outcome = await this.#change({ kind: 'moveDirectory', ...move })
    if ('done' in outcome && outcome.done === 'move') return outcome.files
    throw this.#refusal(outcome)
  }

  /** @throws {HttpError} `version_exists` or `insufficient_storage`. */
  async record(version: NewVersion): Promise<VersionRow> {
    const outcome = await this.#change({ kind: 'record', version })
    if ('done' in outcome && outcome.done === 'record') return outcome.version
    throw this.#refusal(outcome)
  }

  list(query: ListQuery): Promise<FileList> {
    return this.#reader.ask('list', query)
  }

  /** The text of the answer; nothing when there is no such directory. */
  tree(query: TreeQuery): Promise<Uint8Array | undefined> {
    return this.#reader.ask('tree', query)
  }

  async categories(): Promise<CategoryCount[]> {
    return this.#queries.categories()
  }

  async totals(): Promise<Totals> {
    return this.#queries.totals()
  }

  async newestVersion(): Promise<VersionRow | undefined> {
    return this.#queries.newestVersion()
  }

  async findVersion(version: string): Promise<VersionRow | undefined> {
    return this.#queries.findVersion(version)
  }

  /** Newest first, changelogs cut to 1 KiB. */
  async listVersions(page: number, pageSize: number): Promise<ListedVersion[]> {
    return this.#reader.ask('versions', { skip: (page - 1) * pageSize, take: pageSize })
  }

  async isReferenced(digest: string): Promise<boolean> {
    return this.#queries.isReferenced(digest)
  }

  /** The first two hex digits of the digests of all contents. */
  contentPrefixes(): Promise<string[]> {
    return this.#reader.ask('contentPrefixes', null)
  }

  /** All contents that files refer to whose digest begins with these hex digits. */
  contents(prefix: string): Promise<{ digest: string; size: number }[]> {
    return this.#reader.ask('contents', prefix)
  }

  /** What a health check asks: answers at once, or throws. */
  check(): { totals: Totals; newest: VersionRow | undefined } {
    this.#writer.check()
    this.#reader.check()
    return { totals: this.#queries.totals(), newest: this.#queries.newestVersion() }
  }

  /** How many changes wait for their commit, and how many questions for the reading thread. */
  get waiting(): { changes: number; questions: number } {
    return { changes: this.#commits.queued, questions: this.#reader.waiting }
  }

  /** Called after each commit with the changed paths, before the change is answered. */
  onChange(listener: (paths: ChangedPaths) => void): void {
    this.#changeListeners.push(listener)
  }

  /** Called after each committed change with the digests that nothing refers to any more. */
  onFree(listener: (digests: string[]) => void): void {
    this.#freeListeners.push(listener)
  }

  async close(): Promise<void> {
    await this.#reader.close()
    this.#db.close()
    // Last, since only who may write can fold the log into the database.
    await this.#writer.close()
  }

  #change(change: CatalogCommand): Promise<Outcome> {
    return this.#commits.submit(change)
  }

  // Listeners run before any caller of the group is answered.
  async #commit(commands: CatalogCommand[]): Promise<Outcome[]> {
    try {
      const outcomes = await this.#writer.ask('commit', commands)
      for (const outcome of outcomes) this.#notify(outcome)
      return outcomes
    } catch (error) {
      throw storageFailure(error)
    }
  }

  async #removeMany(command: CatalogCommand): Promise<{ files: number; bytesFreed: number }> {
    const outcome = await this.#change(command)
    if ('done' in outcome && outcome.done === 'remove') return outcome
    throw this.#refusal(outcome)
  }

  #notify(outcome: Outcome) {
    if (!('done' in outcome) || outcome.done === 'record') return
    for (const listener of this.#changeListeners) listener(outcome.changed)
    if (outcome.freed.length === 0) return
    for (const listener of this.#freeListeners) listener(outcome.freed)
  }

  #refusal(outcome: Outcome): Error {
    if ('failed' in outcome) {
      throw storageFailure(Object.assign(new Error(outcome.failed), { code: outcome.code }))
    }
    if (!('refused' in outcome)) return new Error('the catalog did another thing than it was asked')
    if (outcome.refused === 'quota_exceeded') return quotaExceeded(this.#quota ?? 0)
    return refusals[outcome.refused](outcome.path)
  }
}

const refusals: Record<Exclude<Rejection, 'quota_exceeded'>, (path: string) => Error> = {
  path_conflict: pathConflict,
  target_exists: targetExists,
  move_into_itself: moveIntoItself,
  invalid_target: refuseTarget,
  content_changed: preconditionFailed,
  precondition_failed: preconditionFailed,
  file_not_found: fileNotFound,
  directory_not_found: directoryNotFound,
  version_exists: versionExists,
}

function refuseTarget(path: string): Error {
  const fault = findPathFault(path)
  return fault?.code === 'reserved_path'
    ? reservedPath(fault.segment)
    : invalidPath(fault?.reason ?? 'it cannot be stored')
}
