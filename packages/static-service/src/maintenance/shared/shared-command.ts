import {
  type BackupLayout,
  type DatabaseStore,
  runDataCommand,
} from '@domains-and-files/persistence'
import { GarbageHold } from './garbage-hold.ts'
import { openSharedData } from './shared-data.ts'

/** The commands `backup` and `restore` of what is in PostgreSQL and S3; resolves with the exit status. */
export function runSharedCommand(
  layout: BackupLayout,
  args: string[],
  places: { dataDir: string; usersFile: string | undefined },
): Promise<number> {
  const openStore = async (): Promise<DatabaseStore> => {
    await using opened = new AsyncDisposableStack()
    const data = opened.use(await openSharedData(process.env))
    if (args[0] === 'backup') opened.use(await GarbageHold.take(data.postgres))
    const owned = opened.move()
    return { ...data.store, close: () => owned.disposeAsync() }
  }
  return runDataCommand(layout, args, { ...places, openStore })
}
