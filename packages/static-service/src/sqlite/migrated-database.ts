import { migrate } from '@domains-and-files/persistence'
import { type Database, openWriter } from './connection.ts'

// Apart from connection.ts: the worker threads open databases that are migrated, and need not load the migrations' package.

/** A connection that can write. Creates the database and applies its migrations; one connection at a time may do that. */
export function openMigrated(
  file: string,
  migrations: string[],
  options?: { isVacuumed: boolean },
): Database {
  const db = openWriter(file, options)
  migrate(db, migrations)
  return db
}
