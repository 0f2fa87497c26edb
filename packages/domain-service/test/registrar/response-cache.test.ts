import { expect, test } from 'vitest'
import { domainNotFound, registrarError } from '../../src/errors.ts'
import { ResponseCache } from '../../src/registrar/response-cache.ts'
import { FakeClock } from '../support/fake-clock.ts'

const options = { ttlMs: 1_000, now: () => 0, freshAgeMs: () => 0 }

test('concurrent loads of a key are one load, cached for its time to live', async () => {
  const clock = new FakeClock()
  const cache = new ResponseCache<number>({ ...options, now: clock.now })
  let loads = 0
  const load = async () => ++loads

  const all = await Promise.all(Array.from({ length: 50 }, () => cache.read('a', load)))
  await clock.advance(999)
  const young = await cache.read('a', load)
  const asked = await cache.read('a', load, true)
  await clock.advance(1_000)
  const old = await cache.read('a', load)

  expect(new Set(all.map(({ value }) => value))).toEqual(new Set([1]))
  expect(young).toEqual({ value: 1, age: 999, stale: false })
  expect(asked.value).toBe(2)
  expect(old.value).toBe(3)
})

test('an expired value serves for five minutes while loading fails', async () => {
  const clock = new FakeClock()
  const cache = new ResponseCache<number>({ ...options, now: clock.now })
  cache.put('a', 1)
  const fail = () => Promise.reject(registrarError('down'))

  await clock.advance(300_000)
  expect(await cache.read('a', fail)).toEqual({ value: 1, age: 300_000, stale: true })
  await expect(cache.read('a', fail, true)).rejects.toThrow('down')
  const refuse = () => Promise.reject(domainNotFound('a'))
  await expect(cache.read('a', refuse)).rejects.toThrow('a')
  await clock.advance(1)
  await expect(cache.read('a', fail)).rejects.toThrow('down')
})

test('a load that began before a write neither overwrites it nor is joined after it', async () => {
  const cache = new ResponseCache<string>(options)
  const slow = Promise.withResolvers<string>()
  const before = cache.read('a', () => slow.promise)

  cache.drop('a')
  const after = cache.read('a', async () => 'new')
  slow.resolve('old')

  expect((await before).value).toBe('old')
  expect((await after).value).toBe('new')
  expect((await cache.read('a', async () => 'newer')).value).toBe('new')
})

test('a value of another version is neither served nor joined while it is loaded', async () => {
  let version = 1
  const cache = new ResponseCache<string>({
    ...options,
    versionOf: async () => version,
  })
  const slow = Promise.withResolvers<string>()
  cache.put('a', 'first', 1)
  const cached = await cache.read('a', async () => 'second')

  version = 2
  const before = cache.read('a', () => slow.promise)
  await Promise.resolve()
  version = 3
  const after = await cache.read('a', async () => 'third')
  slow.resolve('second')

  expect([cached.value, after.value, (await before).value]).toEqual(['first', 'third', 'second'])
  expect((await cache.read('a', async () => 'fourth')).value).toBe('third')
})

test('the entries are bounded', async () => {
  const cache = new ResponseCache<number>(options)
  for (let key = 0; key <= 2_000; key++) cache.put(`${key}`, 0)

  expect((await cache.read('0', async () => 1)).value).toBe(1)
  expect((await cache.read('2000', async () => 1)).value).toBe(0)
})

test('while calls are scarce, a reader who wants a fresh value gets one up to freshAgeMs old', async () => {
  let freshAgeMs = 0
  const clock = new FakeClock()
  const cache = new ResponseCache<number>({
    ttlMs: 30_000,
    now: clock.now,
    freshAgeMs: () => freshAgeMs,
  })
  cache.put('a', 1)
  const readFresh = (value: number) => cache.read('a', async () => value, true)

  await clock.advance(9_999)
  freshAgeMs = 10_000
  expect(await readFresh(2)).toEqual({ value: 1, age: 9_999, stale: false })
  await clock.advance(1)
  expect((await readFresh(3)).value).toBe(3)
  freshAgeMs = 0
  expect((await readFresh(4)).value).toBe(4)
})
