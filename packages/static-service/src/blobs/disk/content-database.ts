import { join } from 'node:path'
import { type Database, openWriter } from '../../sqlite/connection.ts'
import { type ContentCoding, contentCodings } from '../blob-path.ts'

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
export const openContentDatabase = (file: string): Database => openWriter(file, migrations)

/** Stores bytes under a digest and a coding, unless they are there already; replaces other bytes, which are damage. */
export function prepareStore(db: Database) {
  const store = db.prepare<[Buffer, number, Uint8Array]>(
    `insert into contents (digest, coding, bytes) values (?, ?, ?)
     on conflict do update set bytes = excluded.bytes where bytes <> excluded.bytes`,
  )
  return (digest: string, coding: ContentCoding, bytes: Uint8Array) =>
    store.run(Buffer.from(digest, 'hex'), contentCodings.indexOf(coding), bytes)
}

/** Removes one coding of a content, or all; returns whether the content itself, or that coding, was there. */
export function prepareRemove(db: Database) {
  const one = db.prepare<[Buffer, number]>('delete from contents where digest = ? and coding = ?')
  const all = db
    .prepare<[Buffer], number>('delete from contents where digest = ? returning coding')
    .pluck()
  const forget = db.prepare<[Buffer]>('delete from verified_files where digest = ?')
  return (hex: string, coding?: ContentCoding): boolean => {
    const digest = Buffer.from(hex, 'hex')
    if (coding === undefined) {
      forget.run(digest)
      return all.all(digest).includes(0)
    }
    return one.run(digest, contentCodings.indexOf(coding)).changes > 0
  }
}

/** Remembers the stamp of a content file that has its digest. */
export function prepareRecordVerified(db: Database) {
  const record = db.prepare<[Buffer, number, string]>(
    'insert or replace into verified_files values (?, ?, ?)',
  )
  return ({ digest, coding, stamp }: { digest: string; coding: ContentCoding; stamp: string }) =>
    record.run(Buffer.from(digest, 'hex'), contentCodings.indexOf(coding), stamp)
}

/** The digests that begin with two hex digits. */
export function prepareDigests(db: Database) {
  const select = db
    .prepare<[Buffer, Buffer], string>(
      'select distinct lower(hex(digest)) from contents where digest between ? and ?',
    )
    .pluck()
  return (prefix: string): string[] =>
    select.all(
      Buffer.from(prefix.padEnd(64, '0'), 'hex'),
      Buffer.from(prefix.padEnd(64, 'f'), 'hex'),
    )
}

/** The first two hex digits of all digests. */
export const digestPrefixes = (db: Database): string[] =>
  db
    .prepare<[], string>('select distinct lower(hex(substr(digest, 1, 1))) from contents')
    .pluck()
    .all()

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
