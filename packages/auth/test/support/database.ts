import { name, Postgres } from '@domains-and-files/persistence'
import { testDatabase } from '../../../../test/support/postgres/test-database.ts'
import { authMigrations } from '../../src/index.ts'

export const schema = 'domain_service'
export const tokensTable = name('api_tokens')

/** A connection to a database of the tests, with the tables of this package. */
export async function openDatabase(url: string): Promise<Postgres & AsyncDisposable> {
  const database = await Postgres.open({
    url,
    maxConnections: 4,
    timeoutMs: 150_000,
    schema,
    migrations: authMigrations,
    onError: () => undefined,
  })
  return Object.assign(database, { [Symbol.asyncDispose]: () => database.close() })
}

/** A new database with the tables of this package, dropped at disposal. */
export async function makeDatabase() {
  const { url, [Symbol.asyncDispose]: drop } = await testDatabase()
  const database = await openDatabase(url)
  const dispose = async () => {
    await database.close()
    await drop()
  }
  return { url, database, [Symbol.asyncDispose]: dispose }
}
