import { setImmediate as turn } from 'node:timers/promises'
import { delay, HttpError } from '@domains-and-files/http'
import { expect, test } from 'vitest'
import type { BudgetShare, BudgetState } from '../../src/budget/call-budget.ts'
import { CallQuota } from '../../src/budget/call-quota.ts'
import { parseRate, type Slots } from '../../src/budget/call-windows.ts'
import { LocalBudget } from '../../src/budget/local-budget.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { openEmbedded } from '../support/ledger.ts'

type Take = (state: BudgetState) => BudgetShare

async function openQuota() {
  const clock = new FakeClock()
  const options = { account: 'account', clock, onFailure: () => undefined }
  const budget = new LocalBudget(openEmbedded(clock.now), options)
  const limits = parseRate('20/minute,700/hour,8000/day') ?? []
  return { clock, quota: await CallQuota.open({ limits, budget, clock }) }
}

/** One write: it takes its slots as soon as it can. */
async function write(quota: CallQuota, ...callers: string[]) {
  const reservation = await quota.reserve(3, { callers })
  for (let call = 0; call < 3; call++) await quota.take(reservation)
}

const refusalOf = (writing: Promise<void>) =>
  writing.then(
    () => undefined,
    (error) => (error instanceof HttpError ? Number(error.headers['retry-after']) : undefined),
  )

/** Caller `hog`, or several, with so many writes at once, each of which is tried again every second. */
function startHog(quota: CallQuota, clock: FakeClock, count: number, nameOf = (_: number) => 'hog') {
  let isOver = false
  let tick = Promise.withResolvers<void>()
  const loop = async (number: number) => {
    while (!isOver) await write(quota, nameOf(number)).catch(() => tick.promise)
  }
  const loops = Array.from({ length: count }, (_, number) => loop(number))
  return {
    passSecond: async () => {
      await clock.advance(1_000)
      tick.resolve()
      tick = Promise.withResolvers()
      await turn()
    },
    end: () => {
      isOver = true
      tick.resolve()
      quota.close()
      return Promise.all(loops)
    },
  }
}

test('a caller who comes back when told gets in at once, however many writes of another wait', async () => {
  const { clock, quota } = await openQuota()
  const hog = startHog(quota, clock, 30)
  for (let second = 0; second < 5; second++) await hog.passSecond()

  const retryAfter = (await refusalOf(write(quota, 'other'))) ?? 0
  expect(retryAfter).toBeGreaterThan(0)
  for (let second = 0; second < retryAfter; second++) await hog.passSecond()
  const again = refusalOf(write(quota, 'other'))
  await hog.passSecond() // It waits out the margin of the windows.

  expect(await again).toBeUndefined()
  await hog.end()
})

test('where the queue is longer than a window, each caller is told when its own turn comes', async () => {
  const { clock, quota } = await openQuota()
  const callers = Array.from({ length: 20 }, (_, number) => `caller ${number}`)
  const refusals = await Promise.all(callers.map((caller) => refusalOf(write(quota, caller))))
  const refused = callers.flatMap((caller, at) => {
    const retryAfter = refusals[at]
    return retryAfter === undefined ? [] : { caller, retryAfter }
  })
  const again: (number | undefined)[] = []

  for (let second = 1; second <= 185; second++) {
    await clock.advance(1_000)
    for (const { caller, retryAfter } of refused)
      if (retryAfter === second) void refusalOf(write(quota, caller)).then((refusal) => again.push(refusal))
    await turn()
  }

  expect(refused).toHaveLength(14)
  expect(again).toEqual(Array.from(refused, () => undefined))
})

test('of callers who write again and again none is refused twice for one write', async () => {
  const { clock, quota } = await openQuota()
  const refusedTwice: string[] = []
  let done = 0
  const writeAgainAndAgain = async (caller: string) => {
    for (; ; done++) {
      for (let tries = 0; ; tries++) {
        const retryAfter = await refusalOf(write(quota, caller))
        if (retryAfter === undefined) break
        if (tries > 0) refusedTwice.push(caller)
        await delay(clock, retryAfter * 1_000)
      }
      await delay(clock, 2_000)
    }
  }

  for (let second = 0; second < 900; second++) {
    if (second < 30) void writeAgainAndAgain(`caller ${second}`)
    await clock.advance(1_000)
  }

  expect(refusedTwice).toEqual([])
  expect(done).toBeGreaterThan(80)
})

