import { join } from 'node:path'
import Database from 'better-sqlite3'
import { onTestFinished } from 'vitest'
import { databaseName } from '../../src/ledger/database.ts'

/** Makes every insert or update of a send fail, as a failing disk does. Returns what ends the failure. */
export function failSends({ dataDir }: { dataDir: string }, operation: 'insert' | 'update') {
  const database = new Database(join(dataDir, databaseName))
  onTestFinished(() => void database.close())
  database.exec(
    `create trigger failing before ${operation} on sends begin select raise(abort, 'disk fails'); end`,
  )
  return () => database.exec('drop trigger failing')
}
