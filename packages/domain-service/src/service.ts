import { openAuth } from '@domains-and-files/auth'
import { type App, createMetrics, type Logger } from '@domains-and-files/http'
import { openDataDir } from '@domains-and-files/persistence'
import { buildApp } from './app.ts'
import { type Clock, systemClock } from './clock.ts'
import type { Config } from './config.ts'
import { DomainList } from './domain-list/domain-list.ts'
import { SqliteListStore } from './domain-list/sqlite-list-store.ts'
import { CallStore } from './ledger/call-store.ts'
import { openCounter, openDatabase } from './ledger/database.ts'
import { HistoryPruning } from './ledger/history-pruning.ts'
import { LocalCallQuota } from './ledger/local-call-quota.ts'
import { SqliteChallengeStore } from './ledger/sqlite/sqlite-challenge-store.ts'
import { SqliteLedger } from './ledger/sqlite/sqlite-ledger.ts'
import { createCallHistogram } from './metrics.ts'
import { CircuitBreaker } from './registrar/circuit-breaker.ts'
import { RegistrarClient } from './registrar/client.ts'
import { LocalWriteQueue } from './zones/local-write-queue.ts'
import type { WriteQueueOptions } from './zones/write-queue.ts'
import { ZoneWriter } from './zones/zone-writer.ts'

/**
 * Constructs all dependencies, and the app that closes them in order when it is closed.
 * @throws {DataDirError} when another process uses DATA_DIR, {StartRefusedError} when nobody could log in.
 */
export async function createService(
  config: Config,
  log: Logger,
  clock: Clock = systemClock,
): Promise<App> {
  const { dataDir } = config
  const unlock = await openDataDir(dataDir)
  try {
    const auth = await openAuth(config, { audience: 'domain-service', log })
    const database = openDatabase(dataDir)
    const counter = openCounter(dataDir)
    const metrics = createMetrics()
    const store = new CallStore(counter, (error) =>
      log.error({ err: error }, 'registrar calls not stored; counting in memory'),
    )
    const registrar = new RegistrarClient({
      account: config.account,
      timeoutMs: config.timeout,
      quota: new LocalCallQuota({ limits: config.limits, store, clock }),
      breaker: new CircuitBreaker({ now: clock.now }),
      clock,
      log,
      calls: createCallHistogram(metrics),
    })
    const domains = await DomainList.open({
      registrar,
      store: new SqliteListStore(counter, `${config.account.url} ${config.account.userName}`),
      ttlMs: config.domainsTtlMs,
      clock,
      log,
    })
    const ledger = new SqliteLedger(database, clock.now)
    const { cacheTtl: cacheTtlMs, timeout: timeoutMs, verify, historyDays } = config
    const openQueue = (options: WriteQueueOptions) => new LocalWriteQueue(options)
    const zones = new ZoneWriter({
      registrar,
      ledger,
      clock,
      cacheTtlMs,
      timeoutMs,
      verify,
      log,
      openQueue,
    })
    const pruning = new HistoryPruning({ ledger, clock, log, days: historyDays })
    const challenges = new SqliteChallengeStore(database)
    const parts = {
      config,
      auth,
      registrar,
      domains,
      ledger,
      challenges,
      zones,
      clock,
      metrics,
      log,
    }
    const app = await buildApp(parts)
    app.addHook('onReady', async () => {
      await zones.start()
      await pruning.start()
    })
    app.addHook('onClose', async () => {
      domains.close()
      pruning.close()
      await zones.settle()
      await registrar.close()
      counter.close()
      database.close()
      unlock()
    })
    return app
  } catch (error) {
    unlock()
    throw error
  }
}