test('who is refused after others of the same domain is told their time, and shares their place', async () => {
  const { clock, quota } = await openQuota()
  const toldAt = async (domain: string, caller: string) => {
    const told = await refusalOf(quota.reserve(3, { callers: [caller], domain }).then(() => undefined))
    return told && clock.now() + told * 1_000
  }
  for (let n = 0; n < 6; n++) await write(quota, 'first')
  const told: (number | undefined)[] = []
  for (let n = 0; n < 20; n++) {
    told.push(await toldAt('one.com', `caller ${n}`))
    await clock.advance(1_000)
  }
  const other = await toldAt('other.com', 'other')

  expect(new Set(told)).toEqual(new Set([told[0]]))
  expect(other).toBeLessThan((told[0] ?? 0) + 1_000)
  await clock.advance((told[0] ?? 0) - clock.now())
  const again = quota.reserve(3, { callers: ['caller 7'], domain: 'one.com' })
  await clock.advance(1_000)
  expect((await again).callers).toHaveLength(20)
})

test('slots that are kept for a caller early are shared, also those of its second write', async () => {
  const { clock, quota } = await openQuota()
  const held = await quota.reserve(6)
  for (let n = 0; n < 4; n++) await write(quota, 'first')
  const ask = (caller: string, domain: string) =>
    refusalOf(quota.reserve(3, { callers: [caller], domain }).then(() => undefined))
  void ask('one', 'one.com')
  void ask('one', 'two.com')
  await clock.advance(10_000)
  quota.release(held)
  await clock.advance(1_000)
  void ask('other', 'two.com')
  await clock.advance(49_000)
  const again = quota.reserve(3, { callers: ['other'], domain: 'two.com' })
  await clock.advance(1_000)

  expect((await again).callers).toEqual(['one', 'other'])
})

test('a place that others share is kept, also where its first caller does not come back for another one', async () => {
  const { clock, quota } = await openQuota()
  const ask = (caller: string, domain: string) => quota.reserve(3, { callers: [caller], domain })
  const others = ['a.com', 'b.com', 'c.com', 'd.com', 'e.com']
  for (let n = 0; n < 6; n++) await write(quota, 'first')
  const writers = ['gone', ...others, 'gone']
  await Promise.allSettled(['one.com', ...others, 'two.com'].map((domain, at) => ask(writers[at] ?? '', domain)))
  await clock.advance(61_000)
  for (const domain of others) {
    const slots = await ask(domain, domain)
    for (let call = 0; call < 3; call++) await quota.take(slots)
  }

  await refusalOf(ask('loyal', 'two.com').then(() => undefined))
  await clock.advance(60_000)
  const again = ask('loyal', 'two.com')
  await clock.advance(1_000)

  expect((await again).callers).toEqual(['gone', 'loyal'])
})

test('a shared place is not taken for a write of another domain', async () => {
  const { clock, quota } = await openQuota()
  const writeTo = (domain: string, caller: string) =>
    refusalOf(quota.reserve(3, { callers: [caller], domain }).then(() => undefined))
  for (let n = 0; n < 6; n++) await write(quota, 'first')
  const told = (await writeTo('one.com', 'first of two')) ?? 0
  await writeTo('one.com', 'second of two')
  // They have the rest of the next window.
  for (let n = 0; n < 5; n++) await writeTo(`${n}.com`, `other ${n}`)

  await clock.advance(told * 1_000)
  void writeTo('two.com', 'first of two')
  await clock.advance(1_000)
  const done: string[] = []
  void writeTo('one.com', 'second of two').then(() => done.push('second of two'))
  await clock.advance(1_000)

  expect(done).toEqual(['second of two'])
})

