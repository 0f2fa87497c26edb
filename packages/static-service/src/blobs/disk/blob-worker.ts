import { workerData } from 'node:worker_threads'
import Sqlite, { type Database } from 'better-sqlite3'
import type { ContentCoding } from '../../rfc9110/content-codings.ts'
import { commitEach, serveCalls, toPlain } from '../../sqlite/worker-commits.ts'
import { contentCodings } from '../blob-path.ts'
import type { VerifiedContent } from '../integrity.ts'
import { openBlobDatabase } from './blob-database.ts'

export type BlobCommand =
  /** Replaces differing bytes: they are damaged. */
  | { kind: 'store'; digest: string; coding: ContentCoding; bytes: Uint8Array }
  /** One coding, or all. */
  | { kind: 'remove'; digest: string; coding: ContentCoding | undefined }
  /** Records the stamp of a file that matched its digest. */
  | ({ kind: 'verified' } & VerifiedContent)

// Worker thread that writes to the database of small blobs, so that the event loop does not wait for fsync.

const sql = openBlobDatabase(String(workerData), 'write')
const apply = prepare(sql.database)

const methods = {
  /** Durable when it resolves. A removal returns whether its coding, or the blob itself, was there. */
  async commit(commands: BlobCommand[]) {
    const outcomes = await commitEach<BlobCommand, boolean>(
      commands,
      (some) => sql.transaction(async () => some.map((each) => ({ value: apply(each) }))),
      async (_command, error) => ({ error }),
    )
    for (const outcome of outcomes) if ('error' in outcome) outcome.error = toPlain(outcome.error)
    return outcomes
  },

  /** Does not wait for readers. Returns whether the log of this database is empty. */
  truncateLogs(others: string[]): boolean {
    for (const file of others) {
      const other = new Sqlite(file, { timeout: 0 })
      truncateLog(other)
      other.close()
    }
    return truncateLog(sql.database)
  },
}

export type BlobWorkerMethods = typeof methods

serveCalls(methods, () => sql.close())

const truncateLog = (database: Database) => database.pragma('wal_checkpoint(TRUNCATE)', { simple: true }) === 0

function prepare(db: Database): (command: BlobCommand) => boolean {
  const store = db.prepare<[Buffer, number, Uint8Array]>(
    `insert into contents (digest, coding, bytes) values (?, ?, ?)
     on conflict do update set bytes = excluded.bytes where bytes <> excluded.bytes`,
  )
  const removeOne = db.prepare<[Buffer, number]>('delete from contents where digest = ? and coding = ?')
  const removeAll = db.prepare<[Buffer], number>('delete from contents where digest = ? returning coding').pluck()
  const forgetVerified = db.prepare<[Buffer]>('delete from verified_files where digest = ?')
  const recordVerified = db.prepare<[Buffer, number, string]>('insert or replace into verified_files values (?, ?, ?)')
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
