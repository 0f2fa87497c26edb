import { authMigrations, exportAuthFiles, importAuthFiles } from '@domains-and-files/auth'
import {
  type DatabaseStore,
  exportTables,
  importTables,
  Postgres,
  SqliteSql,
} from '@domains-and-files/persistence'
import type { Config } from '../config.ts'
import { migrations, schema } from '../ledger/schema.ts'

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
export async function openDatabaseStore(
  settings: NonNullable<Config['database']>,
): Promise<DatabaseStore> {
  const database = await Postgres.open({
    ...settings,
    timeoutMs: batchTimeoutMs,
    schema,
    migrations: { ...authMigrations, ...migrations },
    onError: () => undefined, // A statement that fails is reported by itself.
    isRestore: true,
  })
  return {
    database,
    tables,
    migrateFile,
    exportDatabase: (snapshot, job) => exportTables(snapshot, { schema, tables }, job),
    importDatabase: (job) => importTables(tables, job),
    exportFiles: exportAuthFiles,
    importFiles: importAuthFiles,
  }
}

async function migrateFile(file: string) {
  const sqlite = new SqliteSql({ file, migrations })
  // The file is read where no further file may be created.
  sqlite.database.pragma('journal_mode = delete')
  await sqlite.close()
}
