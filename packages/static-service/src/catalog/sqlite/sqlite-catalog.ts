import { pathConflict, preconditionFailed, quotaExceeded } from '../../errors.ts'
import type { CategoryCount, FileRow, VersionRow } from '../../files/file-record.ts'
import { type Conditions, holds } from '../../rfc9110/entity-tags.ts'
import { storageFailure } from '../../sqlite/storage-failure.ts'
import { WorkerRpc } from '../../sqlite/worker-rpc.ts'
import type { Catalog, CatalogStatus, ListedVersion, SizeRange, Totals } from '../catalog.ts'
import type { CatalogCommand, Outcome } from '../commands.ts'
import { GroupedChanges } from '../grouped-changes.ts'
import type { FileList, ListQuery } from '../list-query.ts'
import type { TreeQuery } from '../tree.ts'
import { type Database, databaseFile, openDatabase } from './database.ts'
import { contentPrefixes, contentsOf, Queries } from './queries.ts'
import type { ReadWorkerMethods } from './workers/read-worker.ts'
import type { WriteWorkerMethods } from './workers/write-worker.ts'

export interface SqliteCatalogOptions {
  /** Maximum bytes of the distinct contents; undefined: unlimited. */
  quotaBytes?: number | undefined
}

interface Parts {
  writer: WorkerRpc<WriteWorkerMethods>
  reader: WorkerRpc<ReadWorkerMethods>
  quota: number | undefined
}

/** The catalog in SQLite. Lookups run on the event loop; writes and long queries run in worker threads. */
export class SqliteCatalog extends GroupedChanges implements Catalog {
  readonly isExclusive = true
  readonly #db: Database
  readonly #queries: Queries
  readonly #writer: WorkerRpc<WriteWorkerMethods>
  readonly #reader: WorkerRpc<ReadWorkerMethods>

  /** The data directory must exist. */
  static async open(dataDir: string, options: SqliteCatalogOptions = {}): Promise<SqliteCatalog> {
    const file = databaseFile(dataDir)
    const writer = new WorkerRpc<WriteWorkerMethods>(
      new URL('./workers/write-worker.ts', import.meta.url),
      file,
    )
    const reader = new WorkerRpc<ReadWorkerMethods>(
      new URL('./workers/read-worker.ts', import.meta.url),
      file,
    )
    // Migrated here: the thread that writes starts with the first change.
    const db = openDatabase(file)
    db.pragma('query_only = 1')
    return new SqliteCatalog(db, { writer, reader, quota: options.quotaBytes })
  }

  private constructor(db: Database, { writer, reader, quota }: Parts) {
    super(quota)
    this.#db = db
    this.#queries = new Queries(db)
    this.#writer = writer
    this.#reader = reader
  }

  async find(path: string): Promise<FileRow | undefined> {
    return this.findNow(path)
  }

  findNow(path: string): FileRow | undefined {
    return this.#queries.find(path)
  }

  async checkPut(path: string, conditions: Conditions): Promise<void> {
    const row = this.#queries.find(path)
    if (!row && this.#queries.conflictsWith(path)) throw pathConflict(path)
    if (!holds(conditions, row)) throw preconditionFailed(path)
  }

  async checkQuota(path: string, size: SizeRange): Promise<void> {
    const quota = this.quotaBytes
    if (quota === undefined) return
    const { storedSize } = this.#queries.totals()
    if (storedSize + size.minBytes <= quota) return
    // It may equal a stored content, which takes no more room, or replace one.
    if (this.#queries.hasFileOfSize(size)) return
    if (storedSize - this.#queries.freedBy(path) + size.minBytes > quota) throw quotaExceeded(quota)
  }

  list(query: ListQuery): Promise<FileList> {
    return this.#reader.ask('list', query)
  }

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

  async listVersions(page: number, pageSize: number): Promise<ListedVersion[]> {
    return this.#reader.ask('versions', { skip: (page - 1) * pageSize, take: pageSize })
  }

  async isReferenced(digest: string): Promise<boolean> {
    return this.#queries.isReferenced(digest)
  }

  async contentPrefixes(): Promise<string[]> {
    return this.#isSmall ? contentPrefixes(this.#db) : this.#writer.ask('contentPrefixes', null)
  }

  async contents(prefix: string): Promise<{ digest: string; size: number }[]> {
    return this.#isSmall ? contentsOf(this.#db, prefix) : this.#writer.ask('contents', prefix)
  }

  status(): CatalogStatus {
    try {
      this.#writer.check()
      this.#reader.check()
      const newestVersion = this.#queries.newestVersion()?.version ?? null
      return { isAvailable: true, totals: this.#queries.totals(), newestVersion }
    } catch {
      return { isAvailable: false, totals: undefined, newestVersion: null }
    }
  }

  get waiting(): { changes: number; questions: number } {
    return { changes: this.queuedChanges, questions: this.#reader.waiting }
  }

  async close(): Promise<void> {
    await this.#reader.close()
    this.#db.close()
    // Last: only a writer can checkpoint the WAL into the database.
    await this.#writer.close()
  }

  // The sweep at startup needs no thread then.
  get #isSmall(): boolean {
    return this.#queries.totals().totalFiles <= 1000
  }

  protected async commitGroup(commands: CatalogCommand[]): Promise<Outcome[]> {
    try {
      return await this.#writer.ask('commit', commands)
    } catch (error) {
      throw storageFailure(error)
    }
  }
}
