import { expect, test } from 'vitest'
import { CallQuota } from '../../src/budget/call-quota.ts'
import { parseRate } from '../../src/budget/call-windows.ts'
import { LocalBudget } from '../../src/budget/local-budget.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { openEmbedded } from '../support/ledger.ts'

/** A minute, and the margin for calls that arrive late. */
const minuteMs = 60_500

const registrarRate = '20/minute,700/hour,8000/day'

async function setUp(rate = registrarRate) {
  const clock = new FakeClock()
  const sql = openEmbedded(clock.now)
  const failures: unknown[] = []
  const onFailure = (error: unknown) => void failures.push(error)
  const open = () => new LocalBudget(sql, { account: 'account', clock, onFailure })
  let budget = open()
  const restart = async () => {
    await budget.settle()
    budget = open()
    return CallQuota.open({ limits: parseRate(rate) ?? [], budget, clock })
  }
  const quota = await restart()
  const settle = () => budget.settle()
  return { clock, quota, restart, settle, database: sql.database, failures }
}

const busy = (retryAfter: number) => ({
  status: 503,
  code: 'registrar_busy',
  message: expect.stringContaining(`${retryAfter} s`),
  headers: { 'retry-after': String(retryAfter) },
})

/** What became of a promise so far. */
function watch<Value>(promise: Promise<Value>) {
  const seen = { state: 'waiting' }
  promise.then(
    () => {
      seen.state = 'granted'
    },
    () => {
      seen.state = 'refused'
    },
  )
  return seen
}

const takeAll = async (quota: CallQuota, calls: number) => {
  for (let call = 0; call < calls; call++) await quota.take('write')
}

test.each(['', '20', '20/second', '0/minute', '20/minute,', '-1/hour', '20/minute;7/hour'])(
  'the rate %j is refused',
  (text) => {
    expect(parseRate(text)).toBeUndefined()
  },
)

test('a call waits for the window without room and is made once it has some', async () => {
  const { clock, quota } = await setUp('2/minute')
  await quota.take('write')
  await clock.advance(55_000)
  await quota.take('write')

  const third = watch(quota.take('write'))
  expect(quota.waiting).toBe(1)
  await clock.advance(5_499)
  expect(third.state).toBe('waiting')
  await clock.advance(1)

  expect(third.state).toBe('granted')
  expect(quota.windows.state(quota.now())).toMatchObject([{ window: 'minute', limit: 2, left: 0 }])
})

test('a call that no slot can reach within ten seconds is refused at once with a truthful Retry-After', async () => {
  const { clock, quota } = await setUp()
  await takeAll(quota, 20)
  await clock.advance(13_000)

  await expect(quota.take('write')).rejects.toMatchObject(busy(47))
  await clock.advance(47_500)
  await expect(quota.take('write')).resolves.toBeUndefined()
})

test('the narrowest window counts', async () => {
  const { clock, quota } = await setUp('2/minute,3/hour')
  for (let call = 0; call < 3; call++) {
    await quota.take('write')
    await clock.advance(minuteMs)
  }

  await expect(quota.take('write')).rejects.toMatchObject(busy(3419))
  expect(quota.windows.state(quota.now())).toMatchObject([
    { window: 'minute', left: 2 },
    { window: 'hour', left: 0 },
  ])
})

test('ten write rounds at once: six get all their slots, four are refused, none gets a part', async () => {
  const { clock, quota } = await setUp()
  const rounds = Array.from({ length: 10 }, () => quota.reserve(3))
  const states = rounds.map(watch)
  await clock.advance(0)
  expect(states.map(({ state }) => state)).toEqual([...Array(6).fill('granted'), ...Array(4).fill('waiting')])

  for (const round of rounds.slice(0, 6)) {
    const reservation = await round
    for (let call = 0; call < 3; call++) await quota.take(reservation)
  }

  await expect(rounds[6]).rejects.toMatchObject(busy(60))
  await Promise.allSettled(rounds)
  expect(states.slice(6).map(({ state }) => state)).toEqual(Array(4).fill('refused'))
  expect(quota.windows.state(quota.now())).toMatchObject([{ left: 2 }, { left: 682 }, { left: 7982 }])
})

