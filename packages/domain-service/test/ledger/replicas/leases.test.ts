import { expect, onTestFinished, test, vi } from 'vitest'
import { Leases } from '../../../src/ledger/replicas/leases.ts'
import { makeDatabase, stopDatabaseTime } from '../../support/databases.ts'

const domain = 'example.com'

/** Two replicas; the leases of both expire after so many milliseconds. */
async function startReplicas(ttlMs = 60_000) {
  const stack = new AsyncDisposableStack()
  const { postgres } = stack.use(await makeDatabase())
  const open = (holder: string) => {
    const leases = new Leases({ sql: postgres, holder, ttlMs, onError: () => undefined })
    stack.defer(() => leases.close())
    return leases
  }
  const [first, second] = [open('first'), open('second')]
  return { postgres, first, second, open, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

test('a lease is held by one replica at a time, until that ends at the latest, and its fence grows with each holder', async () => {
  await using replicas = await startReplicas()
  const { first, second } = replicas

  const held = await first.tryAcquire(domain)
  const refused = await second.tryAcquire(domain)
  if (held) await first.release(held)
  const next = await second.tryAcquire(domain)

  expect([held?.fence, refused, next?.fence]).toEqual([1, undefined, 2])
  expect(first.current(domain)).toBeUndefined()
  await second.close()
  expect(await first.tryAcquire(domain)).toMatchObject({ fence: 3 })
})

test('a replica that holds a lease without knowing it, since the response was lost, acquires it again', async () => {
  await using replicas = await startReplicas()
  const { postgres, first, second, open } = replicas
  const before = await first.tryAcquire(domain)

  const again = await open('first').tryAcquire(domain)

  expect([before?.fence, again?.fence]).toEqual([1, 2])
  const lock = postgres.transaction((transaction) => first.lock(transaction, domain))
  await expect(lock).rejects.toMatchObject({ status: 503, code: 'unavailable' })
  if (before) await first.release(before)
  expect(await second.tryAcquire(domain)).toBeUndefined()
})

test('no replica acquires a lease before the transaction ends that has locked it', async () => {
  await using replicas = await startReplicas()
  const { postgres, first } = replicas
  await first.tryAcquire(domain)

  const unlocked = await postgres.transaction(async (transaction) => {
    await first.lock(transaction, domain)
    return postgres.query('select name from domain_service.leases for update skip locked')
  })

  expect(unlocked).toEqual([])
})

test('a lease that is renewed outlives its time, and one that is not is acquired by another replica', async () => {
  const ttlMs = 600
  await using replicas = await startReplicas(ttlMs)
  const { postgres, first, second } = replicas
  const readLeft = async () => {
    const [lease] = await postgres.query<{ left: number }>(
      'select until - domain_service.lease_ms() as left from domain_service.leases',
    )
    return lease?.left
  }
  await stopDatabaseTime(postgres, 0, 'lease_ms')
  await first.tryAcquire(domain)

  await stopDatabaseTime(postgres, ttlMs - 1, 'lease_ms')
  await expect.poll(readLeft).toBe(ttlMs)
  await stopDatabaseTime(postgres, ttlMs + 1, 'lease_ms')
  const whileRenewed = await second.tryAcquire(domain)
  await first.close()
  await postgres.query(`update domain_service.leases set holder = 'dead', until = domain_service.lease_ms() + 1`)
  const whileAlive = await second.tryAcquire(domain)
  await stopDatabaseTime(postgres, ttlMs + 2, 'lease_ms')

  expect([whileRenewed, whileAlive]).toEqual([undefined, undefined])
  expect(await second.tryAcquire(domain)).toMatchObject({ fence: 2 })
})

test.each([
  ['expired, although nobody else has acquired it', { holder: 'first', until: 0 }],
  ['been acquired by another replica', { holder: 'second', until: 9_000_000_000_000 }],
])('a lease that has %s is not renewed', async (_, { holder, until }) => {
  await using replicas = await startReplicas(600)
  const { first, postgres } = replicas
  await first.tryAcquire(domain)

  await postgres.query('update domain_service.leases set holder = $1, until = $2', [holder, until])

  await expect.poll(() => first.size).toBe(0)
  expect(await postgres.query('select until from domain_service.leases')).toEqual([{ until }])
})

test.each([30_000, 135_000])('a lease of %i ms is never less than ten seconds shorter than that', async (ttlMs) => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const sql = { get: async () => ({ fence: 1 }), all: async () => [{ name: domain }] }
  const leases = new Leases({ sql: sql as never, holder: 'one', ttlMs, onError: () => undefined }) // What it uses.
  const lease = await leases.tryAcquire(domain)

  const left: number[] = []
  for (let second = 0; second < 60; second++) {
    await vi.advanceTimersByTimeAsync(1_000)
    left.push((lease?.expiresAt ?? 0) - performance.now())
  }
  await leases.close()

  expect(Math.min(...left)).toBeGreaterThanOrEqual(ttlMs - 10_000)
})

test('no renewal begins while another one waits for a slow database', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const renewals: PromiseWithResolvers<object[]>[] = []
  const all = () => {
    const renewal = Promise.withResolvers<object[]>()
    renewals.push(renewal)
    return renewal.promise
  }
  const sql = { get: async () => ({ fence: 1 }), all }
  const leases = new Leases({ sql: sql as never, holder: 'one', ttlMs: 45_000, onError: () => undefined }) // What it uses.
  await leases.tryAcquire(domain)

  await vi.advanceTimersByTimeAsync(10_000)
  const whileSlow = renewals.length
  renewals[0]?.resolve([{ name: domain }])
  await vi.advanceTimersByTimeAsync(2_500)
  const after = renewals.length
  for (const renewal of renewals) renewal.resolve([{ name: domain }])
  await leases.close()

  expect([whileSlow, after]).toEqual([1, 2])
})

test('what a replica records after it has lost its lease is refused', async () => {
  await using replicas = await startReplicas()
  const { first, second, postgres } = replicas
  await first.tryAcquire(domain)
  await postgres.query('update domain_service.leases set until = 0')
  const lock = () => postgres.transaction((transaction) => first.lock(transaction, domain))

  await expect(lock()).rejects.toMatchObject({ status: 503, code: 'unavailable' })
  await second.tryAcquire(domain)
  await expect(lock()).rejects.toMatchObject({ status: 503, code: 'unavailable' })
  const own = await postgres.transaction((transaction) => second.lock(transaction, domain))
  expect(own.fence).toBe(2)
})
