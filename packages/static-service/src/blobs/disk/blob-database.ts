import { join } from 'node:path'
import { SqliteSql } from '@domains-and-files/persistence'

export const blobDatabaseName = 'contents.sqlite'

export const blobDatabaseFile = (dataDir: string) => join(dataDir, blobDatabaseName)

// Rows are appended in order of arrival: keyed by digest, each insert would dirty a random page (measured: half the
// speed). Databases of earlier versions have these tables without a record of it.
const migrations = {
  contents: [
    `create table if not exists contents (
       id integer primary key,
       digest blob not null,
       coding integer not null, -- an index of contentCodings
       bytes blob not null
     ) strict;
     create unique index if not exists contents_by_digest on contents (digest, coding);

     -- Files of blobs that were found to have their digest, and their inode, size and modification time at that moment.
     create table if not exists verified_files (
       digest blob not null,
       coding integer not null,
       stamp text not null,
       primary key (digest, coding)
     ) strict, without rowid;`,
  ],
}

/** Opens the database of small blobs. `create` migrates it, too: only one connection at a time may do so. */
export function openBlobDatabase(dataDir: string, mode: 'read' | 'write' | 'create'): SqliteSql {
  const sql = new SqliteSql({
    file: blobDatabaseFile(dataDir),
    isReadOnly: mode === 'read',
    ...(mode === 'create' && { migrations, isVacuumed: true }),
  })
  if (mode === 'read') return sql
  // Frequent checkpoints keep the log small on a small disk.
  sql.database.pragma('wal_autocheckpoint = 500')
  sql.database.pragma('journal_size_limit = 4194304')
  // Overwrites deleted rows, so that free pages keep no forgotten bytes.
  sql.database.pragma('secure_delete = ON')
  return sql
}