test('who comes early does not take the place that others share', async () => {
  const { clock, quota } = await openQuota()
  const held = await quota.reserve(3)
  for (let n = 0; n < 5; n++) await write(quota, 'first')
  const ask = (caller: string) =>
    refusalOf(quota.reserve(3, { callers: [caller], domain: 'one.com' }).then(() => undefined))
  const asked = ['early', 'patient'].map(ask)
  await clock.advance(10_000) // The held slots might have been given back.
  const told = await Promise.all(asked)
  const hog = startHog(quota, clock, 30, (number) => `hog ${number}`)
  for (let second = 0; second < 20; second++) await hog.passSecond()
  quota.release(held) // The place gets these slots.
  await hog.passSecond()

  const early = await ask('early')
  for (let second = 21; second < 50; second++) await hog.passSecond()
  const patient = ask('patient')
  await hog.passSecond()

  expect([...told, early, await patient]).toEqual([50, 50, 29, undefined])
  await hog.end()
})

test('callers take turns: one write of each, then the second of each', async () => {
  const { clock, quota } = await openQuota()
  for (let n = 0; n < 6; n++) await write(quota, 'first')
  await clock.advance(55_000)
  const order: string[] = []
  const writes = ['hog', 'hog', 'hog', 'other', 'third', 'other'].map(async (caller) => {
    await write(quota, caller)
    order.push(caller)
  })

  await clock.advance(6_000)
  await Promise.all(writes)

  expect(order).toEqual(['hog', 'other', 'third', 'hog', 'other', 'hog'])
})

test('a place belongs to all callers whose writes were refused together', async () => {
  const { clock, quota } = await openQuota()
  for (let n = 0; n < 6; n++) await write(quota, 'first')
  const retryAfter = (await refusalOf(write(quota, 'one', 'two'))) ?? 0
  const hog = startHog(quota, clock, 30)

  for (let second = 0; second < retryAfter; second++) await hog.passSecond()

  const again = refusalOf(write(quota, 'two'))
  await hog.passSecond()
  expect(await again).toBeUndefined()
  await hog.end()
})

test('the slots of a caller who does not come back serve others ten seconds later', async () => {
  const { clock, quota } = await openQuota()
  for (let n = 0; n < 6; n++) await write(quota, 'first')
  const retryAfter = (await refusalOf(write(quota, 'absent'))) ?? 0
  await clock.advance(retryAfter * 1_000 + 9_999)
  expect(quota.windows.state(quota.now())[0]?.left).toBe(17)

  await clock.advance(1)

  expect(quota.windows.state(quota.now())[0]?.left).toBe(20)
})

test('a reader who comes back when told gets in, however many others read', async () => {
  const { clock, quota } = await openQuota()
  const read = (reader: string) => refusalOf(quota.take({ priority: 'read', callers: [reader] }))
  const readers = Array.from({ length: 27 }, (_, number) => `reader ${number}`)
  const refusals = await Promise.all(readers.map(read))
  const again = new Map<string, number | undefined>()

  for (let second = 1; second <= 125; second++) {
    await clock.advance(1_000)
    void read('newcomer')
    for (const [at, reader] of readers.entries())
      if (refusals[at] === second) void read(reader).then((refusal) => again.set(reader, refusal))
    await turn()
  }

  expect(refusals.filter((each) => each === undefined)).toHaveLength(10)
  expect([...again.values()]).toEqual(Array.from({ length: 17 }, () => undefined))
})

test('a reader who comes back when told gets in, however many write', async () => {
  const { clock, quota } = await openQuota()
  const writers = startHog(quota, clock, 12, (number) => `writer ${number}`)
  await writers.passSecond()
  const read = (reader: string) => refusalOf(quota.take({ priority: 'read', callers: [reader] }))
  const readers = ['one', 'two', 'three']
  const refusals = await Promise.all(readers.map(read))
  const again: (number | undefined)[] = []

  for (let second = 1; second <= 130; second++) {
    await writers.passSecond()
    for (const [at, reader] of readers.entries())
      if (refusals[at] === second) void read(reader).then((refusal) => again.push(refusal))
  }

  expect(again).toEqual([undefined, undefined, undefined])
  await writers.end()
})

test('refused readers who have used up their share stop no writer', async () => {
  const { clock, quota } = await openQuota()
  const readers = Array.from({ length: 40 }, (_, at) => quota.take({ priority: 'read', callers: [`reader ${at}`] }))
  await Promise.allSettled(readers)
  await clock.advance(1_000)

  const written = await Promise.all([1, 2, 3].map((number) => refusalOf(write(quota, `writer ${number}`))))

  expect(written).toEqual([undefined, undefined, undefined])
})

