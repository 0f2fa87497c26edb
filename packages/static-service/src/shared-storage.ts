import { authMigrations } from '@domains-and-files/auth'
import { type Logger, registerDatabaseMetrics } from '@domains-and-files/http'
import { Postgres } from '@domains-and-files/persistence'
import { Bucket } from './blobs/s3/bucket.ts'
import { contentMigrations } from './blobs/s3/migrations.ts'
import { registerS3Metrics, S3BlobStore } from './blobs/s3/s3-blob-store.ts'
import { catalogMigrations, schemaName } from './catalog/migrations.ts'
import { openPostgresCatalog } from './catalog/postgres/postgres-catalog.ts'
import type { Config } from './config.ts'
import { growYoungGeneration } from './memory.ts'
import type { S3Config } from './s3-settings.ts'
import { sharingTables } from './sharing/tables.ts'
import type { Storage } from './storage.ts'

interface SharedConfig extends Pick<Config, 'dataDir' | 'quotaBytes' | 'history'> {
  database: NonNullable<Config['database']>
  s3: S3Config
}

/** Catalog in PostgreSQL and contents in S3, for any number of processes. */
export async function openSharedStorage(
  { database, s3, dataDir, quotaBytes, history }: SharedConfig,
  log: Logger,
): Promise<Storage> {
  const memory = growYoungGeneration()
  const postgres = await Postgres.open({
    ...database,
    schema: schemaName,
    migrations: {
      ...authMigrations,
      catalog: catalogMigrations,
      contents: contentMigrations,
      sharing: sharingTables,
    },
    onError: (error) => log.warn({ err: error }, 'database not available'),
  })
  const bucket = await Bucket.open(s3)
  const store = await S3BlobStore.open({
    ...s3,
    postgres,
    bucket,
    dataDir,
    onError: (error) => log.warn({ err: error }, 'object storage call failed, trying again later'),
  })
  const catalog = await openPostgresCatalog(postgres, {
    ...{ quotaBytes, history },
    contents: store.commits,
  })
  return {
    catalog,
    store,
    database: postgres,
    registerMetrics: (metrics) => {
      registerDatabaseMetrics(metrics, postgres)
      registerS3Metrics(metrics, { bucket, store })
    },
    tidied: Promise.resolve(),
    close: async () => {
      await catalog.close()
      await store.close()
      await postgres.close()
      memory[Symbol.dispose]()
    },
  }
}
