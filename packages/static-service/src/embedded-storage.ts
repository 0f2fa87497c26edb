import { globSync } from 'node:fs'
import type { Logger } from '@domains-and-files/http'
import { BackupWatch, type BlobRef, DataDirError, SqliteSql } from '@domains-and-files/persistence'
import { digestPrefixes } from './blobs/blob-store.ts'
import { FolderBlobStore } from './blobs/disk/folder-blob-store.ts'
import { blobDatabaseFile, blobDatabaseName } from './blobs/disk/small-blobs.ts'
import type { Catalog } from './catalog/catalog.ts'
import { databaseFile, hasCatalog, openSqliteCatalog } from './catalog/sqlite/sqlite-catalog.ts'
import type { Config } from './config.ts'
import { warmPageCache } from './sqlite/warm-page-cache.ts'
import { Uploads, uploadMigrations } from './uploads/uploads.ts'

/** Catalog and contents below DATA_DIR, for one process. @throws {DataDirError} for contents without their catalog. */
export async function openEmbeddedStorage(config: Config, log: Logger) {
  const { dataDir, uploadLifetimeMs: lifetimeMs } = config
  // With an empty catalog all of them would be removed. The first start makes the catalog first.
  if (!hasCatalog(dataDir) && globSync([blobDatabaseName, 'blobs/*'], { cwd: dataDir }).length > 0)
    throw new DataDirError(
      `There is no catalog in ${databaseFile(dataDir)}, but there are contents: put it back, or empty the folder and restore a backup.`,
    )
  const catalog = await openSqliteCatalog(dataDir, config.catalog)
  const backups = new BackupWatch(dataDir)
  const uploadFile = `${dataDir}/uploads.sqlite`
  const uploadDatabase = new SqliteSql({ file: uploadFile, migrations: uploadMigrations })
  const store = await FolderBlobStore.open(dataDir, {
    isReferenced: (digest) => catalog.isReferenced(digest),
    pastBytes: () => catalog.status().totals?.pastSize ?? 0,
    dropPast: async (need, minSize) => (await catalog.writes.prune({ need, minSize })).rows,
    isBackedUp: () => backups.isRunning,
    // Not the log of uploads after a failed flush: a checkpoint does not verify its checksums.
    otherDatabases: () => [...(uploadDatabase.isIntact ? [uploadFile] : []), databaseFile(dataDir)],
    onError: (error) => log.error({ err: error }, 'content not removed'),
  })
  catalog.onFree = (digests) => store.collect(digests)
  const uploads = new Uploads(
    // Its log is flushed only for commits that a response depends on.
    { database: uploadDatabase.unsynced, log: uploadDatabase, lifetimeMs, store },
    (error) => log.error({ err: error }, 'expired uploads not removed'),
  )
  await store.discardOthers(await uploads.restart())
  const tidied = tidy(store, catalog, log)
  const closing = new AbortController()
  const opened = new AsyncDisposableStack()
  const warmed = warmPageCache([databaseFile(dataDir), blobDatabaseFile(dataDir)], opened, closing)
  return {
    catalog,
    store,
    uploads,
    /** Of users and tokens, too; undefined: they are in files. */
    database: undefined,
    /** Resolves when what an earlier process left behind is tidied up. */
    tidied,
    close: async () => {
      closing.abort()
      await warmed
      await tidied
      await uploads.close()
      await uploadDatabase.close()
      await catalog.background.close() // The store removes what it has freed.
      await store.close()
      backups[Symbol.dispose]()
      await catalog.close()
      await opened.disposeAsync()
    },
  }
}

async function tidy(store: FolderBlobStore, catalog: Catalog, log: Logger) {
  try {
    const { orphans, missing } = await sweepOrphans(store, catalog)
    if (orphans > 0) log.warn({ orphans }, 'unreferenced contents removed')
    store.missing = missing
    if (missing.length > 0) {
      const digests = missing.slice(0, 10).map(({ digest }) => digest)
      log.error({ missing: missing.length, digests }, 'contents missing: run `npm run files -- check`')
    }
  } catch (error) {
    log.error({ err: error }, 'store not swept')
  }
}

/**
 * Compares stored blobs with the catalog by name and size, without reading them. Has the store collect unreferenced
 * blobs, and reports missing ones. Safe while the service runs, and safe to interrupt: the next start continues.
 */
export async function sweepOrphans(store: FolderBlobStore, catalog: Catalog) {
  let missing: BlobRef[] = []
  let count = 0
  for (const prefix of digestPrefixes((await catalog.totals()).totalFiles)) {
    const known = await catalog.reads.contents(prefix)
    const referenced = new Set(known.map(({ digest }) => digest))
    const orphans = (await store.digests(prefix)).filter((digest) => !referenced.has(digest))
    if (orphans.length > 0) await store.erase(orphans)
    count += orphans.length
    missing = missing.concat(await store.findMissing(known)) // They may be too many for one call of push.
  }
  await store.settle()
  return { orphans: count, missing }
}
