import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { PostgresProxy } from '../../../../test/support/postgres/postgres-proxy.ts'
import { type TestDatabase, testDatabase } from '../../../../test/support/postgres/test-database.ts'
import { DatabaseUnavailableError, OutcomeUnknownError, type Postgres } from '../../src/index.ts'
import { addItem, isStored, openPostgres, schema } from '../support/postgres.ts'

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

    expect(await postgres.query('select 1 as one')).toEqual([{ one: 1 }])
  })

  it('in the middle of a transaction leaves nothing behind', async () => {
    const cut = postgres.transaction(async (transaction) => {
      await transaction.query(`insert into ${schema}.items values ($1)`, [nextId])
      proxy.cut()
      await transaction.query('select 1')
    })

    await expect(cut).rejects.toThrow(DatabaseUnavailableError)
    expect(await isStored(postgres, nextId)).toBe(false)
  })

  it('after COMMIT took effect is looked up, and the transaction succeeds', async () => {
    const faults = ['hide' as const]
    proxy.onCommit = () => faults.pop()

    expect(await addItem(postgres, nextId)).toBe(nextId)

    expect(faults).toEqual([])
    expect(await isStored(postgres, nextId)).toBe(true)
  })

  it('before COMMIT arrived is looked up, and the transaction fails without effect', async () => {
    const faults = ['lose' as const]
    proxy.onCommit = () => faults.pop()

    await expect(addItem(postgres, nextId)).rejects.toThrow(DatabaseUnavailableError)

    expect(faults).toEqual([])
    expect(await isStored(postgres, nextId)).toBe(false)
    expect(await addItem(postgres, nextId)).toBe(nextId)
  })

  it('again and again in COMMIT never acknowledges what is lost, nor refuses what is done', async () => {
    let commits = 0
    proxy.onCommit = () => {
      commits += 1
      return commits % 3 === 0 ? 'lose' : commits % 3 === 1 ? 'hide' : undefined
    }

    const ids = Array.from({ length: 60 }, (_, index) => 1000 + index)
    const outcomes = await Promise.all(
      ids.map((id) =>
        addItem(postgres, id).then(
          () => true,
          () => false,
        ),
      ),
    )

    proxy.onCommit = undefined
    const stored = await Promise.all(ids.map((id) => isStored(postgres, id)))
    expect(stored).toEqual(outcomes)
    expect(new Set(outcomes)).toEqual(new Set([true, false]))
  })
})

describe('a server that does not answer', () => {
  it('fails a statement after its time limit, and is used again when it answers', async () => {
    await using database = await testDatabase()
    await using proxy = await PostgresProxy.open(database.url)
    const postgres = await openPostgres(proxy.url, { timeoutMs: 300 })
    proxy.silence()

    await expect(postgres.query('select 1')).rejects.toThrow(DatabaseUnavailableError)
    await expect(addItem(postgres, 1)).rejects.toThrow(DatabaseUnavailableError)

    proxy.resume()
    expect(await addItem(postgres, 2)).toBe(2)
    await postgres.close()
  })

  it('at COMMIT and during its look-up leaves the outcome unknown', async () => {
    await using database = await testDatabase()
    await using proxy = await PostgresProxy.open(database.url)
    const postgres = await openPostgres(proxy.url, { timeoutMs: 300 })
    proxy.onCommit = () => {
      proxy.silence()
      return undefined
    }

    await expect(addItem(postgres, 1)).rejects.toThrow(OutcomeUnknownError)

    proxy.resume()
    await postgres.close()
  })

  it('ends an abandoned transaction, whose locks are free again', async () => {
    await using database = await testDatabase()
    await using proxy = await PostgresProxy.open(database.url)
    const [abandoned, other] = [
      await openPostgres(proxy.url, { timeoutMs: 300 }),
      await openPostgres(database.url, { timeoutMs: 30_000 }),
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
})
