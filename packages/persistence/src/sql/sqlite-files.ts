import { closeSync, existsSync, openSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import Database from 'better-sqlite3'
import { codeOf, DatabaseFullError, DatabaseUnavailableError, DataDirError, storageFailure } from '../errors.ts'
import { type Migrations, render } from './sql.ts'

export const target = { dialect: 'sqlite', schema: '' } as const

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

const maxLogBytes = 4 * 1024 * 1024

export function openDatabase(options: SqliteOptions): Database.Database {
  const { file, isReadOnly = false, migrations, isVacuumed, busyTimeoutMs: timeout, now = Date.now } = options
  const database = openFile(file, { readonly: isReadOnly, fileMustExist: isReadOnly || !migrations, timeout })
  if (!isReadOnly) {
    // `auto_vacuum` must precede the first write; again, it would write, as the disk may be full. The size limit truncates
    // the WAL after a large transaction.
    const isNew = isVacuumed && database.pragma('auto_vacuum', { simple: true }) === 0
    database.exec(`${isNew ? 'pragma auto_vacuum = full;' : ''}
      pragma journal_mode = WAL; pragma journal_size_limit = ${maxLogBytes}`)
  }
  // FULL: with the default of WAL, NORMAL, a power cut loses the last commits. Temporary tables in memory: in a container
  // only the data directory is writable. A small page cache: the kernel caches the file, too.
  database.exec('pragma synchronous = FULL; pragma temp_store = MEMORY; pragma cache_size = -8000')
  return database.function('now_ms', { directOnly: true }, now)
}

/** Opens a database; a new one is private (0600), as are its log and index. @throws an error with its `code`. */
export function openFile(file: string, options: Database.Options) {
  const mayCreate = !options.readonly && !options.fileMustExist && file !== ':memory:'
  // Only a missing file: closing an open database would end SQLite's locks on it.
  if (mayCreate && !existsSync(file)) closeSync(openSync(file, 'a', 0o600))
  try {
    return new Database(file, options)
  } catch (error) {
    // better-sqlite3 throws a TypeError if the directory is missing.
    throw error instanceof TypeError ? Object.assign(error, { code: 'ENOENT' }) : error
  }
}

/** Applies pending migrations. @throws {DataDirError} when a newer version of the service has migrated the database. */
export function migrateSqlite(database: Database.Database, migrations: Migrations) {
  const migrate = database.transaction(() => {
    database.exec('create table if not exists migrations (part text primary key, applied integer not null) strict')
    const find = database.prepare<[string], { applied: number }>('select applied from migrations where part = ?')
    for (const [part, statements] of Object.entries(migrations)) {
      const applied = find.get(part)?.applied ?? 0
      if (applied > statements.length) throw newer()
      if (applied === statements.length) continue // Write nothing, as the disk may be full.
      for (const statement of statements.slice(applied)) {
        database.exec(typeof statement === 'string' ? statement : render(statement, target).text)
      }
      database.prepare('insert or replace into migrations values (?, ?)').run(part, statements.length)
    }
  })
  migrate.immediate()
  emptyLog(database)
}

function newer() {
  const advice = 'start that version, or restore a backup made by this one'
  const error = new DataDirError(`The database in DATA_DIR is of a newer version of this service: ${advice}.`)
  return Object.assign(error, { code: 'DATABASE_NEWER' }) // An error that crosses threads keeps its code, not its class.
}

// Checkpoints the log of an earlier process. Its fsync may have failed, and the kernel does not write those pages again;
// the checkpoint writes them to the database before anything is committed behind them.
function emptyLog(database: Database.Database): void {
  try {
    database.pragma('wal_checkpoint(TRUNCATE)')
  } catch (error) {
    if (!(storageFailure(error) instanceof DatabaseFullError)) throw error
  }
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
    if (this.failure !== undefined) throw new DatabaseUnavailableError(this.failure)
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
export const isFailedFlush = (error: unknown): boolean => /^SQLITE_IOERR_(?:DIR_)?FSYNC$/.test(codeOf(error))
