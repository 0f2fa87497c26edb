import { authMigrations } from '@domains-and-files/auth'
import { eventMigrations, webhookMigrations } from '@domains-and-files/events'
import { Postgres } from '@domains-and-files/persistence'
import { type TestDatabase, testDatabase } from '../../../../test/support/postgres/test-database.ts'
import { storeUsers } from '../../../../test/support/test-users.ts'
import { contentMigrations } from '../../src/blobs/s3/content-commit.ts'
import { catalogMigrations, schemaName } from '../../src/catalog/migrations.ts'
import { uploadMigrations } from '../../src/uploads/uploads.ts'
import { users } from './test-users.ts'

/** A new database with the tables of the service and the users of the tests, dropped at disposal. */
export const serviceDatabase = (): Promise<TestDatabase> =>
  testDatabase({
    name: 'static_service_template',
    prepare: async (url) => {
      await migrate(url)
      await storeUsers(url, schemaName, users)
    },
  })

/** The same without users, as a restore wants it. */
export const emptyDatabase = (): Promise<TestDatabase> =>
  testDatabase({ name: 'static_service_empty', prepare: migrate })

async function migrate(url: string) {
  const postgres = await Postgres.open({
    url,
    maxConnections: 1,
    timeoutMs: 150_000,
    schema: schemaName,
    migrations: {
      ...authMigrations,
      catalog: catalogMigrations,
      ...eventMigrations,
      ...webhookMigrations,
      contents: contentMigrations,
      ...uploadMigrations,
    },
    onError: () => undefined,
  })
  await postgres.close()
}
