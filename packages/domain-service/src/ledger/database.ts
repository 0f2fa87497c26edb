import { join } from 'node:path'
import { migrate } from '@domains-and-files/persistence'
import Database from 'better-sqlite3'

export type { Database }

// Each brings the schema from its number to the next; they are only ever appended.
const migrations = [
  `create table changes (
     id integer primary key autoincrement,
     domain text not null,
     at text not null,
     by text not null,
     request_id text not null,
     added text not null,
     removed text not null,
     kept integer not null,
     before text not null,
     after text not null
   ) strict;
   create index changes_of_domain on changes (domain, id desc);
   create table calls (at integer not null) strict;
   create index calls_at on calls (at);`,
  "alter table calls add column priority text not null default 'write'",
  `create table domain_list_passes (
     id integer primary key autoincrement,
     account text not null,
     started_at integer not null,
     completed_at integer,
     total integer
   ) strict;
   create table domain_list_pages (
     pass integer not null,
     page integer not null,
     entries text not null,
     primary key (pass, page)
   ) strict, without rowid;`,
]

export const databaseName = 'domain-service.sqlite'

/**
 * The service's own database in its data folder, which must be there: made and brought up to date where needed, durable
 * at each commit.
 */
export function openDatabase(dataDir: string): Database.Database {
  const db = new Database(join(dataDir, databaseName))
  db.pragma('journal_mode = WAL')
  // WAL would fall back to NORMAL at each reopening, and then a power cut takes the last commits with it.
  db.pragma('synchronous = FULL')
  // What a statement needs for a moment is no file: in a container only the data folder can be written.
  db.pragma('temp_store = MEMORY')
  migrate(db, migrations)
  return db
}

/**
 * A further connection for counting: what it commits survives the process, but perhaps not a power cut. A call that is
 * forgotten then is one too many at most, and waiting for the disk would make every call wait.
 */
export function openCounter(dataDir: string): Database.Database {
  const db = new Database(join(dataDir, databaseName), { fileMustExist: true })
  db.pragma('synchronous = NORMAL')
  db.pragma('temp_store = MEMORY')
  return db
}
