import type { Database } from '../../sqlite/connection.ts'
import { type ContentCoding, contentCodings } from '../blob-path.ts'

// Statements of the content database, for worker threads too.

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
