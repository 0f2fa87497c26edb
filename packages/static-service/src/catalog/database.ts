import { migrate } from '@domains-and-files/persistence'
import Sqlite from 'better-sqlite3'
import { migrations } from './migrations.ts'

export type Database = Sqlite.Database

export const databaseName = 'static-service.sqlite'

/** The catalog's file in a data folder. */
export const databaseFile = (dataDir: string) => `${dataDir}/${databaseName}`

/** The database to change, made and brought up to date where needed. One connection at a time may do that. */
export function openDatabase(file: string): Database {
  const db = new Sqlite(file)
  db.pragma('journal_mode = WAL')
  prepare(db)
  // Small steps, so that the log stays small on a small disk.
  db.pragma('wal_autocheckpoint = 500')
  db.pragma('journal_size_limit = 4194304')
  migrate(db, migrations)
  return db
}

/** A further connection that cannot change anything. */
export function openReader(file: string): Database {
  const db = new Sqlite(file, { readonly: true, fileMustExist: true })
  prepare(db)
  return db
}

function prepare(db: Database) {
  // WAL falls back to NORMAL at each reopening, and then a power cut takes the last commits with it.
  db.pragma('synchronous = FULL')
  // A sort, or an undo log of a statement, needs no file: in a container only the data folder can be written.
  db.pragma('temp_store = MEMORY')
  db.pragma('busy_timeout = 5000')
  db.pragma('cache_size = -32000')
  // Else a change of several steps needs a file of its own in the system's temporary folder.
  db.pragma('temp_store = MEMORY')
}
