import { type Auth, openAuth } from '@domains-and-files/auth'
import { webhookMigrations } from '@domains-and-files/events'
import { type App, type Clock, createMetrics, type Logger, systemClock } from '@domains-and-files/http'
import { buildApp } from './app.ts'
import type { Config } from './config.ts'
import { DomainList } from './domain-list/domain-list.ts'
import { hourMs, pruneHistory } from './ledger/history-pruning.ts'
import { recordRegistrarEvent } from './ledger/stored-change.ts'
import { createCallHistogram } from './metrics.ts'
import { RegistrarClient, ResponseCache } from './registrar/client.ts'
import type { DomainInfo, Nameservers } from './registrar/responses.ts'
import { openEmbeddedStorage, openStores, type Storage, type Surroundings } from './storage.ts'
import { ZoneSweep } from './zones/zone-watch.ts'
import { ZoneWriter } from './zones/zone-writer.ts'

/**
 * Constructs all dependencies, and the app that closes them in order when it is closed.
 * @throws {DataDirError} when another process uses DATA_DIR, {StartRefusedError} when nobody could log in.
 */
export async function createService(config: Config, log: Logger, clock: Clock = systemClock): Promise<App> {
  const surroundings = { config, log, clock, metrics: await createMetrics(config.metricsToken) }
  const storage = await openStorage(surroundings)
  try {
    const auth = await openAuth(config, {
      audience: 'domain-service',
      log,
      database: storage.postgres,
      migrations: webhookMigrations,
    })
    const owned = await openRegistry(storage, auth, surroundings)
    const app = await buildApp({ ...surroundings, ...owned, auth, outbox: storage.database })
    runTasks(app, owned, surroundings)
    return app
  } catch (error) {
    await storage.close()
    throw error
  }
}

// PostgreSQL's modules are loaded only where they are used: the embedded form starts without them.
async function openStorage(surroundings: Surroundings): Promise<Storage> {
  const { database } = surroundings.config
  if (!database) return openEmbeddedStorage(surroundings)
  const { openPostgresStorage } = await import('./postgres-storage.ts')
  return openPostgresStorage(database, surroundings)
}

/** The stores, and the registrar client with the domain list and the zones on top of it. */
async function openRegistry(storage: Storage, { findCaller }: Auth, surroundings: Surroundings) {
  const { config, log, clock, metrics } = surroundings
  const { account, registrarTimeoutMs: timeoutMs, domainsTtlMs: ttlMs } = config
  const intervalMs = config.driftIntervalS * 1_000
  const stores = await openStores(storage, surroundings)
  const { ledger, quota, domainList: store } = stores
  const { isActive, replicas } = storage
  const onFailing = (isFailing: boolean) => {
    recordRegistrarEvent(storage.database, { registrar: account.registrar, isFailing }).catch((error) =>
      log.warn({ err: error }, 'event of the registrar not recorded'),
    )
  }
  const calls = createCallHistogram(metrics)
  const registrar = new RegistrarClient({ account, timeoutMs, quota, clock, log, calls, onFailing })
  const domains = await DomainList.open({ registrar, store, leases: replicas?.leases, ttlMs, clock, log })
  const zones = new ZoneWriter({
    ...{ ...config, timeoutMs, verify: config.verifyWrites },
    ...{ ledger, replicas, isActive, findCaller, registrar, clock, log },
  })
  const caching = registrar.cacheOptions(config.cacheTtlMs)
  const infos = new ResponseCache<DomainInfo>(caching)
  const nameservers = new ResponseCache<Nameservers>(caching)
  const sweep = new ZoneSweep({ ledger, registrar, domains, intervalMs, isActive, clock, log })
  return { ...stores, storage, registrar, domains, infos, nameservers, zones, sweep }
}

type Owned = Awaited<ReturnType<typeof openRegistry>>

function runTasks(
  app: App,
  { storage, ledger, registrar, domains, zones, sweep }: Owned,
  { config, log, clock }: Surroundings,
) {
  const pruning = pruneHistory({ ledger, clock, log, days: config.historyDays })
  app.addHook('onReady', () =>
    storage.startTasks(async () => {
      await zones.start()
      await pruning.start(hourMs)
      sweep.start()
    }),
  )
  app.addHook('onClose', async () => {
    domains.close()
    sweep.close()
    await Promise.all([pruning.close(), zones.settle()])
    await registrar.close()
    await storage.close()
  })
}
