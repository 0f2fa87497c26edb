import { join } from 'node:path'
import type { Database } from '../../sqlite/connection.ts'
import { openMigrated } from '../../sqlite/migrated-database.ts'
import { prepareStore } from './content-queries.ts'

export const contentDatabaseName = 'contents.sqlite'

// Rows are appended in order of arrival: keyed by digest, each insert would dirty a random page (measured: half the
// speed).
const migrations = [
  `create table contents (
     id integer primary key,
     digest blob not null,
     coding integer not null, -- an index of contentCodings
     bytes blob not null
   ) strict;
   create unique index contents_by_digest on contents (digest, coding);

   -- Content files that were found to have their digest, and their inode, size and modification time at that moment.
   create table verified_files (
     digest blob not null,
     coding integer not null,
     stamp text not null,
     primary key (digest, coding)
   ) strict, without rowid;`,
]

export const contentDatabaseFile = (dataDir: string) => join(dataDir, contentDatabaseName)

/** The content database, created and migrated where needed. One connection at a time may do that. */
export const openContentDatabase = (file: string): Database => openMigrated(file, migrations)

/**
 * An earlier version left small contents in a table of the catalog until their files were flushed. Copies what is left
 * of them; the catalog's next migration drops that table.
 */
export function moveUnflushedContents(catalog: Database, dataDir: string): void {
  const has = catalog.prepare("select 1 from sqlite_schema where name = 'unflushed'").get()
  if (!has) return
  const db = openContentDatabase(contentDatabaseFile(dataDir))
  const store = prepareStore(db)
  const rows = catalog.prepare<[], { digest: string; bytes: Buffer }>(
    'select digest, bytes from unflushed',
  )
  db.transaction(() => {
    for (const { digest, bytes } of rows.iterate()) store(digest, 'identity', bytes)
  })()
  db.close()
}