test('a sweep yields to everything else that waits', async () => {
  const { clock, quota } = await setUp('12/minute')
  await takeAll(quota, 12)
  await clock.advance(minuteMs - 5_000)
  const order: string[] = []
  for (const priority of ['sweep', 'queued', 'read', 'write'] as const)
    void quota.take(priority).then(() => order.push(priority))

  await clock.advance(5_000)

  expect(order).toEqual(['write', 'read', 'queued', 'sweep'])
})

test('slots that a round leaves unused go to the next round without a wait', async () => {
  const { clock, quota } = await setUp('3/minute')
  const first = await quota.reserve(3)
  await quota.take(first)
  const second = watch(quota.reserve(2))
  await clock.advance(500)
  expect(second.state).toBe('waiting')

  quota.release(first)
  quota.release(first)
  await clock.advance(0)

  expect(second.state).toBe('granted')
  expect(quota.windows.state(quota.now())).toMatchObject([{ left: 0 }])
})

test('a reserved slot counts from the time of its call', async () => {
  const { clock, quota } = await setUp('2/minute')
  const round = await quota.reserve(2)
  await clock.advance(30_000)
  await quota.take(round)
  await quota.take(round)
  await clock.advance(51_000)

  const next = watch(quota.take('write'))
  expect(next.state).toBe('waiting')
  await clock.advance(9_499)
  expect(next.state).toBe('waiting')
  await clock.advance(1)
  expect(next.state).toBe('granted')
})

test('a further call of a round under way takes the slot that earlier writes and reads wait for', async () => {
  const { clock, quota } = await setUp('4/minute')
  const round = await quota.reserve(3)
  await quota.take('write')
  await clock.advance(51_000)
  for (let call = 0; call < 3; call++) await quota.take(round)
  const earlier = [watch(quota.take('read')), watch(quota.take('write'))]

  const further = watch(quota.take(round))
  await clock.advance(9_500)

  expect(further.state).toBe('granted')
  expect(earlier.map(({ state }) => state)).toEqual(['refused', 'refused'])
})

test('a held slot is used although a further call of another round waits for one', async () => {
  const { clock, quota } = await setUp('4/minute')
  const [first, second] = [await quota.reserve(2), await quota.reserve(2)]
  await quota.take(first)
  await quota.take(first)
  const further = watch(quota.take(first))

  await quota.take(second)
  await quota.take(second)

  expect(further.state).toBe('waiting')
  await clock.advance(minuteMs)
  expect(further.state).toBe('granted')
})

test('a round larger than a window gets what the window has', async () => {
  const { quota } = await setUp('2/minute')
  const round = await quota.reserve(3)

  expect(round.slots).toBe(2)
})

test('readers get half of each window, and writes the rest', async () => {
  const { quota } = await setUp('20/minute,24/hour')
  for (let call = 0; call < 10; call++) await quota.take('read')

  await expect(quota.take('read')).rejects.toMatchObject(busy(60))
  await expect(quota.reserve(10)).resolves.toMatchObject({ slots: 10 })
})

test('readers get half of the hour too', async () => {
  const { clock, quota } = await setUp('20/minute,24/hour')
  for (let call = 0; call < 12; call++) {
    await quota.take('read')
    await clock.advance(minuteMs)
  }

  await expect(quota.take('read')).rejects.toMatchObject({ code: 'registrar_busy' })
  await expect(quota.reserve(12)).resolves.toMatchObject({ slots: 12 })
})

test('waiting calls go by priority, then by arrival', async () => {
  const { clock, quota } = await setUp('8/minute')
  await takeAll(quota, 8)
  await clock.advance(55_000)
  const order: string[] = []
  const note = (name: string) => () => void order.push(name)

  const waiting = [
    quota.take('background').then(note('background')),
    quota.take('queued').then(note('queued')),
    quota.take('read').then(note('read 1')),
    quota.take('read').then(note('read 2')),
    quota.take('write').then(note('write')),
  ]
  await clock.advance(5_500)
  await Promise.all(waiting)

  expect(order).toEqual(['write', 'read 1', 'read 2', 'queued', 'background'])
})

