import { type CommandLine, runDataCommand } from '@domains-and-files/persistence'
import {
  openFolderSource,
  openFolderTarget,
  openSharedSource,
  openSharedTarget,
} from './archive.ts'

/** Runs the command with these arguments, and returns its exit status. */
export const manageData = (args: string[], line: CommandLine): Promise<number> =>
  runDataCommand(
    {
      name: 'static-service',
      folders: ['blobs', 'tmp', 'uploads'],
      ...{ openFolderSource, openFolder: openFolderTarget },
      ...{ openDatabaseSource: openSharedSource, openDatabase: openSharedTarget },
    },
    args,
    line,
  )

if (import.meta.main) process.exitCode = await manageData(process.argv.slice(2), process)
