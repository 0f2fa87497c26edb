import { name, sql } from '@domains-and-files/persistence'
import { expect, test } from 'vitest'
import { recordRegistrarEvent } from '../../src/ledger/stored-change.ts'
import { CircuitBreaker } from '../../src/registrar/client.ts'
import { ledgers } from '../support/ledgers.ts'

test('the circuit breaker says when it opens, and when it closes', () => {
  const said: boolean[] = []
  const breaker = new CircuitBreaker({ now: () => 0 }, (isFailing) => said.push(isFailing))
  for (let count = 0; count < 4; count++) breaker.failed()
  breaker.succeeded()
  expect(said).toEqual([])
  for (let count = 0; count < 7; count++) breaker.failed()
  expect(said).toEqual([true])
  breaker.succeeded()
  breaker.succeeded()
  expect(said).toEqual([true, false])
})

test.each(ledgers)('%s: replicas record one event for each outage and its end', async (_name, openForm) => {
  const { sql: database } = await openForm()
  const record = (isFailing: boolean) => recordRegistrarEvent(database, { registrar: 'sandbox', isFailing })
  await record(false)
  await record(true)
  await Promise.all([record(true), record(true)])
  await Promise.all([record(false), record(false), record(false)])
  await record(true)
  const events = await database.all<{ type: string; data: string }>(
    sql`select type, data from ${name('events')} order by id`,
  )
  expect(events.map(({ type }) => type)).toEqual(['registrar.failing', 'registrar.recovered', 'registrar.failing'])
  expect(JSON.parse(events[0]?.data ?? '')).toEqual({ registrar: 'sandbox' })
})
