import { statSync } from 'node:fs'
import { eventMigrations } from '@domains-and-files/events'
import { render, SqliteSql, type Statement, sql } from '@domains-and-files/persistence'
import { WorkerRpc } from '../../sqlite/worker-commits.ts'
import { Catalog, type CatalogStatus } from '../catalog.ts'
import type { CatalogOptions } from '../changes/group.ts'
import { catalogMigrations } from '../migrations.ts'
import { type CatalogReads, catalogReads, type Totals, totalsStatement } from '../reads.ts'
import { type FileRow, fileRow } from '../tables.ts'
import type { ReadWorkerMethods } from './read-worker.ts'
import type { WriteWorkerMethods } from './write-worker.ts'

/** The catalog's file in a data folder. */
export const databaseFile = (dataDir: string) => `${dataDir}/static-service.sqlite`

/** Whether a data folder has a catalog. SQLite takes an empty file for a new one, in which every content is an orphan. */
export const hasCatalog = (dataDir: string) =>
  (statSync(databaseFile(dataDir), { throwIfNoEntry: false })?.size ?? 0) > 0

/** The catalog's database, created and migrated where needed. */
export const openDatabase = (file: string) =>
  new SqliteSql({ file, migrations: { catalog: catalogMigrations, ...eventMigrations } })

/** The catalog in a data folder, which must exist. `isReadOnly`: the database must exist, too. */
export async function openSqliteCatalog(
  dataDir: string,
  { isReadOnly = false, ...options }: CatalogOptions & { isReadOnly?: boolean } = {},
): Promise<Catalog> {
  const file = databaseFile(dataDir)
  // Migrates here: the writer thread starts with the first change only.
  const database = isReadOnly ? new SqliteSql({ file, isReadOnly }) : openDatabase(file)
  return new SqliteCatalog(database, { file, options })
}

/** Look-ups run on the event loop; writes and most reads of many rows in worker threads. */
class SqliteCatalog extends Catalog {
  readonly isExclusive = true
  readonly reads: CatalogReads
  readonly #database: SqliteSql
  readonly #writer: WorkerRpc<WriteWorkerMethods>
  readonly #reader: WorkerRpc<ReadWorkerMethods>
  readonly #find
  readonly #totals

  constructor(database: SqliteSql, { file, options }: { file: string; options: CatalogOptions }) {
    const script = new URL('./write-worker.ts', import.meta.url)
    const writer = new WorkerRpc<WriteWorkerMethods>(script, { ...options, file })
    super(database, options, writer.ask.bind(writer, 'commit'))
    this.#database = database
    this.#writer = writer
    this.#reader = new WorkerRpc(new URL('./read-worker.ts', import.meta.url), file)
    const { database: connection } = database
    connection.pragma('query_only = 1')
    const byPath = sql`select ${fileRow} from files where path = ${''}`
    this.#find = connection.prepare<[string], FileRow>(textOf(byPath))
    this.#totals = connection.prepare<[], Totals>(textOf(totalsStatement))
    const reader = this.#reader
    const here = catalogReads(database)
    const methods = Object.keys(here) as (keyof CatalogReads)[]
    const asked = methods.map((method) => [method, reader.ask.bind(reader, method)])
    this.reads = {
      ...(Object.fromEntries(asked) as CatalogReads), // The thread has the same methods.
      // Look-ups by key.
      lastDeployed: here.lastDeployed,
      usage: (directory) => (directory === '' ? here.usage('') : reader.ask('usage', directory)),
      // Called at each start: a small store should not start a thread for it.
      contents: (prefix) => {
        const isSmall = (this.#totals.get()?.totalFiles ?? 0) <= 1000
        return isSmall ? here.contents(prefix) : reader.ask('contents', prefix)
      },
    }
  }

  async find(path: string): Promise<FileRow | undefined> {
    return this.#find.get(path)
  }

  override findNow(path: string): FileRow | undefined {
    return this.#find.get(path)
  }

  status(): CatalogStatus {
    try {
      if (!this.#database.isIntact) throw new Error('files of the catalog were deleted or replaced')
      const totals = this.#totals.get()
      return { isAvailable: totals !== undefined, totals }
    } catch {
      return { isAvailable: false, totals: undefined }
    }
  }

  get waitingQueries(): number {
    return this.#reader.waiting
  }

  protected async closeDatabase(): Promise<void> {
    await this.#reader.close()
    await this.#database.close()
    // Last: only a writer can checkpoint the log into the database.
    await this.#writer.close()
  }
}

const textOf = (statement: Statement) => render(statement, { dialect: 'sqlite', schema: '' }).text
