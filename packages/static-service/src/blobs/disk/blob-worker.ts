import { workerData } from 'node:worker_threads'
import Sqlite, { type Database } from 'better-sqlite3'
import { commitEach, serveCalls, toPlain } from '../../sqlite/worker-commits.ts'
import { openBlobDatabase } from './blob-database.ts'

/** Statements with their values, which succeed or fail together. */
export type BlobCommand = [text: string, ...values: unknown[]][]

// Worker thread that writes to the database of small blobs, so that the event loop does not wait for fsync.

const sql = openBlobDatabase(String(workerData), 'write')

const methods = {
  /** Durable when it resolves. */
  async commit(commands: BlobCommand[]) {
    const outcomes = await commitEach(commands, (some) =>
      sql.transaction(async (transaction) => {
        for (const [text, ...values] of some.flat())
          await transaction.run((rendered) => void Object.assign(rendered, { text, values }))
        return some.map(() => ({ value: undefined }))
      }),
    )
    return outcomes.map((outcome) => ('error' in outcome ? { error: toPlain(outcome.error) } : outcome))
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
