import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { expect, onTestFinished, test, vi } from 'vitest'
import { testDatabase } from '../../../../test/support/postgres/test-database.ts'
import { acquire, clientConfig, limited } from '../../src/postgres/connections.ts'

async function openPool() {
  const database = await testDatabase()
  const pool = new pg.Pool({ connectionString: database.directUrl, query_timeout: 150_000 })
  // Ended, it closes its connections only in a moment: the server ends them first when the database is dropped.
  pool.on('error', () => undefined)
  onTestFinished(async () => {
    await pool.end()
    await database[Symbol.asyncDispose]()
  })
  return pool
}

test('a statement has what waiting for its connection has left of the time limit', async () => {
  const pool = await openPool()
  const client = await pool.connect()
  onTestFinished(() => client.release())
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const connect = async () => {
    await vi.advanceTimersByTimeAsync(900)
    return client
  }

  const { leftMs } = await acquire({ connect, options: pool.options, totalCount: 1 }, 2000)

  expect(leftMs).toBe(1100)
})

/** A pool of five at a server that lets it have fewer, and asks of `acquire` that each hold a connection for a moment. */
async function openLimitedPool(limit: number) {
  const database = await testDatabase()
  const role = `limited_${randomUUID().replaceAll('-', '')}`
  const admin = new pg.Client({ connectionString: database.directUrl })
  await admin.connect()
  const url = new URL(database.directUrl)
  url.username = role
  const pool = new pg.Pool({ connectionString: url.href, max: 5 })
  pool.on('error', () => undefined)
  onTestFinished(async () => {
    await pool.end()
    await admin.query(`drop role ${role}`)
    await admin.end()
    await database[Symbol.asyncDispose]()
  })
  await admin.query(`create role ${role} login connection limit ${limit}`)
  const ask = async () => {
    const { client } = await acquire(pool, 300_000)
    await client.query('select pg_sleep(0.01)')
    client.release()
    return 'answered'
  }
  const allow = (more: number) => admin.query(`alter role ${role} connection limit ${more}`)
  return { pool, ask, allow }
}

test('while the server has no further connection, those that the pool has are waited for', async () => {
  const { pool, ask } = await openLimitedPool(2)

  const held = [await acquire(pool, 300_000), await acquire(pool, 300_000)]
  const answers = Array.from({ length: 20 }, ask)
  for (const { client } of held) client.release()

  expect(new Set(await Promise.all(answers))).toEqual(new Set(['answered']))
})

test('a pool that found no connection has one as soon as the server has', async () => {
  const { pool, ask, allow } = await openLimitedPool(0)
  const connect = vi.spyOn(pool, 'connect')

  const answers = Promise.all(Array.from({ length: 10 }, ask))
  await Promise.race([answers, expect.poll(() => connect.mock.calls.length).toBeGreaterThan(30)])
  await allow(1)

  expect(await ask()).toBe('answered')
  expect(new Set(await answers)).toEqual(new Set(['answered']))
})

test('a single statement waits for a connection, though the pool has none', async () => {
  const { pool, ask, allow } = await openLimitedPool(0)
  const connect = vi.spyOn(pool, 'connect')

  const answer = ask()
  await Promise.race([answer, expect.poll(() => connect.mock.calls.length).toBeGreaterThan(1)])
  await allow(1)

  expect(await answer).toBe('answered')
})

test('a statement without a response fails at its own time limit', async () => {
  const { client, leftMs } = await acquire(await openPool(), 200)

  const endless = client.query(limited(leftMs, 'select pg_sleep($1)', [50]))

  await expect(endless).rejects.toThrow('Query read timeout')

  client.release(true)
})

test.each([
  [300, 300],
  [4_750, 3_000],
  [57_000, 34_200],
])('of a time limit of %i ms a connection has %i ms', async (timeoutMs, connectMs) => {
  const config = await clientConfig({ url: 'postgres://localhost/sample', timeoutMs, name: 'test' })

  expect(config.connectionTimeoutMillis).toBe(connectMs)
})
