import { runDataCommand } from '@domains-and-files/persistence'
import { databaseName } from '../ledger/schema.ts'

const layout = {
  service: 'domain-service',
  database: databaseName,
  folders: [],
  contents: () => ({ count: 0, bytes: 0, each: [] }),
}

const { DATABASE_URL, DATABASE_URL_FILE, DATA_DIR, USERS_FILE } = process.env

process.exitCode = await runDataCommand(layout, process.argv.slice(2), {
  dataDir: DATA_DIR || 'data/domain-service',
  usersFile: USERS_FILE || undefined,
  openStore: DATABASE_URL || DATABASE_URL_FILE ? openStore : undefined,
})

async function openStore() {
  const { readStoreConfig } = await import('../config.ts')
  const { openDatabaseStore } = await import('./database-store.ts')
  const { database } = readStoreConfig(process.env)
  if (!database) throw new Error('DATABASE_URL is not set')
  return openDatabaseStore(database)
}
