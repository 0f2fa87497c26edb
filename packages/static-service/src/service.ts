import { setTimeout as wait } from 'node:timers/promises'
import { openAuth } from '@domains-and-files/auth'
import { webhookMigrations } from '@domains-and-files/events'
import { type App, createMetrics, type Logger, type Metrics, startService } from '@domains-and-files/http'
import { openDataDir } from '@domains-and-files/persistence'
import { buildApp } from './app.ts'
import { Compressor } from './blobs/compressor.ts'
import { type Config, readConfig } from './config.ts'
import { AccessRules } from './sharing/access-rules.ts'
import { sharingTables } from './sharing/tables.ts'

export const start = () => startService({ name: 'static-service', readConfig, createService })

/**
 * Makes the parts, and the app that closes them in order when it is closed.
 * @throws {DataDirError} when another process uses DATA_DIR, {StartRefusedError} when nobody could log in.
 */
export async function createService(config: Config, log: Logger): Promise<App> {
  await using opened = new AsyncDisposableStack()
  opened.defer(await openDataDir(config.dataDir))
  const metrics = await createMetrics(config.metricsToken)
  const storage = await openStorage(config, log, metrics)
  opened.defer(() => storage.close())
  const { catalog, store, uploads, database, tidied } = storage
  const auth = await openAuth(config, {
    audience: 'static-service',
    log,
    database,
    migrations: { sharing: sharingTables, ...webhookMigrations },
  })
  const rules = await AccessRules.open(auth.database, {
    isPublicByDefault: config.staticDefaultAccess === 'public',
    isExclusive: catalog.isExclusive,
  })
  catalog.checkRules?.((version) => rules.catchUp(version))
  catalog.background.start(catalog.isExclusive)
  const compressor = new Compressor({ store, log })
  opened.defer(() => compressor.close())
  const app = await buildApp({ config, auth, catalog, store, uploads, compressor, rules, metrics, log })
  // Last opened, first closed. If anything above throws, it is closed at once.
  const owned = opened.move()
  app.addHook('onClose', () => owned.disposeAsync())
  // A store of usual size is tidy before the first request; a huge one is swept while it serves.
  await Promise.race([tidied, wait(maxTidyMs, undefined, { ref: false })])
  return app
}

const maxTidyMs = 2000

// SQLite and a folder, or PostgreSQL and S3. Each is loaded only when it is used.
async function openStorage(config: Config, log: Logger, metrics: Metrics | undefined) {
  const { database, s3 } = config
  if (database && s3) {
    const { openSharedStorage } = await import('./shared-storage.ts')
    return openSharedStorage({ ...config, database, s3 }, log, metrics)
  }
  const { openEmbeddedStorage } = await import('./embedded-storage.ts')
  return openEmbeddedStorage(config, log)
}
