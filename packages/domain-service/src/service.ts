import { openAuth } from '@domains-and-files/auth'
import { webhookMigrations } from '@domains-and-files/events'
import { type App, type Clock, createMetrics, type Logger, systemClock } from '@domains-and-files/http'
import { buildApp } from './app.ts'
import type { Config } from './config.ts'
import { hourMs, pruneHistory } from './ledger/history-pruning.ts'
import { createCallHistogram } from './metrics.ts'
import { openEmbeddedStorage, openRegistry, type Registry, type Storage, type Surroundings } from './storage.ts'

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
    const registry = await openRegistry(storage, auth, {
      ...surroundings,
      calls: createCallHistogram(surroundings.metrics),
    })
    const app = await buildApp({ ...surroundings, ...registry, auth, outbox: storage.database })
    runTasks(app, registry, surroundings)
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

function runTasks(
  app: App,
  { storage, registrar, domains, zones, sweep }: Registry,
  { config, log, clock }: Surroundings,
) {
  const pruning = pruneHistory({ sql: storage.database, clock, log, days: config.historyDays })
  app.addHook('onReady', () =>
    storage.startTasks(async () => {
      await zones.start()
      await pruning.start(hourMs)
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
