import { migrate } from '@domains-and-files/persistence'
import { type Database, openWriter } from './connection.ts'

// Apart from connection.ts: the worker threads open databases that are migrated, and need not load the migrations' package.

/**
 * A connection that can write. Creates the database and applies its migrations; one connection at a time may do that.
 * `beforeMigrations` runs on the database as an earlier version left it.
 */
export function openMigrated(
  file: string,
  migrations: string[],
  beforeMigrations: (db: Database) => void = () => undefined,
): Database {
  const db = openWriter(file)
  beforeMigrations(db)
  migrate(db, migrations)
  return db
}
