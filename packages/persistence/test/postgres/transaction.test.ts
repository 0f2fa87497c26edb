import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { PostgresProxy } from '../../../../test/support/postgres/postgres-proxy.ts'
import { runOnServer, type TestDatabase, testDatabase } from '../../../../test/support/postgres/test-database.ts'
import { DatabaseUnavailableError, OutcomeUnknownError, type Postgres } from '../../src/index.ts'
import { runTransaction } from '../../src/postgres/transaction.ts'
import { addItem, type Outcome, openPostgres, outcomeOf, schema } from '../support/postgres.ts'

describe('a connection that is cut', () => {
  let database: TestDatabase
  let proxy: PostgresProxy
  let postgres: Postgres
  const errors: unknown[] = []
  let nextId = 0

  beforeAll(async () => {
    database = await testDatabase()
    proxy = await PostgresProxy.open(database.url)
    postgres = await openPostgres(proxy.url, { onError: (error) => errors.push(error) })
  })
  beforeEach(() => {
    proxy.onCommit = undefined
    nextId += 1
  })
  // Not through the pool: a connection of it that was cut while idle may not know that yet.
  const storedIds = async () => {
    const rows = await runOnServer<{ id: number }>(database.directUrl, `select id from ${schema}.items`)
    return new Set(rows.map(({ id }) => id))
  }
  afterAll(async () => {
    await postgres.close()
    await proxy[Symbol.asyncDispose]()
    await database[Symbol.asyncDispose]()
  })

  it('while idle is reported and replaced', async () => {
    await postgres.query('select 1')
    errors.length = 0

    proxy.cut()

    await expect.poll(() => errors.length).toBeGreaterThan(0)
    expect(errors[0]).toBeInstanceOf(Error)
    expect(errors[0]).not.toHaveProperty('client')

    // The probe may have had a second connection, whose end is not known yet.
    const query = () => postgres.query('select 1 as one').catch(() => undefined)
    await expect.poll(query).toEqual([{ one: 1 }])
  })

  it('in the middle of a transaction leaves nothing behind', async () => {
    const cut = postgres.transaction(async (transaction) => {
      await transaction.query(`insert into ${schema}.items values ($1)`, [nextId])
      proxy.cut()
      await transaction.query('select 1')
    })

    await expect(cut).rejects.toThrow(DatabaseUnavailableError)
    expect(await storedIds()).not.toContain(nextId)
  })

  it('after COMMIT took effect is looked up, and the transaction succeeds', async () => {
    const faults = ['hide' as const]
    proxy.onCommit = () => faults.pop()

    expect(await addItem(postgres, nextId)).toBe(nextId)

    expect(faults).toEqual([])
    expect(await storedIds()).toContain(nextId)
  })

  it('before COMMIT arrived is looked up, and the transaction fails without effect', async () => {
    const faults = ['lose' as const]
    proxy.onCommit = () => faults.pop()

    await expect(addItem(postgres, nextId)).rejects.toThrow(DatabaseUnavailableError)

    expect(faults).toEqual([])
    expect(await storedIds()).not.toContain(nextId)
    expect(await addItem(postgres, nextId)).toBe(nextId)
  })

  it('again and again in COMMIT never acknowledges what is lost, nor refuses what is done', async () => {
    let commits = 0
    proxy.onCommit = () => {
      commits += 1
      return commits % 3 === 0 ? 'lose' : commits % 3 === 1 ? 'hide' : undefined
    }

    const outcomes = new Map<number, Outcome>()
    let id = 1000
    // As many as there are connections: a look-up that waits long for one would leave its outcome unknown.
    const work = async () => {
      while (!isEnough(outcomes)) {
        const next = id++
        outcomes.set(next, await outcomeOf(addItem(postgres, next)))
      }
    }
    await Promise.all([work(), work()])

    proxy.onCommit = undefined
    const stored = await storedIds()
    const idsOf = (outcome: Outcome) => [...outcomes].flatMap(([each, it]) => (it === outcome ? each : []))
    expect(idsOf('acknowledged').filter((each) => !stored.has(each))).toEqual([])
    expect(idsOf('refused').filter((each) => stored.has(each))).toEqual([])
  })
})

const isEnough = (outcomes: Map<number, Outcome>) => {
  const found = [...outcomes.values()]
  return outcomes.size >= 60 && found.includes('acknowledged') && found.includes('refused')
}

describe('a server that does not answer', () => {
  it('fails a statement after its time limit, and is used again when it answers', async () => {
    await using database = await testDatabase()
    await using proxy = await PostgresProxy.open(database.url)
    const postgres = await openPostgres(proxy.url, { timeoutMs: 300 })
    proxy.silence()

    await expect(postgres.query('select 1')).rejects.toThrow(DatabaseUnavailableError)
    await expect(addItem(postgres, 1)).rejects.toThrow(DatabaseUnavailableError)

    proxy.resume()
    let id = 1
    // On a busy machine a new connection may take longer than the time limit.
    await expect.poll(() => outcomeOf(addItem(postgres, ++id))).toBe('acknowledged')
    await postgres.close()
  })

  it('at COMMIT and during its look-up leaves the outcome unknown', async () => {
    await using database = await testDatabase()
    await using proxy = await PostgresProxy.open(database.url)
    const postgres = await openPostgres(proxy.url, { timeoutMs: 300 })
    let commits = 0
    proxy.onCommit = () => {
      commits += 1
      proxy.silence()
      return undefined
    }

    // On a busy machine the time limit may end a transaction before its COMMIT.
    let outcome: unknown
    for (let id = 1; commits === 0; id += 1) outcome = await addItem(postgres, id).catch((error: unknown) => error)

    expect(outcome).toBeInstanceOf(OutcomeUnknownError)

    proxy.resume()
    await postgres.close()
  })

  it('ends an abandoned transaction, whose locks are free again', async () => {
    await using database = await testDatabase()
    await using proxy = await PostgresProxy.open(database.url)
    const [abandoned, other] = [
      await openPostgres(proxy.url, { timeoutMs: 300 }),
      await openPostgres(database.url, { timeoutMs: 150_000 }),
    ]
    const waiting = abandoned.transaction(async (transaction) => {
      await transaction.query(`insert into ${schema}.items values (1)`)
      proxy.silence()
      await transaction.query('select 1')
    })
    await expect(waiting).rejects.toThrow(DatabaseUnavailableError)

    expect(await addItem(other, 1)).toBe(1)

    await abandoned.close()
    await other.close()
  })

  it('has its time limit on the server, also where a pooler refuses it for connections', async () => {
    await using database = await testDatabase()
    await using _tables = await openPostgres(database.url)
    const pool = new pg.Pool({ connectionString: database.url })
    // Ended, it closes its connections only in a moment: the server ends them first when the database is dropped.
    pool.on('error', () => undefined)
    await using _pool = { [Symbol.asyncDispose]: () => pool.end() }

    const limit = await runTransaction({ pool, schema, limitMs: 12_345 }, (transaction) =>
      transaction.query('show statement_timeout'),
    )

    expect(limit).toEqual([{ statement_timeout: '12345ms' }])
  })
})
