import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { CallQuota, readRate } from '../../src/ledger/call-quota.ts'
import { openDatabase } from '../../src/ledger/database.ts'
import { CircuitBreaker } from '../../src/registrar/circuit-breaker.ts'
import { ResponseCache } from '../../src/registrar/response-cache.ts'

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000_000_000 })
})
afterEach(() => {
  vi.useRealTimers()
})

function openTemporary() {
  const folder = mkdtempSync(join(tmpdir(), 'budget-'))
  const database = openDatabase(folder)
  onTestFinished(() => {
    database.close()
    rmSync(folder, { recursive: true })
  })
  return { database, folder }
}

const makeBudget = (rate: string, database = openTemporary().database) =>
  new CallQuota({ limits: readRate(rate) ?? [], database })

test.each(['', '20', '20/second', '0/minute', '20/minute,', '-1/hour', '20/minute;7/hour'])(
  'the rate %j is refused',
  (text) => {
    expect(readRate(text)).toBeUndefined()
  },
)

test('a call waits for the minute that has no room, and goes when it has', async () => {
  const budget = makeBudget('2/minute')
  await budget.take('read')
  await vi.advanceTimersByTimeAsync(55_000)
  await budget.take('read')

  const third = budget.take('read')
  expect(budget.waiting).toBe(1)
  await vi.advanceTimersByTimeAsync(5_000)

  await expect(third).resolves.toBeUndefined()
  expect(budget.left()).toMatchObject([{ window: 'minute', limit: 2, left: 0 }])
})

test('who would wait more than ten seconds is told so at once', async () => {
  const budget = makeBudget('1/minute')
  await budget.take('read')

  await expect(budget.take('write')).rejects.toMatchObject({
    status: 503,
    code: 'registrar_busy',
    headers: { 'retry-after': '60' },
  })
  expect(budget.waiting).toBe(0)
})

test('writes go ahead of reads', async () => {
  const budget = makeBudget('2/minute')
  await budget.take('read')
  await budget.take('read')
  await vi.advanceTimersByTimeAsync(52_000)
  const order: string[] = []

  const waiting = [
    budget.take('read').then(() => order.push('read')),
    budget.take('write').then(() => order.push('write')),
  ]
  await vi.advanceTimersByTimeAsync(8_000)
  await Promise.all(waiting)

  expect(order).toEqual(['write', 'read'])
})

test('the smallest room of all windows counts', async () => {
  const budget = makeBudget('2/minute,3/hour')
  for (let call = 0; call < 3; call++) {
    await budget.take('read')
    await vi.advanceTimersByTimeAsync(61_000)
  }

  await expect(budget.take('read')).rejects.toMatchObject({ code: 'registrar_busy' })
  expect(budget.left()).toMatchObject([
    { window: 'minute', left: 2 },
    { window: 'hour', left: 0 },
  ])
})

test('calls are remembered across restarts', async () => {
  const { database, folder } = openTemporary()
  const first = makeBudget('2/minute', database)
  await first.take('read')
  await first.take('write')
  const reopened = openDatabase(folder)
  onTestFinished(() => void reopened.close())

  const second = makeBudget('2/minute', reopened)

  expect(second.left()).toMatchObject([{ left: 0 }])
  await expect(second.take('read')).rejects.toMatchObject({ code: 'registrar_busy' })
})

test('after a word of too many calls none is made for a while', async () => {
  const budget = makeBudget('20/minute')
  budget.pause(1_000)

  const call = budget.take('read')
  await vi.advanceTimersByTimeAsync(999)
  expect(budget.waiting).toBe(1)
  await vi.advanceTimersByTimeAsync(1)

  await expect(call).resolves.toBeUndefined()
})

test('the database keeps synchronous=FULL when it is opened again', () => {
  const { folder } = openTemporary()
  const again = openDatabase(folder)
  onTestFinished(() => void again.close())

  expect(again.pragma('synchronous', { simple: true })).toBe(2)
  expect(again.pragma('journal_mode', { simple: true })).toBe('wal')
})

