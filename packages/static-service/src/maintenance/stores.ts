import { mkdtempDisposable } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { databaseConfig, databaseSettings, HttpError, readEnv } from '@domains-and-files/http'
import { createDirectory, DataDirError, Postgres } from '@domains-and-files/persistence'
import { z } from 'zod'
import type { BlobStore } from '../blobs/blob-store.ts'
import { FolderBlobStore } from '../blobs/disk/folder-blob-store.ts'
import { Bucket } from '../blobs/s3/bucket.ts'
import { S3BlobStore } from '../blobs/s3/s3-blob-store.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { schemaName } from '../catalog/migrations.ts'
import { openPostgresCatalog } from '../catalog/postgres/postgres-catalog.ts'
import { databaseFile, openSqliteCatalog } from '../catalog/sqlite/sqlite-catalog.ts'
import { s3Config, s3Settings } from '../config.ts'
import { sharedMigrations } from '../shared-storage.ts'

/** The catalog and its blobs, opened for a command. */
export interface Stores extends AsyncDisposable {
  catalog: Catalog
  blobs: BlobStore
}

/** Opens a data directory: to read beside a service, or one that no service uses, with missing stores created. */
export async function openFolder(dataDir: string, { isReadOnly = false } = {}): Promise<Stores> {
  await using opened = new AsyncDisposableStack()
  const catalog = await openSqliteCatalog(dataDir, { isReadOnly })
  opened.defer(() => catalog.close())
  const blobs = isReadOnly
    ? FolderBlobStore.openReader(dataDir)
    : await FolderBlobStore.open(dataDir, {
        isReferenced: (digest) => catalog.isReferenced(digest),
        otherDatabases: () => [databaseFile(dataDir)],
        onError: () => undefined, // The next start collects remaining blobs.
      })
  opened.defer(() => blobs.close())
  return Object.assign(opened.move(), { catalog, blobs })
}

/** Opens PostgreSQL and S3 beside running replicas. @throws {InvalidEnvironment | DataDirError} */
export async function openShared(env: NodeJS.ProcessEnv) {
  const settings = readEnv(z.object({ ...databaseSettings, ...s3Settings }), env)
  const [database, s3] = [databaseConfig(settings), s3Config(settings, env)]
  if (!database || !s3) throw new DataDirError('Set DATABASE_URL and S3_BUCKET, both or neither.')
  await using opened = new AsyncDisposableStack()
  const postgres = await Postgres.openForRestore({ ...database, schema: schemaName, migrations: sharedMigrations })
  opened.defer(() => postgres.close())
  const bucket = await Bucket.open(s3)
  // Not DATA_DIR itself: a replica on this machine has its temporary files there.
  const parent = resolve(env.DATA_DIR || 'data/static-service')
  await createDirectory(parent)
  const { path: dataDir } = opened.use(await mkdtempDisposable(join(parent, 'command-')))
  const blobs = await S3BlobStore.open({
    ...s3,
    postgres,
    bucket,
    dataDir,
    isCommand: true,
    onError: () => undefined, // Undiscarded objects expire.
  })
  opened.defer(() => blobs.close())
  const catalog = await openPostgresCatalog(postgres, { contents: blobs.commits })
  opened.defer(() => catalog.close())
  return Object.assign(opened.move(), { catalog, blobs, postgres })
}

/** Why the store refuses to give a single object, such as an archived one; undefined for other failures. */
export function refusalOf(error: unknown): Error | undefined {
  const cause = error instanceof HttpError ? error.cause : undefined
  const isRefusal = cause instanceof Error && /^(?:AccessDenied|InvalidObjectState)$/.test(cause.name)
  return isRefusal ? cause : undefined
}

/** Rethrows a store failure as an operator message: it is no bug of the command. */
export function throwExplained(error: unknown): never {
  if (!(error instanceof HttpError)) throw error
  const { cause } = error
  if (error.status === 507) throw new DataDirError('The disk is full: free space and try again.', { cause })
  // The error of a HEAD request has no message: its response has no body.
  const reason = cause instanceof Error ? `${cause.name}, ${cause.message}` : error.message
  const sentence = `Cannot use the bucket in S3_BUCKET: ${reason.replace(/\.$/, '')}.`
  throw new DataDirError(sentence, { cause })
}
