import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Migrations, Postgres, type Sql, SqliteSql } from '@domains-and-files/persistence'
import { testDatabase } from '../../../../test/support/postgres/test-database.ts'
import { eventMigrations, webhookMigrations } from '../../src/index.ts'

const migrations: Migrations = { ...eventMigrations, ...webhookMigrations }

/** A database of each form, whose clock a test moves. */
export interface TestDatabase extends AsyncDisposable {
  sql: Sql
  /** Another process on the same database, where the form has several. */
  another: () => Promise<Sql>
  setTime: (now: number) => Promise<void>
  /** Where another process finds it. */
  location: () => object
}

async function openSqlite(): Promise<TestDatabase> {
  const directory = await mkdtemp(join(tmpdir(), 'events-'))
  let now = start
  const file = join(directory, 'events.sqlite')
  const sql = new SqliteSql({ file, migrations, now: () => now })
  return {
    sql,
    location: () => ({ file, now }),
    another: async () => sql,
    setTime: async (time) => {
      now = time
    },
    async [Symbol.asyncDispose]() {
      await sql.close()
      await rm(directory, { recursive: true })
    },
  }
}

export async function openPostgres(): Promise<TestDatabase> {
  const stack = new AsyncDisposableStack()
  const { url } = stack.use(await testDatabase())
  const another = async () => {
    const postgres = await Postgres.open({
      url,
      schema: 'sample',
      migrations,
      maxConnections: 4,
      timeoutMs: 150_000,
      onError: () => undefined,
    })
    stack.defer(() => postgres.close())
    return postgres
  }
  const sql = await another()
  const setTime = async (now: number) => {
    await sql.query(`create or replace function sample.now_ms() returns bigint language sql volatile
      as $$ select ${now}::bigint $$`)
  }
  await setTime(start)
  const location = () => ({ url })
  return { sql, another, setTime, location, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

/** The first time of each database. */
export const start = Date.UTC(2027, 0, 15)

export const forms = [
  { form: 'sqlite', open: openSqlite },
  { form: 'postgres', open: openPostgres },
] as const
