import { openAuth } from '@domains-and-files/auth'
import { webhookMigrations } from '@domains-and-files/events'
import { type App, createMetrics, type Logger, type Metrics } from '@domains-and-files/http'
import { DatabaseRefusedError, DatabaseUnavailableError } from '@domains-and-files/persistence'
import { buildApp } from './app.ts'
import { type Clock, systemClock } from './clock.ts'
import type { Config } from './config.ts'
import { DomainList } from './domain-list/domain-list.ts'
import { HistoryPruning } from './ledger/history-pruning.ts'
import { recordRegistrarEvent } from './ledger/registrar-events.ts'
import { createCallHistogram } from './metrics.ts'
import { RegistrarClient } from './registrar/client.ts'
import { openEmbeddedStorage } from './storage.ts'
import { ZoneSweep } from './zones/zone-sweep.ts'
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
  try {
    return await compose(config, log, clock)
  } catch (error) {
    if (error instanceof DatabaseUnavailableError)
      throw new DatabaseRefusedError('The database in DATABASE_URL was lost during the start.')
    throw error
  }
}

// PostgreSQL's modules are loaded only where they are used: the embedded form starts without them.
async function openStorage(
  config: Config,
  { log, clock, metrics }: { log: Logger; clock: Clock; metrics: Metrics | undefined },
) {
  if (!config.database)
    return { postgres: undefined, storage: await openEmbeddedStorage(config, log, clock) }
  const { openPostgres, openPostgresStorage } = await import('./postgres-storage.ts')
  const postgres = await openPostgres(config.database, log)
  return { postgres, storage: await openPostgresStorage(postgres, { config, log, clock, metrics }) }
}

async function compose(config: Config, log: Logger, clock: Clock): Promise<App> {
  const metrics = await createMetrics(config.metricsToken)
  const { postgres, storage } = await openStorage(config, { log, clock, metrics })
  try {
    const auth = await openAuth(config, {
      ...{ audience: 'domain-service', log, database: postgres },
      migrations: webhookMigrations,
    })
    const { account, timeout: timeoutMs, cacheTtl: cacheTtlMs, verify, historyDays } = config
    const { ledger, challenges, givenZones, quota } = storage
    const calls = createCallHistogram(metrics)
    const onFailing = (isFailing: boolean) => {
      recordRegistrarEvent(storage.database, { registrar: account.registrar, isFailing }).catch(
        (error) => log.warn({ err: error }, 'event of the registrar not recorded'),
      )
    }
    const registrar = new RegistrarClient({
      ...{ account, timeoutMs, quota, clock, log, calls, onFailing },
    })
    const { domainsTtlMs: ttlMs } = config
    const domains = await DomainList.open({ registrar, ...storage.domainList, ttlMs, clock, log })
    const zones = new ZoneWriter({
      ...storage,
      findCaller: auth.findCaller,
      registrar,
      clock,
      cacheTtlMs,
      timeoutMs,
      verify,
      driftIgnore: config.driftIgnore,
      log,
    })
    const sweep = new ZoneSweep({
      ...{ ledger, registrar, domains, clock, log },
      intervalMs: config.driftIntervalMs,
      isActive: () => storage.isActive(),
    })
    const pruning = new HistoryPruning({ ledger, clock, log, days: historyDays })
    const app = await buildApp({
      config,
      auth,
      registrar,
      domains,
      ledger,
      challenges,
      givenZones,
      outbox: storage.database,
      zones,
      sweep,
      clock,
      metrics,
      log,
    })
    app.addHook('onReady', () =>
      storage.startTasks(async () => {
        await zones.start()
        await pruning.start()
        sweep.start()
      }),
    )
    app.addHook('onClose', async () => {
      domains.close()
      pruning.close()
      sweep.close()
      await zones.settle()
      await registrar.close()
      await storage.close()
    })
    return app
  } catch (error) {
    await storage.close()
    throw error
  }
}