test('after five failures in a row calls fail fast, then one probes', () => {
  const breaker = new CircuitBreaker()
  for (let failure = 0; failure < 5; failure++) {
    breaker.admit()
    breaker.failed()
  }
  expect(() => breaker.admit()).toThrow(
    expect.objectContaining({
      status: 503,
      code: 'registrar_unavailable',
      headers: { 'retry-after': '5' },
    }),
  )

  vi.advanceTimersByTime(5_000)
  expect(breaker.state).toBe('half_open')
  breaker.admit()
  expect(() => breaker.admit()).toThrow('several times in a row')
  breaker.succeeded()

  expect(breaker.state).toBe('closed')
  expect(() => breaker.admit()).not.toThrow()
})

test('a probe that fails opens it again; a probe that was never made leaves the next one', () => {
  const breaker = new CircuitBreaker({ threshold: 1 })
  breaker.failed()
  vi.advanceTimersByTime(5_000)
  breaker.admit()
  breaker.skipped()
  breaker.admit()
  breaker.failed()

  expect(breaker.state).toBe('open')
})

test('a success between failures starts the count anew', () => {
  const breaker = new CircuitBreaker({ threshold: 2 })
  breaker.failed()
  breaker.succeeded()
  breaker.failed()

  expect(breaker.state).toBe('closed')
})

const fresh = { fresh: false, mayBeStale: () => true }

test('equal loads at once are one load, and the value is kept for its time', async () => {
  const cache = new ResponseCache<number>({ ttl: 1_000 })
  let loads = 0
  const load = async () => ++loads

  const all = await Promise.all(Array.from({ length: 50 }, () => cache.read('a', load, fresh)))
  vi.advanceTimersByTime(999)
  const young = await cache.read('a', load, fresh)
  const asked = await cache.read('a', load, { ...fresh, fresh: true })
  vi.advanceTimersByTime(1_000)
  const old = await cache.read('a', load, fresh)

  expect(new Set(all.map(({ value }) => value))).toEqual(new Set([1]))
  expect(young).toEqual({ value: 1, age: 999, stale: false })
  expect(asked.value).toBe(2)
  expect(old.value).toBe(3)
})

test('while loading fails an old value serves, for five minutes', async () => {
  const cache = new ResponseCache<number>({ ttl: 1_000 })
  cache.put('a', 1)
  const fail = () => Promise.reject(new Error('down'))

  vi.advanceTimersByTime(300_000)
  expect(await cache.read('a', fail, fresh)).toEqual({ value: 1, age: 300_000, stale: true })
  await expect(cache.read('a', fail, { ...fresh, fresh: true })).rejects.toThrow('down')
  await expect(cache.read('a', fail, { ...fresh, mayBeStale: () => false })).rejects.toThrow('down')
  vi.advanceTimersByTime(1)
  await expect(cache.read('a', fail, fresh)).rejects.toThrow('down')
})

test('a load that began before a write neither overwrites it nor is joined after it', async () => {
  const cache = new ResponseCache<string>({ ttl: 1_000 })
  const slow = Promise.withResolvers<string>()
  const before = cache.read('a', () => slow.promise, fresh)

  cache.drop('a')
  const after = cache.read('a', async () => 'new', fresh)
  slow.resolve('old')

  expect((await before).value).toBe('old')
  expect((await after).value).toBe('new')
  expect((await cache.read('a', async () => 'newer', fresh)).value).toBe('new')
})

test('a cache has bounds', async () => {
  const cache = new ResponseCache<number>({ ttl: 1_000, maxEntries: 2 })
  for (const key of ['a', 'b', 'c']) cache.put(key, 0)

  expect((await cache.read('a', async () => 1, fresh)).value).toBe(1)
  expect((await cache.read('c', async () => 1, fresh)).value).toBe(0)
})
