import { dirname } from 'node:path'
import { authMigrations, exportAuthFiles, importAuthFiles } from '@domains-and-files/auth'
import {
  type DatabaseStore,
  exportTables,
  type ImportJob,
  importTables,
  Postgres,
} from '@domains-and-files/persistence'
import type { Config } from '../config.ts'
import { openDatabase } from '../ledger/database.ts'
import { migrations, schema } from '../ledger/postgres/migrations.ts'

/** Parents first. Leases, the shared budget and what replicas know of each other are not backed up. */
const tables = [
  'zones',
  'sends',
  'changes',
  'acme_challenges',
  'domain_list_passes',
  'domain_list_pages',
  'calls',
]

/** Milliseconds for one batch of rows. */
const batchTimeoutMs = 60_000

/** What the service stores in PostgreSQL, for its backup. @throws {DatabaseRefusedError} when it cannot be used. */
export async function openDatabaseStore({
  database: settings,
  account,
}: Pick<Config, 'account'> & {
  database: NonNullable<Config['database']>
}): Promise<DatabaseStore> {
  const database = await Postgres.open({
    ...settings,
    timeoutMs: batchTimeoutMs,
    schema,
    migrations: { ...authMigrations, ledger: migrations },
    onError: () => undefined, // A statement that fails is reported by itself.
    isRestore: true,
  })
  const accountName = `${account.url} ${account.userName}`
  return {
    database,
    tables,
    migrateFile,
    exportDatabase: (snapshot, job) => exportTables(snapshot, { schema, tables }, job),
    importDatabase: (job) => importDatabase(job, accountName),
    exportFiles: exportAuthFiles,
    importFiles: importAuthFiles,
  }
}

function migrateFile(file: string) {
  const database = openDatabase(dirname(file))
  // The file is read where no further file may be created.
  database.pragma('journal_mode = delete')
  database.close()
}

// SQLite counts the calls of one account only, so its rows do not name it.
async function importDatabase(job: ImportJob, accountName: string) {
  await importTables(tables, job)
  await job.database.query(`update ${schema}.calls set account = $1 where account = ''`, [
    accountName,
  ])
}
