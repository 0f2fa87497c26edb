import Sqlite from 'better-sqlite3'

export type Database = Sqlite.Database

/**
 * A connection that can write, and creates the database. See {@link openMigrated} for its tables. `isVacuumed`: a new
 * database can give free pages back to the file system (`incremental_vacuum`).
 */
export function openWriter(file: string, { isVacuumed = false } = {}): Database {
  const db = new Sqlite(file)
  // Before the first page is written, as by the next pragma.
  if (isVacuumed) db.pragma('auto_vacuum = incremental')
  db.pragma('journal_mode = WAL')
  configure(db)
  // Frequent checkpoints keep the WAL small on a small disk.
  db.pragma('wal_autocheckpoint = 500')
  db.pragma('journal_size_limit = 4194304')
  return db
}

/** Whether another process has held the lock of a database for the whole time limit, or has taken its files away. */
export const isOutage = (error: unknown) =>
  error instanceof Error &&
  'code' in error &&
  /^(?:SQLITE_BUSY|DATABASE_UNAVAILABLE$)/.test(String(error.code))

/** A read-only connection to a database that exists. */
export function openReader(file: string): Database {
  const db = new Sqlite(file, { readonly: true, fileMustExist: true })
  configure(db)
  return db
}

function configure(db: Database) {
  // Set on each connection: WAL would default to NORMAL, which loses the last commits on power loss.
  db.pragma('synchronous = FULL')
  // Sorts and statement journals need no file: in a container only the data folder is writable.
  db.pragma('temp_store = MEMORY')
  db.pragma('busy_timeout = 5000')
  // The kernel's page cache has the rest: larger ones are no faster, and five connections have one each.
  db.pragma('cache_size = -8000')
}
