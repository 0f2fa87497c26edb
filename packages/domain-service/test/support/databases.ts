import { createLogger } from '@domains-and-files/http'
import type { Postgres } from '@domains-and-files/persistence'
import { type TestDatabase, testDatabase } from '../../../../test/support/postgres/test-database.ts'
import { openPostgres } from '../../src/postgres-storage.ts'
import { addUsers } from './test-users.ts'

const log = createLogger({ name: 'test', level: 'silent' })

/** A connection to the database of a service, with its tables. */
export async function connect(url: string): Promise<Postgres & AsyncDisposable> {
  const options = { url, directUrl: undefined, maxConnections: 4, timeoutMs: 150_000 }
  const database = await openPostgres(options, log)
  return Object.assign(database, { [Symbol.asyncDispose]: () => database.close() })
}

/** A new database with the tables of the service and the users of the tests; without a connection. */
export const serviceDatabase = (): Promise<TestDatabase> =>
  testDatabase({
    name: 'domain_service_template',
    prepare: async (url) => {
      await (await connect(url)).close()
      await addUsers(url)
    },
  })

/** A new database with the tables of the service, dropped at disposal. */
export async function makeDatabase() {
  const { url, [Symbol.asyncDispose]: drop } = await serviceDatabase()
  const postgres = await connect(url)
  const dispose = async () => {
    await postgres.close()
    await drop()
  }
  return { url, postgres, [Symbol.asyncDispose]: dispose }
}

/** `now_ms` is the clock of the tables, `lease_ms` that of what replicas renew. */
type DatabaseClock = 'now_ms' | 'lease_ms'

export const replaceClock = (postgres: Pick<Postgres, 'query'>, clock: DatabaseClock, select: string) =>
  postgres.query(
    `create or replace function domain_service.${clock}() returns bigint language sql volatile as $$ ${select} $$`,
  )

/** Sets a clock of the database to so many milliseconds from now. */
export const setDatabaseTime = (postgres: Pick<Postgres, 'query'>, offsetMs: number, clock: DatabaseClock = 'now_ms') =>
  replaceClock(postgres, clock, `select (extract(epoch from clock_timestamp()) * 1000)::bigint + ${offsetMs}`)

/** Stops a clock of the database at so many milliseconds after 2100-01-01. */
export const stopDatabaseTime = (
  postgres: Pick<Postgres, 'query'>,
  milliseconds: number,
  clock: DatabaseClock = 'now_ms',
) => replaceClock(postgres, clock, `select ${Date.UTC(2100, 0) + milliseconds}::bigint`)

/** Whether services store their state in PostgreSQL unless a test says otherwise. */
export const usesPostgres = process.env.TEST_STORAGE === 'postgres'

const byFolder = new Map<string, Promise<TestDatabase>>()

/**
 * The database of a service with this DATA_DIR, a new one at its first use; undefined where it stores its state there.
 */
export async function databaseOf(dataDir: string): Promise<string | undefined> {
  if (!usesPostgres) return undefined
  const database = byFolder.get(dataDir) ?? serviceDatabase()
  byFolder.set(dataDir, database)
  return (await database).url
}

/** Drops the database of a DATA_DIR that is removed. */
export async function dropDatabaseOf(dataDir: string) {
  const database = byFolder.get(dataDir)
  byFolder.delete(dataDir)
  await (await database)?.[Symbol.asyncDispose]()
}
