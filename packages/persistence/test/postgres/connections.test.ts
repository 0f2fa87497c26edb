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
  const client = await (await openPool()).connect()
  onTestFinished(() => client.release())
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const connect = async () => {
    await vi.advanceTimersByTimeAsync(900)
    return client
  }

  const { leftMs } = await acquire({ connect }, 2000)

  expect(leftMs).toBe(1100)
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
