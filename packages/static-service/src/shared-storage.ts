import { authMigrations } from '@domains-and-files/auth'
import { eventMigrations, webhookMigrations } from '@domains-and-files/events'
import { type Logger, type Metrics, registerDatabaseMetrics } from '@domains-and-files/http'
import { Postgres } from '@domains-and-files/persistence'
import { Bucket } from './blobs/s3/bucket.ts'
import { contentMigrations } from './blobs/s3/content-commit.ts'
import { S3BlobStore } from './blobs/s3/s3-blob-store.ts'
import { catalogMigrations, schemaName } from './catalog/migrations.ts'
import { openPostgresCatalog } from './catalog/postgres/postgres-catalog.ts'
import type { Config } from './config.ts'
import { registerS3Metrics } from './metrics.ts'
import { sharingTables } from './sharing/tables.ts'
import { Uploads, uploadMigrations } from './uploads/uploads.ts'

/** All tables of this service in PostgreSQL, for the service and its commands. */
export const sharedMigrations = {
  ...authMigrations,
  catalog: catalogMigrations,
  ...eventMigrations,
  ...webhookMigrations,
  contents: contentMigrations,
  sharing: sharingTables,
  ...uploadMigrations,
}

/** Catalog in PostgreSQL and contents in S3, for any number of processes. */
export async function openSharedStorage(
  config: Config & Record<'database' | 's3', object>,
  log: Logger,
  metrics: Metrics | undefined,
) {
  const { database, s3, uploadLifetimeMs: lifetimeMs } = config
  const postgres = await Postgres.open({
    ...database,
    schema: schemaName,
    migrations: sharedMigrations,
    onError: (error) => log.warn({ err: error }, 'database not available'),
  })
  const bucket = await Bucket.open(s3)
  const store = await S3BlobStore.open({
    ...s3,
    ...config,
    postgres,
    bucket,
    onError: (error) => log.warn({ err: error }, 'object storage call failed, trying again later'),
  })
  const catalog = await openPostgresCatalog(postgres, { ...config.catalog, contents: store.commits })
  const uploads = new Uploads({ database: postgres, lifetimeMs, store }, (error) =>
    log.warn({ err: error }, 'expired uploads not removed, trying again later'),
  )
  registerDatabaseMetrics(metrics, postgres)
  registerS3Metrics(metrics, { counts: bucket.counts, sweep: store.sweep })
  return {
    catalog,
    store,
    uploads,
    database: postgres,
    tidied: Promise.resolve(),
    close: async () => {
      await uploads.close()
      await catalog.close()
      await store.close()
      await postgres.close()
    },
  }
}
