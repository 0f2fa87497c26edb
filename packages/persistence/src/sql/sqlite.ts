import Database from 'better-sqlite3'
import { DatabaseFullError, DatabaseUnavailableError, DataDirError } from '../errors.ts'
import type { Migrations, Sql, SqlTransaction } from './sql.ts'
import { type Rendered, render, type Statement } from './statement.ts'

export interface SqliteOptions {
  /** `:memory:` for a database of this process, without `snapshot`. */
  file: string
  /** Absent: the database must exist and is not migrated. */
  migrations?: Migrations | undefined
  isReadOnly?: boolean
  /** `FULL`: commits survive a power cut. `NORMAL`: they survive the process. */
  synchronous?: 'FULL' | 'NORMAL'
  /** Milliseconds to wait for another process that has locked the database. */
  busyTimeoutMs?: number
  /** The clock of `now`. */
  now?: () => number
}

const target = { dialect: 'sqlite', schema: '' } as const
const maxPrepared = 300

/** One connection, with its prepared statements. Calls are synchronous. */
class Connection {
  readonly database: Database.Database
  readonly #prepared = new Map<string, Database.Statement<unknown[]>>()

  constructor(options: SqliteOptions) {
    const { file, isReadOnly = false, migrations, busyTimeoutMs = 5000 } = options
    this.database = new Database(file, {
      readonly: isReadOnly,
      fileMustExist: isReadOnly || !migrations,
      timeout: busyTimeoutMs,
    })
    if (!isReadOnly) this.database.pragma('journal_mode = WAL')
    // WAL falls back to NORMAL at each opening; a power cut would then lose the last commits.
    this.database.pragma(`synchronous = ${options.synchronous ?? 'FULL'}`)
    // In a container only the data directory is writable, so temporary tables stay in memory.
    this.database.pragma('temp_store = MEMORY')
    this.database.function('now_ms', { directOnly: true }, options.now ?? Date.now)
  }

  prepare({ text }: Rendered): Database.Statement<unknown[]> {
    const known = this.#prepared.get(text)
    if (known) return known
    const prepared = this.database.prepare<unknown[]>(text)
    const [oldest] = this.#prepared.keys()
    if (this.#prepared.size >= maxPrepared && oldest) this.#prepared.delete(oldest)
    this.#prepared.set(text, prepared)
    return prepared
  }
}

/** Statements on one connection, inside the transaction that its owner has begun. */
class OpenTransaction implements SqlTransaction {
  readonly dialect = 'sqlite'
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  async all<Row extends object>(statement: Statement): Promise<Row[]> {
    const rendered = render(statement, target)
    return this.#connection.prepare(rendered).all(...rendered.values) as Row[] // As the caller's columns say.
  }

  async get<Row extends object>(statement: Statement): Promise<Row | undefined> {
    const rendered = render(statement, target)
    return this.#connection.prepare(rendered).get(...rendered.values) as Row | undefined // As above.
  }

  async run(statement: Statement): Promise<number> {
    const rendered = render(statement, target)
    return this.#connection.prepare(rendered).run(...rendered.values).changes
  }
}

/**
 * A database in a file. Transactions and single writes run one after another on one connection; reads outside of them run
 * on a second one, and see what is committed. Every statement blocks the event loop while it runs.
 */
export class SqliteSql implements Sql {
  readonly dialect = 'sqlite'
  readonly #options: SqliteOptions
  readonly #writer: Connection
  readonly #writes: OpenTransaction
  #reader: Connection | undefined
  #lastWrite: Promise<unknown> = Promise.resolve()

