import { workerData } from 'node:worker_threads'
import Sqlite, { type Database } from 'better-sqlite3'
import { commitEach, serveCalls, toPlain } from '../../sqlite/worker-commits.ts'
import { type BlobWorkerMethods, openBlobDatabase } from './small-blobs.ts'

// Worker thread that writes to the database of small blobs, so that the event loop does not wait for fsync.

const sql = openBlobDatabase(String(workerData), 'write')

const methods: BlobWorkerMethods = {
  async commit(commands) {
    const outcomes = await commitEach(commands, (some) =>
      sql.transaction(async (transaction) => {
        for (const [text, ...values] of some.flat())
          await transaction.run((rendered) => void Object.assign(rendered, { text, values }))
        return some.map(() => ({ value: undefined }))
      }),
    )
    return outcomes.map((outcome) => ('error' in outcome ? { error: toPlain(outcome.error) } : outcome))
  },

  truncateLogs(others) {
    for (const file of others) {
      const other = new Sqlite(file, { timeout: 0 })
      truncateLog(other)
      other.close()
    }
    return truncateLog(sql.database)
  },
}

serveCalls(methods, () => sql.close())

const truncateLog = (database: Database) => database.pragma('wal_checkpoint(TRUNCATE)', { simple: true }) === 0