test('asynchronous rounds wait however long, and leave slots to rounds with a client waiting', async () => {
  const { clock, quota } = await setUp('9/minute')
  const queued = Array.from({ length: 4 }, () => quota.reserve(3, { priority: 'queued' }))
  const states = queued.map(watch)
  await clock.advance(0)
  expect(states.map(({ state }) => state)).toEqual(['granted', 'granted', 'waiting', 'waiting'])

  await expect(quota.reserve(3)).resolves.toMatchObject({ slots: 3 })
  for (const round of queued.slice(0, 2)) {
    const reservation = await round
    while (reservation.slots > 0) await quota.take(reservation)
  }
  await clock.advance(minuteMs)

  expect(states.map(({ state }) => state)).toEqual(Array(4).fill('granted'))
})

test('reads are scarce while less than half of their share of the minute is left', async () => {
  const { clock, quota } = await setUp()
  for (let call = 0; call < 5; call++) await quota.take('read')
  await takeAll(quota, 5)
  expect(quota.windows.readsAreScarce(quota.now())).toBe(false)

  await quota.take('read')
  expect(quota.windows.readsAreScarce(quota.now())).toBe(true)
  await clock.advance(minuteMs)
  expect(quota.windows.readsAreScarce(quota.now())).toBe(false)
})

test('after the registrar reports too many calls none is made for a while, reserved or not', async () => {
  const { clock, quota } = await setUp()
  const round = await quota.reserve(3)
  quota.pause(1_000)

  const states = [watch(quota.take(round)), watch(quota.take('read'))]
  await clock.advance(0)
  await clock.advance(999)
  expect(states.map(({ state }) => state)).toEqual(['waiting', 'waiting'])
  await clock.advance(1)

  expect(states.map(({ state }) => state)).toEqual(['granted', 'granted'])
})

test('closing refuses everything that waits', async () => {
  const { quota } = await setUp('1/minute')
  await quota.take('write')
  const waiting = quota.take('background')

  quota.close()

  await expect(waiting).rejects.toMatchObject({ status: 503, code: 'registrar_unavailable' })
  expect(quota.waiting).toBe(0)
})

test('the time for many calls, one by one, counts the windows that they fill', async () => {
  const { quota } = await setUp('20/minute,700/hour')
  expect(quota.waitMs('read', 10)).toBe(0)
  expect(quota.waitMs('read', 11)).toBe(minuteMs)
  expect(quota.waitMs('background', 100)).toBe(14 * minuteMs)

  await takeAll(quota, 20)

  expect(quota.waitMs('write', 1)).toBe(minuteMs)
  expect(quota.waitMs('write', 21)).toBe(2 * minuteMs)
})

test('calls are counted across restarts, with the share that they belong to', async () => {
  const { quota, restart } = await setUp('20/minute')
  for (let call = 0; call < 10; call++) await quota.take('read')

  const restarted = await restart()

  expect(restarted.windows.state(restarted.now())).toMatchObject([{ left: 10 }])
  await expect(restarted.take('read')).rejects.toMatchObject({ code: 'registrar_busy' })
  await expect(restarted.take('write')).resolves.toBeUndefined()
})

test('calls stored by a clock that ran ahead block no longer than their window', async () => {
  const { clock, restart, quota } = await setUp('1/minute')
  await clock.advance(86_400_000)
  await quota.take('write')
  await clock.advance(-86_400_000)

  const restarted = await restart()
  await clock.advance(minuteMs)

  await expect(restarted.take('write')).resolves.toBeUndefined()
})

test('a full disk fails no call: calls are counted in memory and stored once there is room', async () => {
  const { quota, database, failures, restart, settle } = await setUp('3/minute')
  const pages = Number(database.pragma('page_count', { simple: true }))
  const ballast = database.prepare("insert into calls (account, at, priority) values ('', ?, ?)")
  database.pragma(`max_page_count = ${pages}`)
  for (let full = false; !full; ) {
    try {
      ballast.run(1, 'x'.repeat(500))
    } catch {
      full = true
    }
  }
  database.exec('create trigger full_disk before delete on calls begin select raise(abort, "full"); end')

  await takeAll(quota, 3)

  await settle()
  expect(failures).toHaveLength(1)
  await expect(quota.take('write')).rejects.toMatchObject({ code: 'registrar_busy' })

  await settle() // A transaction that is under way would restore the trigger.
  database.exec('drop trigger full_disk')
  database.pragma(`max_page_count = ${pages + 100}`)
  const restarted = await restart()
  expect(restarted.windows.state(restarted.now())).toMatchObject([{ left: 0 }])
})
