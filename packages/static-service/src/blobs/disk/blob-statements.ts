import { type Database, openWriter } from '../../sqlite/connection.ts'
import { type ContentCoding, contentCodings } from '../blob-path.ts'

// Statements of the database of small blobs, for worker threads too.

/**
 * Gives up to so many pages of deleted rows back to the file system, and the room of the write-ahead logs of this and of
 * other databases. Waits for no reader: what one still needs is given back by the next call.
 */
export function reclaim(db: Database, { pages, others }: { pages: number; others: string[] }) {
  try {
    if (pages > 0) db.pragma(`incremental_vacuum(${pages})`) // Zero would mean all.
  } finally {
    truncateLog(db)
    for (const file of others) {
      const other = openWriter(file)
      truncateLog(other)
      other.close()
    }
  }
}

function truncateLog(db: Database) {
  const timeout = db.pragma('busy_timeout', { simple: true })
  db.pragma('busy_timeout = 0')
  db.pragma('wal_checkpoint(TRUNCATE)')
  db.pragma(`busy_timeout = ${timeout}`)
}

/** Stores bytes under a digest and a coding, unless they are there already; replaces other bytes, which are damage. */
export function prepareStore(db: Database) {
  const store = db.prepare<[Buffer, number, Uint8Array]>(
    `insert into contents (digest, coding, bytes) values (?, ?, ?)
     on conflict do update set bytes = excluded.bytes where bytes <> excluded.bytes`,
  )
  return (digest: string, coding: ContentCoding, bytes: Uint8Array) =>
    store.run(Buffer.from(digest, 'hex'), contentCodings.indexOf(coding), bytes)
}

/** Removes one coding of a blob, or all; returns whether the blob itself, or that coding, was there. */
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

/** Remembers the stamp of a file that has the digest of its blob. */
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
