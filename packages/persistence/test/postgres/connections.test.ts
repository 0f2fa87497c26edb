import pg from 'pg'
import { expect, onTestFinished, test, vi } from 'vitest'
import { testDatabase } from '../../../../test/support/postgres/test-database.ts'
import { acquire, limited } from '../../src/postgres/connections.ts'

async function openPool() {
  const database = await testDatabase()
  const pool = new pg.Pool({ connectionString: database.directUrl, query_timeout: 60_000 })
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