test('a read that was refused to several readers is the place of each', async () => {
  const { clock, quota } = await openQuota()
  for (let n = 0; n < 10; n++) await quota.take('read')
  const retryAfter = (await refusalOf(quota.take({ priority: 'read', callers: ['one', 'zone'] }))) ?? 0
  for (let n = 0; n < 20; n++) void refusalOf(quota.take({ priority: 'read', callers: ['hog'] }))

  await clock.advance(retryAfter * 1_000)
  const again = refusalOf(quota.take({ priority: 'read', callers: ['two', 'zone'] }))
  await clock.advance(1_000)

  expect(await again).toBeUndefined()
})

test('a reader who does not come back keeps no slots with its further places, those who come back keep theirs', async () => {
  const { clock, quota } = await openQuota()
  const read = (reader: string) => refusalOf(quota.take({ priority: 'read', callers: [reader] }))
  const refusals = await Promise.all(Array.from({ length: 40 }, (_, at) => read(at % 2 ? 'gone' : 'loyal')))
  const told = refusals.filter((retryAfter, at) => retryAfter && at % 2 === 0)
  const again: (number | undefined)[] = []

  for (let second = 1; second <= 185; second++) {
    await clock.advance(1_000)
    // One of them finds its zone in the cache, and leaves its place.
    for (const retryAfter of told.slice(1))
      if (retryAfter === second) void read('loyal').then((refusal) => again.push(refusal))
    await turn()
    // Ten of `loyal` are left; six of them hold the slots that were not used.
    if (second === 75) expect(quota.waiting).toBe(4)
  }

  expect(again).toEqual(Array.from(told.slice(1), () => undefined))
})

test('readers who wait, or were told to come back, never stop asynchronous batches', async () => {
  const { clock, quota } = await openQuota()
  const readers = Array.from({ length: 40 }, (_, at) => quota.take({ priority: 'read', callers: [`reader ${at}`] }))
  await Promise.allSettled(readers)

  const batch = quota.reserve(3, { priority: 'queued' })
  batch.catch(() => undefined) // Where it still waits at the end.
  await clock.advance(1_000)

  expect(quota.windows.state(quota.now())[0]?.left).toBe(7)
})

test('the reads of a caller do not put its writes behind those of others', async () => {
  const { clock, quota } = await openQuota()
  const reads = Array.from({ length: 100 }, () => quota.take({ priority: 'read', callers: ['own'] }))
  await Promise.allSettled(reads)
  const hog = startHog(quota, clock, 30)
  for (let second = 0; second < 5; second++) await hog.passSecond()

  const retryAfter = (await refusalOf(write(quota, 'own'))) ?? 0
  expect(retryAfter).toBeLessThanOrEqual(60)
  for (let second = 0; second < retryAfter; second++) await hog.passSecond()
  const again = refusalOf(write(quota, 'own'))
  await hog.passSecond()

  expect(await again).toBeUndefined()
  await hog.end()
})

test('a place gets no slots before the time that its caller was told, while others wait at another process', async () => {
  const clock = new FakeClock()
  const others = { holds: [], waiters: [{ priority: 'write', slots: 3 }] as Slots[], places: [], claims: [] }
  const state = () => ({ now: clock.now(), blockedUntil: 0, calls: [], ...others })
  const budget = {
    isShared: false,
    read: async () => state(),
    turn: async (_: number, take: Take) => void take(state()),
  }
  const quota = await CallQuota.open({ limits: parseRate('3/minute') ?? [], budget, clock })
  for (let n = 0; n < 3; n++) await quota.take('follow-up')

  expect(await refusalOf(write(quota, 'later'))).toBe(121)
  await clock.advance(60_500)
  quota.pause(0) // Takes a turn.
  await turn()
  const waiting = [quota.waiting]
  others.waiters = []
  quota.pause(0)
  await turn()

  expect([...waiting, quota.waiting]).toEqual([1, 0])
  quota.close()
})
