import { StartRefused } from '@house/auth'
import Sqlite from 'better-sqlite3'

/**
 * Takes a data folder for this process alone, until the function that it returns is called or the process ends,
 * however it ends: who holds which content is known within one process only.
 * @throws {StartRefused} when another process has it.
 */
export function lockFolder(dataDir: string): () => void {
  // Node cannot lock files; SQLite can, and the system frees its locks with the process.
  const db = new Sqlite(`${dataDir}/lock`, { timeout: 3000 })
  try {
    db.pragma('journal_mode = memory')
    db.exec('begin exclusive')
  } catch (error) {
    db.close()
    if (error instanceof Sqlite.SqliteError && error.code === 'SQLITE_BUSY') {
      throw new StartRefused(`Another process is using ${dataDir}: stop it first.`)
    }
    throw error
  }
  return () => db.close()
}
