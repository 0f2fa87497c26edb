import { pathConflict, preconditionFailed, quotaExceeded } from '../errors.ts'
import type {
  CategoryCount,
  FileRow,
  NewFile,
  NewVersion,
  VersionRow,
} from '../files/file-record.ts'
import { type Conditions, holds } from '../rfc9110/entity-tags.ts'
import { GroupCommit } from '../sqlite/group-commit.ts'
import { storageFailure } from '../sqlite/storage-failure.ts'
import { WorkerRpc } from '../sqlite/worker-rpc.ts'
import type { CatalogCommand, ChangedPaths, MoveFileCommand, Outcome } from './commands.ts'
import { type Database, databaseFile, openReader } from './database.ts'
import type { TreeQuery } from './directory-tree.ts'
import { type ListedVersion, Queries, type Totals } from './queries.ts'
import { errorOf } from './rejection-errors.ts'
import type { FileList, ListQuery } from './search/list-query.ts'
import type { ReadWorkerMethods } from './workers/read-worker.ts'
import type { WriteWorkerMethods } from './workers/write-worker.ts'

export interface CatalogOptions {
  /** Maximum bytes of the distinct contents; undefined: unlimited. */
  quotaBytes?: number | undefined
}

interface Parts {
  writer: WorkerRpc<WriteWorkerMethods>
  reader: WorkerRpc<ReadWorkerMethods>
  quota: number | undefined
}

/**
 * Which file is at which path. A change is durable when its promise resolves. Lookups run on the event loop; writes and
 * long queries run in worker threads.
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

  /** The data directory must exist. */
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
    throw errorOf(outcome, this.#quota)
  }

  /** @throws {HttpError} `file_not_found`, `precondition_failed` or `insufficient_storage`. */
  async remove(path: string, conditions: Conditions = {}): Promise<void> {
    const outcome = await this.#change({ kind: 'remove', path, conditions })
    if (!('done' in outcome)) throw errorOf(outcome, this.#quota)
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
    throw errorOf(outcome, this.#quota)
  }

  /**
   * Moves every file below a directory, or none; returns their number. The root is empty.
   * @throws {HttpError} `directory_not_found`, `path_conflict`, `invalid_path`, `reserved_path` or
   *   `insufficient_storage`.
   */
  async moveDirectory(move: { from: string; to: string; overwrite: boolean }): Promise<number> {
    const outcome = await this.#change({ kind: 'moveDirectory', ...move })
    if ('done' in outcome && outcome.done === 'move') return outcome.files
    throw errorOf(outcome, this.#quota)
  }

  /** @throws {HttpError} `version_exists` or `insufficient_storage`. */
  async record(version: NewVersion): Promise<VersionRow> {
    const outcome = await this.#change({ kind: 'record', version })
    if ('done' in outcome && outcome.done === 'record') return outcome.version
    throw errorOf(outcome, this.#quota)
  }

  list(query: ListQuery): Promise<FileList> {
    return this.#reader.ask('list', query)
  }

  /** The tree as JSON; undefined when there is no such directory. */
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

  /** For health checks: reads counters at once. @throws when a worker thread has ended. */
  check(): { totals: Totals; newest: VersionRow | undefined } {
    this.#writer.check()
    this.#reader.check()
    return { totals: this.#queries.totals(), newest: this.#queries.newestVersion() }
  }

  /** Changes that wait for their commit, and queries that wait for the read worker. */
  get waiting(): { changes: number; questions: number } {
    return { changes: this.#commits.queued, questions: this.#reader.waiting }
  }

  /** Called after each commit with the changed paths, before the change is answered. */
  onChange(listener: (paths: ChangedPaths) => void): void {
    this.#changeListeners.push(listener)
  }

  /** Called after each commit with the digests that nothing refers to any more. */
  onFree(listener: (digests: string[]) => void): void {
    this.#freeListeners.push(listener)
  }

  async close(): Promise<void> {
    await this.#reader.close()
    this.#db.close()
    // Last: only a writer can checkpoint the WAL into the database.
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
    throw errorOf(outcome, this.#quota)
  }

  #notify(outcome: Outcome) {
    if (!('done' in outcome) || outcome.done === 'record') return
    for (const listener of this.#changeListeners) listener(outcome.changed)
    if (outcome.freed.length === 0) return
    for (const listener of this.#freeListeners) listener(outcome.freed)
  }
}
