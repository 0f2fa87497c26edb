import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { runOnServer, type TestDatabase, testDatabase } from '../../../../test/support/postgres/test-database.ts'
import { DatabaseUnavailableError, Postgres, type PostgresOptions } from '../../src/index.ts'

const migrations = {
  items: ['create table sample.items (id int primary key, size bigint, tags jsonb)'],
}

async function open(database: TestDatabase, options: Partial<PostgresOptions> = {}) {
  const postgres = await Postgres.open({
    url: database.url,
    maxConnections: 4,
    timeoutMs: 150_000,
    schema: 'sample',
    migrations,
    onError: () => undefined,
    ...options,
  })
  return Object.assign(postgres, { [Symbol.asyncDispose]: () => postgres.close() })
}

describe('a PostgreSQL database', async () => {
  const database = await testDatabase()
  afterAll(() => database[Symbol.asyncDispose]())

  it('reads bigint as number and jsonb as parsed', async () => {
    await using postgres = await open(database)
    await postgres.transaction((tx) =>
      tx.query('insert into sample.items values (1, 9007199254740991, $1)', [{ a: [1] }]),
    )
    expect(await postgres.query('select * from sample.items where id = 1')).toEqual([
      { id: 1, size: 9007199254740991, tags: { a: [1] } },
    ])
  })

  it('has the time of the server, whatever the clock of this machine', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 })
    onTestFinished(() => void vi.useRealTimers())
    await using postgres = await open(database)
    vi.useRealTimers()

    expect(Math.abs(postgres.now() - Date.now())).toBeLessThan(1_800_000)
  })

  it('rolls a transaction back that throws', async () => {
    await using postgres = await open(database)
    const failing = postgres.transaction(async (tx) => {
      await tx.query('insert into sample.items values (2)')
      throw new Error('stop')
    })
    await expect(failing).rejects.toThrow('stop')
    expect(await postgres.query('select 1 from sample.items where id = 2')).toEqual([])
  })

  it('passes the error of a statement on with its SQLSTATE', async () => {
    await using postgres = await open(database)
    const twice = postgres.transaction(async (tx) => {
      await tx.query('insert into sample.items values (3)')
      await tx.query('insert into sample.items values (3)')
    })
    await expect(twice).rejects.toMatchObject({ code: '23505' })
  })

  it('reads what is committed, whatever isolation the database has by default', async () => {
    await using strict = await testDatabase()
    const { directUrl: url } = strict // PgBouncer refuses the setting.
    const change = 'alter database %I set default_transaction_isolation = serializable'
    await runOnServer(url, `do $$ begin execute format('${change}', current_database()); end $$`)
    await using postgres = await open(strict, { url })

    const show = 'show transaction_isolation'
    const shown = [await postgres.query(show), await postgres.transaction((transaction) => transaction.query(show))]

    expect(shown).toEqual(Array(2).fill([{ transaction_isolation: 'read committed' }]))
  })

  it('ends a statement on the server after the time limit', async () => {
    const { directUrl: url } = database // PgBouncer refuses the setting.
    await using postgres = await open(database, { url, timeoutMs: 300 })
    await expect(postgres.query('select pg_sleep(60)')).rejects.toThrow(DatabaseUnavailableError)

    await using other = await open(database)
    const running = () =>
      other.query("select 1 from pg_stat_activity where state = 'active' and query = 'select pg_sleep(60)'")
    await expect.poll(running).toEqual([])
  })
})
