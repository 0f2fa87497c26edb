import Sqlite, { type Database } from 'better-sqlite3'
import { codeOf } from '../../sqlite/worker-rpc.ts'
import { type ContentCoding, contentCodings } from '../blob-path.ts'
import type { VerifiedContent } from '../integrity.ts'
import { openBlobDatabase } from './blob-database.ts'

export type BlobCommand =
  /** Replaces other bytes, which are damage. */
  | { kind: 'store'; digest: string; coding: ContentCoding; bytes: Uint8Array }
  /** One coding, or all. */
  | { kind: 'remove'; digest: string; coding: ContentCoding | undefined }
  /** Remembers the stamp of a file that has the digest of its blob. */
  | ({ kind: 'verified' } & VerifiedContent)

/** Of a removal, whether what was to be removed was there: that coding, or the blob itself. */
export type BlobOutcome = { value: boolean } | { error: unknown }

/** Writes to the database of small blobs, which exists. Each method blocks its thread. */
export function openBlobWriter(file: string) {
  const sql = openBlobDatabase({ file })
  const apply = prepare(sql.database)

  const commitWhole = (commands: BlobCommand[]): Promise<BlobOutcome[]> =>
    sql.transaction(async () => commands.map((each) => ({ value: apply(each) })))

  return {
    /**
     * Durable when it resolves. If the group fails, each command is tried alone: on a full disk, removals still work where
     * stores do not. Rejects while another process holds the lock, or after it took the files away: each would wait as long.
     */
    async commit(commands: BlobCommand[]): Promise<BlobOutcome[]> {
      try {
        return await commitWhole(commands)
      } catch (error) {
        if (/^(?:SQLITE_BUSY|DATABASE_UNAVAILABLE$)/.test(String(codeOf(error)))) throw error
        if (commands.length === 1) return [{ error }]
      }
      const outcomes: BlobOutcome[] = []
      for (const each of commands)
        outcomes.push(...(await commitWhole([each]).catch((error) => [{ error }])))
      return outcomes
    },

    /**
     * Gives up to so many pages of deleted rows back to the file system, and the room of the write-ahead logs of this and of
     * other databases. Waits for no reader: what one still needs is given back by the next call. Returns whether the log of
     * this database is empty.
     */
    reclaim({ pages, others }: { pages: number; others: string[] }): boolean {
      let isEmpty = false
      try {
        if (pages > 0) sql.database.pragma(`incremental_vacuum(${pages})`) // Zero would mean all.
      } finally {
        isEmpty = truncateLog(sql.database)
        for (const file of others) {
          const other = new Sqlite(file, { timeout: 0 })
          truncateLog(other)
          other.close()
        }
      }
      return isEmpty
    },

    close: () => sql.close(),
  }
}

const truncateLog = (database: Database) =>
  database.pragma('wal_checkpoint(TRUNCATE)', { simple: true }) === 0

function prepare(db: Database): (command: BlobCommand) => boolean {
  const store = db.prepare<[Buffer, number, Uint8Array]>(
    `insert into contents (digest, coding, bytes) values (?, ?, ?)
     on conflict do update set bytes = excluded.bytes where bytes <> excluded.bytes`,
  )
  const removeOne = db.prepare<[Buffer, number]>(
    'delete from contents where digest = ? and coding = ?',
  )
  const removeAll = db
    .prepare<[Buffer], number>('delete from contents where digest = ? returning coding')
    .pluck()
  const forgetVerified = db.prepare<[Buffer]>('delete from verified_files where digest = ?')
  const recordVerified = db.prepare<[Buffer, number, string]>(
    'insert or replace into verified_files values (?, ?, ?)',
  )
  return (command) => {
    const digest = Buffer.from(command.digest, 'hex')
    if (command.kind === 'remove' && command.coding === undefined) {
      forgetVerified.run(digest)
      return removeAll.all(digest).includes(0)
    }
    const coding = contentCodings.indexOf(command.coding ?? 'identity')
    if (command.kind === 'remove') return removeOne.run(digest, coding).changes > 0
    if (command.kind === 'verified') recordVerified.run(digest, coding, command.stamp)
    else store.run(digest, coding, command.bytes)
    return true
  }
}
