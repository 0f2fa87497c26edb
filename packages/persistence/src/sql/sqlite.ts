import { statSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import type { Database, Statement as Prepared } from 'better-sqlite3'
import { codeOf, DatabaseFullError, DatabaseUnavailableError, storageFailure } from '../errors.ts'
import { render, type Sql, type SqlTransaction, type Statement } from './sql.ts'
import {
  isFailedFlush,
  migrateSqlite,
  openDatabase,
  type SqliteOptions,
  target,
  WriteAheadLog,
} from './sqlite-files.ts'

const probeMs = 5_000
/** One of this many unsynced commits is made durable, since only durable commits checkpoint the log. */
const maxUnsynced = 500
const logPages = 1000
const maxPrepared = 300
/** Milliseconds between attempts while another process has locked the database. */
const retryMs = 10

type Synchronous = 'FULL' | 'NORMAL'

/**
 * A database in a file. Transactions and single writes run one at a time on one connection. Reads outside of them see
 * only committed data: while a transaction is open, they use a second connection. Each statement blocks the event loop.
 */
export class SqliteSql implements Sql {
  readonly dialect = 'sqlite'
  readonly #options: SqliteOptions & { busyTimeoutMs: number }
  readonly #writer: Connection
  /** The files, and what they were at the start. */
  readonly #identities: (readonly [path: string, identity: string])[]
  /** A spare connection for reads beside the writer, and for the next snapshot. */
  #reader: Connection | undefined
  #isClosed = false
  #lastWrite: Promise<unknown> = Promise.resolve()
  /** Time and outcome of the last write. */
  #known = { at: performance.now(), isAvailable: true }
  #synchronous: Synchronous = 'FULL'
  #unsyncedCommits = 0
  readonly #log: WriteAheadLog
  /**
   * The same database, with commits that cost no fsync. They survive a crash of the process; they survive a power cut
   * only after a later durable commit or `flush`.
   */
  readonly unsynced: Sql = {
    dialect: 'sqlite',
    all: (statement) => this.#read(statement, 'all', 'NORMAL'),
    get: (statement) => this.#read(statement, 'get', 'NORMAL'),
    run: (statement) => this.unsynced.transaction((transaction) => transaction.run(statement)),
    transaction: (work) => this.transaction(work, 'NORMAL'),
    snapshot: (work) => this.snapshot(work),
  }

  /** @throws {DataDirError} when a newer version of the service has migrated the database. */
  constructor(options: SqliteOptions) {
    this.#options = { busyTimeoutMs: 5_000, ...options }
    this.#writer = new Connection(this.#options)
    const { database } = this.#writer
    if (options.migrations) migrateSqlite(database, options.migrations)
    // SQLite silently opens a read-only file for reading: this write fails then, at the start.
    if (!options.isReadOnly) database.exec('delete from migrations where 0')
    // From now on `Connection.transaction` waits for locks, without blocking the event loop.
    database.pragma('busy_timeout = 0')
    database.exec('select 1 from sqlite_schema')
    this.#log = new WriteAheadLog(options.file)
    // After the first read, which creates the write-ahead log.
    const paths = ['', '-wal', '-shm'].map((end) => options.file + end)
    this.#identities = paths.map((path) => [path, identityOf(path)])
  }

  /** Whether no fsync of unsynced commits failed, and no file was replaced. */
  get isIntact(): boolean {
    return this.#log.failure === undefined && this.#findReplaced() === undefined
  }

  /**
   * Whether the last write succeeded and the database is intact: a transaction that writes no row succeeds on a full disk,
   * too. After five seconds without a write, a call starts one in the background; later calls see its outcome.
   */
  get isAvailable(): boolean {
    if (performance.now() - this.#known.at >= probeMs) {
      this.#known.at = performance.now()
      // A changing value: SQLite skips a write of the present one.
      const version = Math.floor(performance.now()) % 2 ** 31
      const probe = this.transaction(async () => this.database.pragma(`user_version = ${version}`))
      probe.then(() => Object.assign(this.#known, { isAvailable: true })).catch(() => undefined)
    }
    return this.#known.isAvailable && this.isIntact
  }

  /** The write connection, for features of SQLite alone. Never leave a transaction open on it. */
  get database(): Database {
    return this.#writer.database
  }

  all<Row extends object>(statement: Statement): Promise<Row[]> {
    return this.#read(statement, 'all')
  }

  get<Row extends object>(statement: Statement): Promise<Row | undefined> {
    return this.#read(statement, 'get')
  }

  run(statement: Statement): Promise<number> {
    return this.transaction((transaction) => transaction.run(statement))
  }

  transaction<T>(work: (transaction: SqlTransaction) => Promise<T>, synchronous: Synchronous = 'FULL'): Promise<T> {
    // The deadline includes the time in the queue: a lock of another process delays each write by one time limit at most.
    const deadline = performance.now() + this.#options.busyTimeoutMs
    const result = this.#lastWrite.then(async () => {
      try {
        if (this.#log.failure !== undefined) throw new DatabaseUnavailableError(this.#log.failure)
        this.#setSynchronous(synchronous)
        const rows = this.#known.isAvailable ? -1 : this.#countRows()
        const value = await this.#writer.transaction(async (transaction) => {
          const done = await work(transaction)
          const replaced = synchronous === 'FULL' ? this.#findReplaced() : undefined
          if (replaced) throw replaced
          return done
        }, deadline)
        if (rows < 0 || this.#countRows() > rows) this.#known = { at: performance.now(), isAvailable: true }
        return value
      } catch (error) {
        if (this.#unsyncedCommits > 0 && isFailedFlush(error)) this.#log.failure ??= error
        throw this.#noteFailure(storageFailure(error))
      }
    })
    this.#lastWrite = result.catch(() => undefined)
    return result
  }

  /** Makes all commits durable, without blocking the event loop. After a failed fsync all writes are rejected. */
  async flush(): Promise<void> {
    try {
      const replaced = this.#findReplaced()
      if (replaced) throw replaced
      await this.#log.flush()
    } catch (error) {
      throw this.#noteFailure(storageFailure(error))
    }
  }

  async snapshot<T>(work: (snapshot: SqlTransaction) => Promise<T>): Promise<T> {
    let connection: Connection | undefined
    let isUsable = false
    try {
      connection = this.#reader ?? this.#openReader() // Dedicated: its transaction stays open across calls.
      this.#reader = undefined
      const value = await connection.transaction(work)
      isUsable = true
      return value
    } catch (error) {
      throw storageFailure(error)
    } finally {
      // Keep one connection: its page cache and prepared statements serve the next snapshot.
      if (isUsable && !this.#reader && !this.#isClosed) this.#reader = connection
      else connection?.database.close()
    }
  }

  /** Closes the database after pending writes. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#lastWrite
    await this.#log.close()
    // Closing the last connection checkpoints the log. After a failed fsync an open reader prevents that: the next start
    // recovers the log by its checksums.
    if (this.#log.failure !== undefined) this.#reader ??= this.#openReader()
    else this.#reader?.database.close()
    this.#writer.database.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #read<T>(statement: Statement, method: 'all' | 'get', synchronous: Synchronous = 'FULL'): Promise<T> {
    const { text, values } = render(statement, target)
    const isBusy = this.#writer.database.inTransaction
    if (!isBusy || this.#options.file !== ':memory:') {
      try {
        // A second connection only when needed: commits of the writer invalidate its page cache.
        if (isBusy) this.#reader ??= this.#openReader()
        const prepared = ((isBusy && this.#reader) || this.#writer).prepare(text)
        if (prepared.readonly) return prepared[method](...values) as T // As the caller's columns say.
      } catch (error) {
        throw storageFailure(error)
      }
    }
    // Waits for the transaction of a `:memory:` database; or a statement that writes, such as `insert … returning`.
    return this.transaction(async () => this.#writer.prepare(text)[method](...values) as T, synchronous)
  }

  // SQLite hides a failed fsync of automatic checkpoints, so only durable commits run them: their log has just been fsynced.
  #setSynchronous(wanted: Synchronous) {
    if (wanted === 'NORMAL') this.#unsyncedCommits += 1
    const synchronous = this.#unsyncedCommits % maxUnsynced === maxUnsynced - 1 ? 'FULL' : wanted
    if (synchronous === this.#synchronous) return
    this.#writer.database.exec(`pragma synchronous = ${synchronous};
      pragma wal_autocheckpoint = ${synchronous === 'FULL' ? logPages : 0}`)
    this.#synchronous = synchronous
  }

  #openReader() {
    return new Connection({ ...this.#options, migrations: undefined, isReadOnly: true })
  }

  // A file that was deleted or replaced: SQLite continues to write to it, and its commits are lost.
  #findReplaced(): DatabaseUnavailableError | undefined {
    const [replaced] = this.#identities.find(([path, identity]) => identityOf(path) !== identity) ?? []
    if (replaced === undefined) return undefined
    return new DatabaseUnavailableError(new Error(`${replaced} was deleted or replaced, or cannot be read`))
  }

  #noteFailure(error: unknown): unknown {
    if (error instanceof DatabaseUnavailableError || error instanceof DatabaseFullError)
      this.#known = { at: performance.now(), isAvailable: false }
    return error
  }

  /** The rows that the writer has written since the start. */
  #countRows() {
    return (this.#writer.prepare('select total_changes() as rows').get() as { rows: number }).rows
  }
}

/** Device and inode. */
function identityOf(path: string): string {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    return found ? `${found.dev} ${found.ino}` : 'missing'
  } catch {
    return 'unreadable' // The disk is failing.
  }
}

/** One connection with its prepared statements. */
class Connection implements SqlTransaction {
  readonly dialect = 'sqlite'
  readonly database: Database
  readonly #prepared = new Map<string, Prepared<unknown[]>>()

  constructor(options: SqliteOptions) {
    this.database = openDatabase(options)
  }

  async all<Row extends object>(statement: Statement): Promise<Row[]> {
    const { text, values } = render(statement, target)
    return this.prepare(text).all(...values) as Row[] // As the caller's columns say.
  }

  async get<Row extends object>(statement: Statement): Promise<Row | undefined> {
    const { text, values } = render(statement, target)
    return this.prepare(text).get(...values) as Row | undefined // As above.
  }

  async run(statement: Statement): Promise<number> {
    const { text, values } = render(statement, target)
    return this.prepare(text).run(...values).changes
  }

  prepare(text: string): Prepared<unknown[]> {
    const known = this.#prepared.get(text)
    if (known) return known
    const prepared = this.database.prepare<unknown[]>(text)
    const [oldest] = this.#prepared.keys()
    if (this.#prepared.size >= maxPrepared && oldest) this.#prepared.delete(oldest)
    this.#prepared.set(text, prepared)
    return prepared
  }

  /**
   * Runs `work` in a transaction and commits; rolls back if it throws. With a `deadline`, a time of `performance.now()`,
   * it is a write transaction, which waits until then for locks of others.
   */
  async transaction<T>(work: (transaction: SqlTransaction) => Promise<T>, deadline?: number): Promise<T> {
    const begin = this.prepare(deadline === undefined ? 'begin' : 'begin immediate')
    for (;;) {
      try {
        begin.run()
        break
      } catch (error) {
        if (codeOf(error) !== 'SQLITE_BUSY' || performance.now() >= (deadline ?? 0)) throw error
        await wait(retryMs)
      }
    }
    try {
      const value = await work(this)
      this.prepare('commit').run()
      return value
    } catch (error) {
      if (this.database.inTransaction) this.prepare('rollback').run()
      throw error
    }
  }
}
