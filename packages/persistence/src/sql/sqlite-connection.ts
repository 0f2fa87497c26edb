import { statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { DatabaseFullError, DatabaseUnavailableError, storageFailure } from '../errors.ts'
import { type Migrations, render, type SqlTransaction, type Statement } from './sql.ts'

export interface SqliteOptions {
  /** `:memory:` for a database of this process, without `snapshot`. */
  file: string
  /** Absent: the database must exist and is not migrated. */
  migrations?: Migrations | undefined
  isReadOnly?: boolean
  /** Creates a new database that returns the pages of deleted rows to the file system. */
  isVacuumed?: boolean
  /** Milliseconds to wait for another process that has locked the database. */
  busyTimeoutMs?: number
  now?: () => number
}

export const target = { dialect: 'sqlite', schema: '' } as const
const maxPrepared = 300
const maxLogBytes = 16 * 1024 * 1024
export const defaultBusyTimeoutMs = 5_000

/** One connection with its prepared statements. Its owner begins and ends transactions. */
export class Connection implements SqlTransaction {
  readonly dialect = 'sqlite'
  readonly database: Database.Database
  readonly #prepared = new Map<string, Database.Statement<unknown[]>>()

  constructor(options: SqliteOptions) {
    const { file, isReadOnly = false, migrations, busyTimeoutMs = defaultBusyTimeoutMs } = options
    this.database = openFile(file, {
      readonly: isReadOnly,
      fileMustExist: isReadOnly || !migrations,
      timeout: busyTimeoutMs,
    })
    if (!isReadOnly) {
      // `auto_vacuum` must precede the first write. The size limit truncates the WAL after a large transaction.
      this.database.exec(`${options.isVacuumed ? 'pragma auto_vacuum = full;' : ''}
        pragma journal_mode = WAL; pragma journal_size_limit = ${maxLogBytes}`)
    }
    // FULL: with the default of WAL, NORMAL, a power cut loses the last commits. Temporary tables in memory: in a
    // container only the data directory is writable. A small page cache: the kernel caches the file, too.
    this.database.exec('pragma synchronous = FULL; pragma temp_store = MEMORY; pragma cache_size = -8000')
    this.database.function('now_ms', { directOnly: true }, options.now ?? Date.now)
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
    const { text, values, rows = [values] } = render(statement, target)
    const prepared = this.prepare(text)
    let changes = 0
    for (const row of rows) changes += prepared.run(row).changes
    return changes
  }

  prepare(text: string): Database.Statement<unknown[]> {
    const known = this.#prepared.get(text)
    if (known) return known
    const prepared = this.database.prepare<unknown[]>(text)
    const [oldest] = this.#prepared.keys()
    if (this.#prepared.size >= maxPrepared && oldest) this.#prepared.delete(oldest)
    this.#prepared.set(text, prepared)
    return prepared
  }
}

/** @throws the error of SQLite, with its `code`. */
export function openFile(file: string, options: Database.Options) {
  try {
    return new Database(file, options)
  } catch (error) {
    // better-sqlite3 throws a TypeError if the directory is missing.
    throw error instanceof TypeError ? Object.assign(error, { code: 'ENOENT' }) : error
  }
}

/**
 * Returns a function that finds a file of an open database that was deleted, replaced (by device and inode) or is
 * unreadable: SQLite continues to write to such a file, and its commits are lost. Call it after the first read, which
 * creates the write-ahead log.
 */
export function watchFiles(file: string): () => string | undefined {
  const paths = [file, `${file}-wal`, `${file}-shm`]
  const identities = paths.map(identityOf)
  return () =>
    paths.find((path, at) => {
      try {
        return identityOf(path) !== identities[at]
      } catch {
        return true // The disk is failing.
      }
    })
}

function identityOf(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false })
  return found ? `${found.dev} ${found.ino}` : 'missing'
}

/**
 * The write-ahead log of an open database. The kernel reports a failed fsync once, and may drop the dirty pages. After
 * one, nothing is committed: a commit behind a gap in the log would be lost.
 */
export class WriteAheadLog {
  readonly #file: string
  #handle: FileHandle | undefined
  #last = Promise.resolve()
  #next: Promise<void> | undefined
  /** Of the first failed fsync. */
  failure: unknown

  constructor(file: string) {
    this.#file = `${file}-wal`
  }

  /** @throws {DatabaseUnavailableError} after a failed fsync. */
  check(): void {
    if (this.failure !== undefined) throw new DatabaseUnavailableError(this.failure)
  }

  /** Fsyncs the log. Calls during a running fsync share the next one. */
  flush(): Promise<void> {
    this.#next ??= this.#last.then(() => {
      this.#next = undefined
      return this.#flush()
    })
    this.#last = this.#next.catch(() => undefined)
    return this.#next
  }

  async close(): Promise<void> {
    await this.#last
    await this.#handle?.close()
  }

  async #flush() {
    this.check()
    try {
      this.#handle ??= await open(this.#file)
      await this.#handle.datasync()
    } catch (error) {
      this.failure ??= error
      throw error
    }
  }
}

/** Whether a commit failed in SQLite's fsync. */
export const isFailedFlush = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && /^SQLITE_IOERR_(?:DIR_)?FSYNC$/.test(String(error.code))

/**
 * Checkpoints the log of an earlier process. Its fsync may have failed, and the kernel does not write those pages again;
 * the checkpoint writes them to the database before anything is committed behind them.
 */
export function emptyLog(database: Database.Database): void {
  try {
    database.pragma('wal_checkpoint(TRUNCATE)')
  } catch (error) {
    if (!(storageFailure(error) instanceof DatabaseFullError)) throw error
  }
}

/** Milliseconds between attempts while another process has locked the database. */
const retryMs = 10

/**
 * Runs `work` in a transaction and commits; rolls back if it or `beforeCommit` throws. With a `deadline`, a time of
 * `performance.now()`, it is a write transaction, which waits until then for locks of others.
 */
export async function inTransaction<T>(
  connection: Connection,
  work: (transaction: SqlTransaction) => Promise<T>,
  { deadline, beforeCommit }: { deadline?: number; beforeCommit?: (() => void) | undefined } = {},
): Promise<T> {
  const begin = connection.prepare(deadline === undefined ? 'begin' : 'begin immediate')
  for (let attempt = 0; ; attempt++) {
    try {
      begin.run()
      break
    } catch (error) {
      const isLocked = error instanceof Error && 'code' in error && error.code === 'SQLITE_BUSY'
      if (!isLocked || performance.now() >= (deadline ?? 0)) throw error
      // First yield only: another connection of this process finishes soon.
      await (attempt < 3 ? turn() : wait(retryMs))
    }
  }
  try {
    const value = await work(connection)
    beforeCommit?.()
    connection.prepare('commit').run()
    return value
  } catch (error) {
    if (connection.database.inTransaction) connection.prepare('rollback').run()
    throw error
  }
}
