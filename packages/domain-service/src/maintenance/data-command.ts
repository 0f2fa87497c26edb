import { runDataCommand } from '@domains-and-files/persistence'
import { databaseName } from '../ledger/database.ts'

const layout = {
  service: 'domain-service',
  database: databaseName,
  folders: [],
  contents: () => ({ count: 0, bytes: 0, each: [] }),
}

const dataDir = process.env.DATA_DIR || 'data/domain-service'
process.exitCode = await runDataCommand(layout, process.argv.slice(2), {
  dataDir,
  usersFile: process.env.USERS_FILE || undefined,
})
