import { setTimeout as wait } from 'node:timers/promises'
import { openAuth } from '@domains-and-files/auth'
import { type App, createMetrics, type Logger } from '@domains-and-files/http'
import { BackupWatch, openDataDir } from '@domains-and-files/persistence'
import { buildApp } from './app.ts'
import { Compressor } from './blobs/compressor.ts'
import { FolderBlobStore } from './blobs/disk/folder-blob-store.ts'
import type { Catalog } from './catalog/catalog.ts'
import { SqliteCatalog } from './catalog/sqlite/sqlite-catalog.ts'
import type { Config } from './config.ts'
import { sweepOrphans } from './maintenance/orphan-sweep.ts'

/**
 * Makes the parts, and the app that closes them in order when it is closed.
 * @throws {DataDirError} when another process uses DATA_DIR, {StartRefusedError} when nobody could log in.
 */
export async function createService(config: Config, log: Logger): Promise<App> {
  const { dataDir } = config
  const unlock = await openDataDir(dataDir)
  try {
    const auth = await openAuth(config, { audience: 'static-service', log })
    const catalog = await SqliteCatalog.open(dataDir, { quotaBytes: config.quotaBytes })
    const backups = new BackupWatch(dataDir)
    const store = await FolderBlobStore.open(dataDir, {
      isReferenced: (digest) => catalog.isReferenced(digest),
      isBackedUp: () => backups.isRunning,
      onError: (error) => log.error({ err: error }, 'content not removed'),
    })
    catalog.onFree((digests) => store.collect(digests))
    const compressor = new Compressor({ store, log })
    const sweeping = tidy(dataDir, { store, catalog, log })
    const metrics = createMetrics()
    const app = await buildApp({ config, auth, catalog, store, compressor, metrics, log })
    app.addHook('onClose', async () => {
      await compressor.close()
      await sweeping
      await store.close()
      backups[Symbol.dispose]()
      await catalog.close()
      unlock()
    })
    // A store of usual size is tidy before the first request; a huge one is swept while it serves.
    await Promise.race([sweeping, wait(patience, undefined, { ref: false })])
    return app
  } catch (error) {
    unlock()
    throw error
  }
}

const patience = 2000

interface SweepDependencies {
  store: FolderBlobStore
  catalog: Catalog
  log: Logger
}

async function tidy(dataDir: string, { store, catalog, log }: SweepDependencies) {
  try {
    const { orphans, moved, missing } = await sweepOrphans(dataDir, store, catalog)
    if (orphans > 0) log.warn({ orphans }, 'unreferenced contents removed')
    if (moved > 0) log.info({ moved }, 'small contents moved to the content database')
    if (missing.length > 0) {
      const digests = missing.slice(0, 10)
      log.error(
        { missing: missing.length, digests },
        'contents missing: run `npm run files -- check`',
      )
    }
  } catch (error) {
    log.error({ err: error }, 'store not swept')
  }
}
