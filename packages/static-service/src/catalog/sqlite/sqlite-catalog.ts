import {
  render,
  type Sql,
  SqliteSql,
  type Statement,
  sql as write,
} from '@domains-and-files/persistence'
import type { FileRow } from '../../files/file-record.ts'
import { storageFailure } from '../../sqlite/storage-failure.ts'
import { WorkerRpc } from '../../sqlite/worker-rpc.ts'
import { Catalog } from '../catalog.ts'
import {
  type CatalogDatabase,
  type CatalogOptions,
  type CatalogStatus,
  type LongQueries,
  longQueries,
} from '../catalog-database.ts'
import type { CatalogCommand, Outcome } from '../changes/commands.ts'
import { fileColumns, type Totals, totalsStatement } from '../queries.ts'
import { databaseFile, openDatabase } from './open-sqlite.ts'
import type { ReadWorkerMethods } from './read-worker.ts'
import type { WriteWorkerMethods } from './write-worker.ts'

interface SqliteCatalogOptions extends CatalogOptions {
  /** For maintenance beside a service: the database exists, and nothing is changed. */
  isReadOnly?: boolean
}

/** The catalog in a data folder, which must exist. */
export async function openSqliteCatalog(
  dataDir: string,
  { isReadOnly = false, isCommand = false, ...options }: SqliteCatalogOptions = {},
): Promise<Catalog> {
  const file = databaseFile(dataDir)
  // Migrated here: the thread that writes starts with the first change.
  const sql = isReadOnly ? new SqliteSql({ file, isReadOnly }) : openDatabase(file)
  const database = new SqliteDatabase({ file, sql, options })
  return new Catalog(database, { ...options, isCommand: isCommand || isReadOnly })
}

interface SqliteParts {
  file: string
  sql: SqliteSql
  options: CatalogOptions
}

/** Look-ups run on the event loop; writes and long queries in worker threads. */
class SqliteDatabase implements CatalogDatabase {
  readonly isExclusive = true
  readonly sql: Sql
  readonly long: LongQueries
  readonly #database: SqliteSql
  readonly #writer: WorkerRpc<WriteWorkerMethods>
  readonly #reader: WorkerRpc<ReadWorkerMethods>
  readonly #find
  readonly #totals

  constructor({ file, sql, options: { limits, history, quotaBytes } }: SqliteParts) {
    this.#database = sql
    this.sql = sql
    this.#writer = new WorkerRpc(new URL('./write-worker.ts', import.meta.url), {
      ...{ file, limits, history, quotaBytes },
    })
    this.#reader = new WorkerRpc(new URL('./read-worker.ts', import.meta.url), file)
    const { database } = sql
    database.pragma('query_only = 1')
    const byPath = write`select ${fileColumns} from files where path = ${''}`
    this.#find = database.prepare<[string], FileRow>(textOf(byPath))
    this.#totals = database.prepare<[], Totals & { newestVersion: string | null }>(
      textOf(totalsStatement),
    )
    const reader = this.#reader
    const here = longQueries(sql)
    const methods = Object.keys(here) as (keyof LongQueries)[]
    const asked = methods.map((method) => [method, (input: never) => reader.ask(method, input)])
    this.long = {
      ...(Object.fromEntries(asked) as LongQueries), // The thread has the same methods.
      // A look-up by key.
      lastDeployed: (query) => here.lastDeployed(query),
      // Asked at each start, when no thread should start for a small store.
      contentPrefixes: () =>
        this.#isSmall ? here.contentPrefixes() : reader.ask('contentPrefixes', undefined),
      contents: (prefix) =>
        this.#isSmall ? here.contents(prefix) : reader.ask('contents', prefix),
    }
  }

  async find(path: string): Promise<FileRow | undefined> {
    return this.findNow(path)
  }

  findNow(path: string): FileRow | undefined {
    return this.#find.get(path)
  }

  async commit(commands: CatalogCommand[]): Promise<Outcome[]> {
    try {
      return await this.#writer.ask('commit', commands)
    } catch (error) {
      throw storageFailure(error)
    }
  }

  status(): CatalogStatus {
    try {
      this.#writer.check()
      this.#reader.check()
      if (!this.#database.isIntact) throw new Error('files of the catalog were deleted or replaced')
      const found = this.#totals.get()
      if (!found) throw new Error('the catalog has no root directory')
      const { newestVersion, ...totals } = found
      return { isAvailable: true, totals, newestVersion }
    } catch {
      return { isAvailable: false, totals: undefined, newestVersion: null }
    }
  }

  get waiting(): number {
    return this.#reader.waiting
  }

  async close(): Promise<void> {
    await this.#reader.close()
    await this.#database.close()
    // Last: only a writer can checkpoint the log into the database.
    await this.#writer.close()
  }

  get #isSmall(): boolean {
    return (this.#totals.get()?.totalFiles ?? 0) <= 1000
  }
}

const textOf = (statement: Statement) => render(statement, { dialect: 'sqlite', schema: '' }).text
