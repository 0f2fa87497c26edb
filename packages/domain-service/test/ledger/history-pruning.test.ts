import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, test, vi } from 'vitest'
import { pruneHistory } from '../../src/ledger/history-pruning.ts'
import { databaseName } from '../../src/ledger/schema.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { add } from '../support/faulty-answers.ts'
import { type Service, start } from '../support/start.ts'

const hourMs = 3_600_000

/** Makes all changes so much older. */
function age({ dataDir }: Service, hours: number) {
  const database = new Database(join(dataDir, databaseName))
  database.prepare('update changes set ended_at = ended_at - ?').run(hours * hourMs)
  database.close()
}

const countHistory = async (service: Service) =>
  (await service.call('GET', '/api/domains/example.com/dns/history')).body.history?.length

test('history stays for ever, or for HISTORY_DAYS', async () => {
  await using sandboxed = await start()
  const { dataDir, sandbox } = sandboxed
  await add(sandboxed)
  age(sandboxed, 36)
  await sandboxed.close()

  const counts: unknown[] = []
  for (const days of ['0', '2', '1']) {
    await using service = await start({ dataDir, sandbox, env: { HISTORY_DAYS: days } })
    counts.push(await countHistory(service))
  }

  expect(counts).toEqual([1, 1, 0])
})

test('old history goes each day, too', async () => {
  const clock = new FakeClock()
  const transaction = vi.fn(async () => 0)
  // Only what the pruning uses.
  const pruning = pruneHistory({ sql: { transaction, run: async () => 0 }, clock, log: undefined, days: 1 } as never)
  await pruning.start(hourMs)

  const counts: number[] = []
  for (const hours of [23, 1, 23, 1]) {
    for (let hour = 0; hour < hours; hour++) await clock.advance(hourMs)
    counts.push(transaction.mock.calls.length)
  }

  expect(counts).toEqual([1, 2, 2, 3])
})
