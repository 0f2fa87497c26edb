import { Flusher } from '../blobs/blob-flusher.ts'
import { nameFullDisk } from '../blobs/staged-blob.ts'
import {
  catalogLocked,
  fileNotFound,
  insufficientStorage,
  pathConflict,
  preconditionFailed,
  quotaExceeded,
  versionExists,
} from '../errors.ts'
import type {
  CategoryCount,
  FileRow,
  NewFile,
  NewVersion,
  VersionRow,
} from '../files/file-record.ts'
import { type Conditions, holds } from '../rfc9110/entity-tags.ts'
import { type Database, databaseFile, openReader } from './database.ts'
import type { TreeQuery } from './directory-tree.ts'
import { type ListedVersion, Queries, type Totals } from './queries.ts'
import type { FileList, ListQuery } from './search/list-query.ts'
import type { CatalogCommand, Outcome, Put, RejectedCommand } from './transactions.ts'
import type { Contents } from './unflushed-contents.ts'
import type { ReadWorkerMethods } from './workers/read-worker.ts'
import { WorkerRpc } from './workers/worker-rpc.ts'
import type { WriteWorkerMethods } from './workers/write-worker.ts'

export interface CatalogOptions {
  /** Bytes that the distinct contents may have together; absent: no bound. */
  quotaBytes?: number | undefined
  /** Told when contents that are safe in the catalog could not be brought to their files. */
  onFlushError?: (error: unknown) => void
}

interface Parts {
  writer: WorkerRpc<WriteWorkerMethods>
  reader: WorkerRpc<ReadWorkerMethods>
  flusher: Flusher
  quota: number | undefined
}

interface Waiting {
  change: CatalogCommand
  resolve: (outcome: Outcome) => void
  reject: (error: unknown) => void
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
  readonly #flusher: Flusher
  readonly #changeListeners: ((paths: string[]) => void)[] = []
  readonly #freeListeners: ((digests: string[]) => void)[] = []
  #waiting: Waiting[] = []
  #isCommitting = false

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
    const onError = options.onFlushError ?? (() => undefined)
    const flusher = new Flusher({
      dataDir,
      begin: () => writer.ask('closeGeneration', null),
      end: (generation) => writer.ask('forgetGeneration', generation),
      onError,
    })
    const { restored } = await writer.ask('ready', null)
    if (restored.bytes > 0) flusher.note(restored.bytes)
    if (restored.failed > 0) {
      flusher.giveUp()
      onError(new Error(`${restored.failed} contents could not be written anew`))
    }
    return new Catalog(openReader(file), { writer, reader, flusher, quota: options.quotaBytes })
  }

  private constructor(db: Database, { writer, reader, flusher, quota }: Parts) {
    this.#db = db
    this.#queries = new Queries(db)
    this.#writer = writer
    this.#reader = reader
    this.#flusher = flusher
    this.#quota = quota
  }

  async find(path: string): Promise<FileRow | undefined> {
    return this.#queries.find(path)
  }

  /** How many bytes a content may have that is handed to `put`; 0: none may. */
  get mostOfContent(): number {
    return this.#flusher.most
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
   * Enters these files, all or none, each in place of what was at its path. Small contents that are handed over with
   * them come into the store; all others must be there.
   * @throws {HttpError} `path_conflict`, `precondition_failed`, `quota_exceeded` or `insufficient_storage`.
   */
  async put(
    files: NewFile[],
    conditions: Conditions = {},
    contents: Contents = new Map(),
  ): Promise<{ rows: FileRow[]; wasNew: boolean }> {
    const put: Put = { kind: 'put', files, contents, conditions, quota: this.#quota }
    const outcome = await this.#change(put)
    if ('done' in outcome && outcome.done === 'put') return outcome
    throw this.#refusal(outcome)
  }

  /** @throws {HttpError} `file_not_found`, `precondition_failed` or `insufficient_storage`. */
  async remove(path: string, conditions: Conditions = {}): Promise<void> {
    const outcome = await this.#change({ kind: 'remove', path, conditions })
    if (!('done' in outcome)) throw this.#refusal(outcome)
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

  /** All digests that are referred to and begin so. */
  digests(prefix: string): Promise<string[]> {
    return this.#reader.ask('digests', prefix)
  }

  /** What a health check asks: answers at once, or throws. */
  check(): { totals: Totals; newest: VersionRow | undefined } {
    this.#writer.check()
    this.#reader.check()
    return { totals: this.#queries.totals(), newest: this.#queries.newestVersion() }
  }

  /** How many changes wait for their commit, and how many questions for the reading thread. */
  get waiting(): { changes: number; questions: number } {
    return { changes: this.#waiting.length, questions: this.#reader.waiting }
  }

  /** Called after each committed change with the paths that it changed, before the change is answered. */
  onChange(listener: (paths: string[]) => void): void {
    this.#changeListeners.push(listener)
  }

  /** Called after each committed change with the digests that nothing refers to any more. */
  onFree(listener: (digests: string[]) => void): void {
    this.#freeListeners.push(listener)
  }

  async close(): Promise<void> {
    await this.#flusher.close()
    await this.#reader.close()
    this.#db.close()
    // Last, since only who may write can fold the log into the database.
    await this.#writer.close()
  }

  #change(change: CatalogCommand): Promise<Outcome> {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
    this.#waiting.push({ change, resolve, reject })
    if (!this.#isCommitting) void this.#commit()
    return promise
  }

  // What came while a commit was running goes into the next one together: the disk is waited for once.
  async #commit() {
    this.#isCommitting = true
    while (this.#waiting.length > 0) {
      const round = this.#waiting.splice(0, largestRound)
      try {
        const changes = round.map(({ change }) => change)
        const outcomes = await this.#writer.ask('commit', changes)
        for (const [at, { change, resolve }] of round.entries()) {
          const outcome = outcomes[at]
          if (!outcome) throw new Error('the catalog did not say what became of a change')
          this.#tell(change, outcome)
          resolve(outcome)
        }
      } catch (error) {
        for (const { reject } of round) reject(nameFailure(error))
      }
    }
    this.#isCommitting = false
  }

  #tell(change: CatalogCommand, outcome: Outcome) {
    if (!('done' in outcome) || change.kind === 'record' || outcome.done === 'record') return
    const paths = change.kind === 'put' ? change.files.map(({ path }) => path) : [change.path]
    for (const listener of this.#changeListeners) listener(paths)
    if (change.kind === 'put' && change.contents.size > 0) {
      this.#flusher.note([...change.contents.values()].reduce((sum, { length }) => sum + length, 0))
    }
    if (outcome.freed.length === 0) return
    for (const listener of this.#freeListeners) listener(outcome.freed)
  }

  #refusal(outcome: Outcome): Error {
    if ('failed' in outcome) {
      return nameFullDisk(Object.assign(new Error(outcome.failed), { code: outcome.code }))
    }
    if (!('refused' in outcome)) return new Error('the catalog did another thing than it was asked')
    if (outcome.refused === 'quota_exceeded') return quotaExceeded(this.#quota ?? 0)
    return refusals[outcome.refused](outcome.path)
  }
}

const largestRound = 64

const refusals: Record<Exclude<RejectedCommand, 'quota_exceeded'>, (path: string) => Error> = {
  path_conflict: pathConflict,
  precondition_failed: preconditionFailed,
  file_not_found: fileNotFound,
  version_exists: versionExists,
}

function nameFailure(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (/^SQLITE_(?:FULL|IOERR_SHM)/.test(code)) return insufficientStorage(error)
  return code.startsWith('SQLITE_BUSY') ? catalogLocked(error) : error
}
