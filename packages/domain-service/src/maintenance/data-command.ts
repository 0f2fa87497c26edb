import { runDataCommand } from '@domains-and-files/persistence'
import { readStoreConfig } from '../config.ts'
import {
  openDatabaseSource,
  openDatabaseTarget,
  openFolderSource,
  openFolderTarget,
} from './archive.ts'

const { DATABASE_URL, DATABASE_URL_FILE, DATA_DIR, USERS_FILE } = process.env
const places = {
  dataDir: DATA_DIR || 'data/domain-service',
  usersFile: USERS_FILE || undefined,
}
const isInDatabase = Boolean(DATABASE_URL || DATABASE_URL_FILE)

process.exitCode = await runDataCommand(
  {
    name: 'domain-service',
    ...places,
    folders: [],
    openSource: () =>
      isInDatabase ? openDatabaseSource(readDatabase()) : openFolderSource(places),
    openFolder: openFolderTarget,
    openDatabase: isInDatabase ? () => openDatabaseTarget(readDatabase()) : undefined,
  },
  process.argv.slice(2),
)

function readDatabase() {
  const { database } = readStoreConfig(process.env)
  if (!database) throw new Error('DATABASE_URL is not set')
  return database
}