  /** @throws {DataDirError} when a newer version of the service has migrated the database. */
  constructor(options: SqliteOptions) {
    this.#options = options
    this.#writer = new Connection(options)
    this.#writes = new OpenTransaction(this.#writer)
    if (options.migrations) migrateSqlite(this.#writer.database, options.migrations)
  }

  /** The writing connection, for what only SQLite has. Never leave a transaction open on it. */
  get database(): Database.Database {
    return this.#writer.database
  }

  async all<Row extends object>(statement: Statement): Promise<Row[]> {
    return this.#read(statement, (one, values) => one.all(...values) as Row[]) // As the caller's columns say.
  }

  async get<Row extends object>(statement: Statement): Promise<Row | undefined> {
    return this.#read(statement, (one, values) => one.get(...values) as Row | undefined) // As above.
  }

  run(statement: Statement): Promise<number> {
    return this.#exclusively(() => this.#writes.run(statement))
  }

  transaction<T>(work: (transaction: SqlTransaction) => Promise<T>): Promise<T> {
    return this.#exclusively(() => inTransaction(this.#writer, 'begin immediate', work))
  }

  async snapshot<T>(work: (snapshot: SqlTransaction) => Promise<T>): Promise<T> {
    const connection = this.#openReader() // Its own: a transaction stays open across calls.
    try {
      return await inTransaction(connection, 'begin', work)
    } finally {
      connection.database.close()
    }
  }

  /** Waits for the writes that have begun. */
  async close(): Promise<void> {
    await this.#lastWrite
    this.#reader?.database.close()
    this.#writer.database.close()
  }

  async #read<T>(
    statement: Statement,
    read: (prepared: Database.Statement<unknown[]>, values: unknown[]) => T,
  ): Promise<T> {
    const rendered = render(statement, target)
    const readFromWriter = async () => read(this.#writer.prepare(rendered), rendered.values)
    if (this.#options.file === ':memory:') return this.#exclusively(readFromWriter)
    try {
      this.#reader ??= this.#openReader()
      const prepared = this.#reader.prepare(rendered)
      if (prepared.readonly) return read(prepared, rendered.values)
    } catch (error) {
      throw translateSqliteError(error)
    }
    // Such as `insert … returning`.
    return this.#exclusively(readFromWriter)
  }

  #openReader() {
    return new Connection({ ...this.#options, migrations: undefined, isReadOnly: true })
  }

  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#lastWrite.then(work).catch((error) => {
      throw translateSqliteError(error)
    })
    this.#lastWrite = result.catch(() => undefined)
    return result
  }
}

async function inTransaction<T>(
  connection: Connection,
  begin: string,
  work: (transaction: SqlTransaction) => Promise<T>,
): Promise<T> {
  const { database } = connection
  database.exec(begin)
  try {
    const value = await work(new OpenTransaction(connection))
    database.exec('commit')
    return value
  } catch (error) {
    if (database.inTransaction) database.exec('rollback')
    throw error
  }
}

/** Applies the migrations that a database has not seen, each part in one transaction. */
function migrateSqlite(database: Database.Database, migrations: Migrations) {
  database.exec(
    'create table if not exists migrations (part text primary key, applied integer not null) strict',
  )
  for (const [part, statements] of Object.entries(migrations)) {
    database
      .transaction(() => {
        const find = database.prepare<[string], { applied: number }>(
          'select applied from migrations where part = ?',
        )
        const applied = find.get(part)?.applied ?? 0
        if (applied > statements.length) throw newer()
        for (const statement of statements.slice(applied)) {
          database.exec(typeof statement === 'string' ? statement : render(statement, target).text)
        }
        database
          .prepare('insert or replace into migrations values (?, ?)')
          .run(part, statements.length)
      })
      .immediate()
  }
}

// An error that crosses threads keeps its code, not its class.
const newer = () =>
  Object.assign(
    new DataDirError(
      'The database in DATA_DIR is of a newer version of this service: start that version, or restore a backup made by this one.',
    ),
    { code: 'DATABASE_NEWER' },
  )

/** Errors of the disk and of locks as the classes that PostgreSQL's failures have; others unchanged. */
export function translateSqliteError(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  // The shared-memory file cannot grow: the disk is full.
  if (/^(?:SQLITE_FULL|SQLITE_IOERR_SHM|ENOSPC|EDQUOT)/.test(code))
    return new DatabaseFullError(error)
  return /^SQLITE_(?!CONSTRAINT|ERROR$|MISMATCH|RANGE|TOOBIG|MISUSE)/.test(code)
    ? new DatabaseUnavailableError(error)
    : error
}
