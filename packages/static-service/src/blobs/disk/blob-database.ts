import { join } from 'node:path'
import type { Database } from '../../sqlite/connection.ts'
import { openMigrated } from '../../sqlite/migrated-database.ts'

export const blobDatabaseName = 'contents.sqlite'

export const blobDatabaseFile = (dataDir: string) => join(dataDir, blobDatabaseName)

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

   -- Files of blobs that were found to have their digest, and their inode, size and modification time at that moment.
   create table verified_files (
     digest blob not null,
     coding integer not null,
     stamp text not null,
     primary key (digest, coding)
   ) strict, without rowid;`,
]

/** The database of small blobs, created and migrated where needed. One connection at a time may do that. */
export const openBlobDatabase = (file: string): Database =>
  openMigrated(file, migrations, { isVacuumed: true })
