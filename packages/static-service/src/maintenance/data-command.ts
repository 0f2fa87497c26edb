import { runDataCommand } from '@domains-and-files/persistence'
import {
  openFolderSource,
  openFolderTarget,
  openSharedSource,
  openSharedTarget,
} from './archive.ts'

const { DATABASE_URL, DATABASE_URL_FILE, DATA_DIR, USERS_FILE } = process.env
const places = {
  dataDir: DATA_DIR || 'data/static-service',
  usersFile: USERS_FILE || undefined,
}
const isShared = Boolean(DATABASE_URL || DATABASE_URL_FILE)

process.exitCode = await runDataCommand(
  {
    name: 'static-service',
    ...places,
    folders: ['blobs', 'tmp', 'uploads'],
    openSource: isShared ? openSharedSource : () => openFolderSource(places),
    openFolder: openFolderTarget,
    openDatabase: isShared ? openSharedTarget : undefined,
  },
  process.argv.slice(2),
)
