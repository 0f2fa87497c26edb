import { runDataCommand } from '@domains-and-files/persistence'
import {
  openFolderSource,
  openFolderTarget,
  openSharedSource,
  openSharedTarget,
} from './archive.ts'

process.exitCode = await runDataCommand(
  {
    name: 'static-service',
    folders: ['blobs', 'tmp', 'uploads'],
    ...{ openFolderSource, openFolder: openFolderTarget },
    ...{ openDatabaseSource: openSharedSource, openDatabase: openSharedTarget },
  },
  process.argv.slice(2),
)
