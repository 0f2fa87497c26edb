import { authMigrations, exportAuthFiles, importAuthFiles } from '@domains-and-files/auth'
import { databaseConfig, databaseSettings, HttpError, readEnv } from '@domains-and-files/http'
import { type DatabaseStore, DataDirError, Postgres } from '@domains-and-files/persistence'
import { z } from 'zod'
import { Bucket } from '../../blobs/s3/bucket.ts'
import { ContentTable } from '../../blobs/s3/content-table.ts'
import { contentMigrations } from '../../blobs/s3/migrations.ts'
import { ObjectUploads } from '../../blobs/s3/object-uploads.ts'
import { catalogMigrations, schemaName } from '../../catalog/migrations.ts'
import { openDatabase } from '../../catalog/sqlite/open-sqlite.ts'
import { s3Config, s3Settings } from '../../s3-settings.ts'
import { exportCatalog } from './catalog-export.ts'
import { catalogTables, importCatalog } from './catalog-import.ts'
import { exportObjects, exportSmallContents } from './content-export.ts'
import { importContents } from './content-import.ts'

export interface SharedData extends AsyncDisposable {
  postgres: Postgres
  bucket: Bucket
  table: ContentTable
  /** For backups. */
  store: DatabaseStore
}

/**
 * Opens the data of the service in PostgreSQL and S3 for a command, beside running replicas.
 * @throws {InvalidEnvironment | DataDirError}
 */
export async function openSharedData(env: NodeJS.ProcessEnv): Promise<SharedData> {
  const settings = readEnv(z.object({ ...databaseSettings, ...s3Settings }), env)
  const [database, s3] = [databaseConfig(settings), s3Config(settings)]
  if (!database || !s3) throw new DataDirError('Set DATABASE_URL and S3_BUCKET, both or neither.')
  const postgres = await Postgres.open({
    ...database,
    timeoutMs: statementMs,
    isRestore: true,
    schema: schemaName,
    migrations: {
      ...authMigrations,
      catalog: catalogMigrations,
      contents: contentMigrations,
    },
    onError: () => undefined, // A statement that fails is reported by itself.
  })
  const bucket = await Bucket.open(s3)
  const table = new ContentTable(postgres, s3.graceSeconds)
  const uploads = new ObjectUploads({ ...s3, bucket, table, onError: () => undefined })
  return {
    postgres,
    bucket,
    table,
    store: {
      database: postgres,
      tables: catalogTables,
      migrateFile: (file) => void openDatabase(file).close(),
      exportDatabase: exportCatalog,
      importDatabase: importCatalog,
      exportFiles: exportAuthFiles,
      importFiles: importAuthFiles,
      contents: {
        export: (job) => explain(exportObjects(bucket, job)),
        exportRows: ({ snapshot, to }) => exportSmallContents(snapshot, to),
        import: (job) => explain(importContents({ table, uploads }, job)),
      },
    },
    async [Symbol.asyncDispose]() {
      await uploads.settle()
      bucket.close()
      await postgres.close()
    },
  }
}

// A command may wait longer than a request.
const statementMs = 60_000

/** Says in a sentence why the object store fails: it is no bug of the command. */
export async function explain(task: Promise<void>): Promise<void> {
  try {
    await task
  } catch (error) {
    if (!(error instanceof HttpError)) throw error
    const { cause } = error
    // The error of a HEAD request has no message: its response has no body.
    const reason = cause instanceof Error ? `${cause.name}, ${cause.message}` : error.message
    throw new DataDirError(`Cannot use the bucket in S3_BUCKET: ${withoutPeriod(reason)}.`, {
      cause,
    })
  }
}

const withoutPeriod = (sentence: string) => sentence.replace(/\.$/, '')
