import type { Logger } from '@domains-and-files/http'
import { openDataDir } from '@domains-and-files/persistence'
import { CallStore, LocalCallQuota } from './budget/local-call-quota.ts'
import type { Clock } from './clock.ts'
import type { Config } from './config.ts'
import { SqliteListStore } from './domain-list/sqlite-list-store.ts'
import { openCounter, openDatabase } from './ledger/database.ts'
import { SqliteChallengeStore } from './ledger/sqlite/sqlite-challenge-store.ts'
import { SqliteLedger } from './ledger/sqlite/sqlite-ledger.ts'
import type { Storage } from './storage.ts'
import { openLocalQueue } from './zones/write-queue.ts'

/**
 * SQLite in DATA_DIR, for one process.
 * @throws {DataDirError} when another process uses DATA_DIR.
 */
export async function openEmbeddedStorage(
  { dataDir, limits, account }: Config,
  log: Logger,
  clock: Clock,
): Promise<Storage> {
  const unlock = await openDataDir(dataDir)
  try {
    const database = openDatabase(dataDir)
    const counter = openCounter(dataDir)
    const calls = new CallStore(counter, (error) =>
      log.error({ err: error }, 'registrar calls not stored; counting in memory'),
    )
    return {
      ledger: new SqliteLedger(database, clock.now),
      challenges: new SqliteChallengeStore(database),
      quota: new LocalCallQuota({ limits, store: calls, clock }),
      domainList: { store: new SqliteListStore(counter, `${account.url} ${account.userName}`) },
      openQueue: openLocalQueue,
      isActive: () => true,
      startTasks: (run) => run(),
      close: async () => {
        counter.close()
        database.close()
        unlock()
      },
    }
  } catch (error) {
    unlock()
    throw error
  }
}
