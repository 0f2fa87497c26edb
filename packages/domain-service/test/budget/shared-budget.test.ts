import type { Postgres } from '@domains-and-files/persistence'
import { expect, test, vi } from 'vitest'
import { CallQuota } from '../../src/budget/call-quota.ts'
import { type Priority, parseRate } from '../../src/budget/call-windows.ts'
import { SharedBudget } from '../../src/budget/shared-budget.ts'
import { makeDatabase, stopDatabaseTime } from '../support/databases.ts'
import { realRate } from '../support/start.ts'

/** The quotas of some replicas of one account. */
async function openQuotas(count: number, rate: string, maxWaitMs = 500) {
  const stack = new AsyncDisposableStack()
  const { postgres } = stack.use(await makeDatabase())
  const open = async (replica: string, account = 'account') => {
    const quota = await CallQuota.open({
      limits: parseRate(rate) ?? [],
      budget: new SharedBudget(postgres, { account, replica }),
      maxWaitMs,
    })
    stack.defer(() => quota.close())
    return quota
  }
  const quotas: [CallQuota, ...CallQuota[]] = [await open('0')]
  while (quotas.length < count) quotas.push(await open(String(quotas.length)))
  return { postgres, quotas, open, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

/** What the replicas tell each other. */
const readShares = (postgres: Postgres) =>
  postgres.query<{ held: object[]; waiting: object[]; claims: object[] }>(
    `select share::json -> 'held' held, share::json -> 'waiting' waiting, share::json -> 'claims' claims
      from domain_service.call_shares order by replica`,
  )

const slots = (count: number) => [{ priority: 'write', slots: count }]

const leftOf = (quota: CallQuota | undefined) => quota?.windows.state(quota.now())[0]?.left

test('three replicas that ask at once get no more calls together than the account has', async () => {
  await using set = await openQuotas(3, '20/minute')

  const takes = Array.from({ length: 60 }, (_, n) => set.quotas[n % 3]?.take('write'))
  const ends = await Promise.allSettled(takes)

  expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(20)
  const refused = ends.find((end) => end.status === 'rejected')
  expect(refused?.reason).toMatchObject({ status: 503, code: 'registrar_busy' })
  const [row] = await set.postgres.query<{ n: number }>('select count(*) as n from domain_service.calls')
  expect(row?.n).toBe(20)
})

test('slots that one replica holds are taken for the others, until it releases them', async () => {
  await using set = await openQuotas(2, '4/minute')
  const [first, second] = set.quotas
  const reservation = await first.reserve(3)

  const refused = await second?.reserve(3).catch((error: unknown) => error)
  await first.take(reservation)
  first.release(reservation)
  // The release is recorded in the background.
  const held = await vi.waitFor(() => second?.reserve(3), { timeout: 600_000 })

  expect(refused).toMatchObject({ code: 'registrar_busy' })
  expect(held?.slots).toBe(3)
})

test('a caller is told a time after those that other replicas told their callers', async () => {
  await using set = await openQuotas(2, '3/minute')
  const [first, second] = set.quotas
  for (const clock of ['now_ms', 'lease_ms'] as const) await stopDatabaseTime(set.postgres, 0, clock)
  const busyFor = (quota: CallQuota | undefined, caller: string) =>
    quota?.reserve(3, { callers: [caller] }).catch(({ headers }) => Number(headers['retry-after']))
  await Promise.all([first.take('write'), first.take('write'), first.take('write')])

  const told = [await busyFor(first, 'a'), await busyFor(second, 'b')]

  expect(told).toEqual([60, 121]) // With the margin of the first.
})

/** All calls of a minute are made; a caller of the first replica is told to come back after it. */
async function refuseAtFirst({ quotas: [first], postgres }: Awaited<ReturnType<typeof openQuotas>>) {
  await stopDatabaseTime(postgres, 0)
  await stopDatabaseTime(postgres, 0, 'lease_ms') // What the replicas tell each other does not expire.
  for (let n = 0; n < 3; n++) await first.take('write')
  await expect(first.reserve(3, { callers: ['told'] })).rejects.toMatchObject({ headers: { 'retry-after': '60' } })
}

test('a caller who was refused gets in at another replica, with the slots that the first one holds for it', async () => {
  await using set = await openQuotas(2, '3/minute')
  const [, second] = set.quotas
  await refuseAtFirst(set)
  await stopDatabaseTime(set.postgres, 60_500)
  await expect.poll(() => readShares(set.postgres)).toMatchObject([{ held: slots(3) }])

  const told = await second?.reserve(3, { callers: ['told'] })

  expect(told?.slots).toBe(3)
  await expect
    .poll(() => readShares(set.postgres))
    .toMatchObject([
      { held: [], waiting: [] },
      { held: slots(3), claims: [] },
    ])
})

test('a caller who was refused by a replica that has stopped goes before those who wait at another one', async () => {
  await using set = await openQuotas(2, '3/minute', 10_000)
  const [first, second] = set.quotas
  await refuseAtFirst(set)
  first.close()
  await stopDatabaseTime(set.postgres, 55_000)
  await expect.poll(() => second?.now()).toBeGreaterThan(Date.UTC(2100, 0))
  const other = second?.reserve(3, { callers: ['other'] })
  await expect.poll(() => second?.waiting).toBe(1)
  const told = second?.reserve(3, { callers: ['told'] })
  await expect.poll(() => readShares(set.postgres)).toMatchObject([{}, { waiting: [...slots(3), ...slots(3)] }])
  await stopDatabaseTime(set.postgres, 60_500)

  expect((await told)?.slots).toBe(3)
  await stopDatabaseTime(set.postgres, 90_000)
  await expect(other).rejects.toMatchObject({ code: 'registrar_busy' })
})

/** Two callers are refused for one domain, each at another replica, and one for another domain; when each is told to come. */
async function refuseAtBoth({ quotas: [first, second], postgres }: Awaited<ReturnType<typeof openQuotas>>) {
  for (const clock of ['now_ms', 'lease_ms'] as const) await stopDatabaseTime(postgres, 0, clock)
  for (let n = 0; n < 3; n++) await first.take('write')
  const toldBy = (quota: CallQuota | undefined, caller: string, domain: string) =>
    quota?.reserve(3, { callers: [caller], domain }).catch(({ headers }) => Number(headers['retry-after']))
  return [
    await toldBy(first, 'a', 'one.com'),
    await toldBy(second, 'b', 'one.com'),
    await toldBy(second, 'c', 'other.com'),
    await toldBy(first, 'd', 'other.com'),
  ]
}

test('who is refused after others of the same domain at another replica is told their time, and shares their place', async () => {
  await using set = await openQuotas(2, '3/minute')
  const [first] = set.quotas

  const told = await refuseAtBoth(set)
  await stopDatabaseTime(set.postgres, 60_500)
  await expect.poll(() => readShares(set.postgres)).toMatchObject([{ held: [{ callers: ['a', 'b'] }] }, {}])
  const again = await first.reserve(3, { callers: ['a'], domain: 'one.com' })

  expect(told).toEqual([60, 60, 121, 121])
  expect(again.callers).toEqual(['a', 'b'])
})

test('who shares a place of another replica gets in where it was refused, also after the other one has stopped', async () => {
  await using set = await openQuotas(2, '3/minute')
  const [first, second] = set.quotas
  await refuseAtBoth(set)
  first.close()
  await stopDatabaseTime(set.postgres, 60_500)

  const again = await second?.reserve(3, { callers: ['b'], domain: 'one.com' })

  expect(again?.callers.toSorted()).toEqual(['a', 'b'])
  expect(leftOf(second)).toBe(0)
})

test('slots that a replica keeps for an absent caller are free for the others when it stops', async () => {
  await using set = await openQuotas(2, '4/minute')
  const [first, second] = set.quotas
  const reservation = await first.reserve(3)
  const refused = await first.reserve(3, { callers: ['absent'] }).catch((error: unknown) => error)
  first.release(reservation)
  await expect.poll(() => first.waiting).toBe(0) // The slots are held for the absent caller.

  first.close()
  const held = await vi.waitFor(() => second?.reserve(3), { timeout: 600_000 })

  expect(refused).toMatchObject({ code: 'registrar_busy' })
  expect(held?.slots).toBe(3)
})

test('slots that a replica of another version holds for a priority of its own are taken', async () => {
  await using set = await openQuotas(2, '4/minute')
  const [first, second] = set.quotas
  await first.reserve(3, { priority: 'of another version' as Priority })

  await expect(second?.reserve(3)).rejects.toMatchObject({ code: 'registrar_busy' })
})

test('slots that a dead replica held come free', async () => {
  await using set = await openQuotas(1, '3/minute')
  const [quota] = set.quotas
  await set.postgres.query(`insert into domain_service.call_shares (account, replica, share, at)
    values ('account', 'dead', '${JSON.stringify({ ...none, held: slots(3) })}', domain_service.lease_ms())`)
  const refused = await quota.take('write').catch((error: unknown) => error)

  await set.postgres.query('update domain_service.call_shares set at = 0')

  expect(refused).toMatchObject({ code: 'registrar_busy' })
  await expect(quota.take('write')).resolves.toBeUndefined()
})

test('a write that waits at one replica goes before the reads of another', async () => {
  await using set = await openQuotas(2, '4/minute', 20_000)
  const [first, second] = set.quotas
  const reservation = await first.reserve(4)
  const order: string[] = []

  const write = first.reserve(3).then(() => order.push('write'))
  await expect.poll(() => first.waiting).toBe(1)
  await expect.poll(() => readShares(set.postgres)).toMatchObject([{ waiting: slots(3) }])
  const read = second?.take('read').then(() => order.push('read'))
  await expect.poll(() => second?.waiting).toBe(1)
  first.release(reservation)
  await Promise.all([write, read])

  expect(order).toEqual(['write', 'read'])
})

test('calls are counted across restarts, and of each account alone', async () => {
  await using set = await openQuotas(1, '5/minute')
  for (let n = 0; n < 3; n++) await set.quotas[0].take('write')

  const restarted = await set.open('later')
  const other = await set.open('later', 'another account')

  expect([leftOf(restarted), leftOf(other)]).toEqual([2, 5])
})

test('a replica sees what the others have taken without asking for calls itself', async () => {
  await using set = await openQuotas(2, '5/minute')
  const [first, second] = set.quotas

  await second?.take('write')

  await expect.poll(() => leftOf(first)).toBe(4)
})

test('after the registrar reported too many calls no replica calls it for that time', async () => {
  await using set = await openQuotas(2, '5/minute')
  const [first, second] = set.quotas

  first.pause(60_000)
  await expect.poll(() => first.waitMs('write', 1)).toBeGreaterThan(50_000)

  await expect(second?.take('write')).rejects.toMatchObject({ code: 'registrar_busy' })
})

const none = { calls: [], held: [], waiting: [], claims: [] }

test('what other replicas of the account hold and wait for counts until it expires, or they have it no more', async () => {
  await using database = await makeDatabase()
  const { postgres } = database
  const open = (replica: string, account = 'account') => new SharedBudget(postgres, { account, replica })
  const [one, other, foreign] = [open('one'), open('other'), open('other', 'another account')]
  const priority: Priority = 'write'
  const share = { ...none, held: [{ priority, slots: 2 }], waiting: [{ priority, slots: 3 }] }
  const unknown = { priority: 'of another version' as Priority, slots: 1 }
  await one.turn(0, () => share)
  await foreign.turn(0, () => share)
  await other.turn(0, () => ({ ...share, waiting: [...share.waiting, unknown] }))

  const before = await one.read()
  await one.turn(0, () => none)
  const after = await other.read()
  // Sooner than the Retry-After of those whom these slots refuse.
  await postgres.query('update domain_service.call_shares set at = at - 60000')

  expect(before).toMatchObject({ holds: share.held, waiters: share.waiting })
  expect(after).toMatchObject({ holds: [], waiters: [] })
  expect(await one.read()).toMatchObject({ holds: [], waiters: [] })
})

test('a shorter pause does not end a longer one, and a call deletes what has expired', async () => {
  await using database = await makeDatabase()
  const { postgres } = database
  const budget = new SharedBudget(postgres, { account: 'account', replica: 'one' })
  await postgres.query(`insert into domain_service.calls (account, at, priority) values ('account', 1, 'write')`)
  await postgres.query(`insert into domain_service.call_shares (account, replica, share, at)
    values ('account', 'dead', '${JSON.stringify(none)}', 1)`)

  await budget.turn(60_000, () => none)
  const { blockedUntil } = await budget.read()
  await budget.turn(1, () => ({ ...none, calls: ['write'] }))

  expect(blockedUntil).toBeGreaterThan(0)
  const another = new SharedBudget(postgres, { account: 'account', replica: 'two' })
  expect(await another.read()).toMatchObject({ blockedUntil, calls: [{ priority: 'write' }] })
  const left = await postgres.query(`select priority from domain_service.calls
    union all select replica from domain_service.call_shares where replica = 'dead'`)
  expect(left).toHaveLength(1)
})

/** At each of these seconds of the database's clock, three replicas take as many calls as they get. */
async function takeAt(
  { postgres, quotas }: Awaited<ReturnType<typeof openQuotas>>,
  seconds: number[],
  priorities: Priority[],
) {
  for (const second of seconds) {
    await stopDatabaseTime(postgres, second * 1_000)
    const takes = quotas.flatMap((quota) =>
      Array.from({ length: 8 }, (_, n) => quota.take(priorities[n % priorities.length] ?? 'read')),
    )
    await Promise.allSettled(takes)
  }
}

/** Calls of these priorities in all, and the most in any minute and in any hour. */
async function countCalls(postgres: Postgres, priorities: Priority[]) {
  const [row] = await postgres.query<{ total: number; minute: number; hour: number }>(
    `select count(*) as total, max(minute) as minute, max(hour) as hour from (
       select count(*) over (order by at range between 59999 preceding and current row) as minute,
         count(*) over (order by at range between 3599999 preceding and current row) as hour
       from domain_service.calls where priority = any($1)) windows`,
    [priorities],
  )
  return row
}

// Two steps are a minute and the margin for calls that arrive late.
const secondsUntil = (end: number) => Array.from({ length: end / 30.25 }, (_, n) => n * 30.25)

test('three replicas at the real rate together make as many calls as each window has, and never more', async () => {
  await using set = await openQuotas(3, realRate, 0)

  await takeAt(set, secondsUntil(4_260), ['write'])

  // In the second hour the calls of the first ten minutes are free again.
  expect(await countCalls(set.postgres, ['write'])).toEqual({ total: 900, minute: 20, hour: 700 })
})

test('readers of all replicas together get half of each window, and writers the rest', async () => {
  await using set = await openQuotas(3, realRate, 0)

  await takeAt(set, secondsUntil(2_400), ['read'])
  await takeAt(set, [2_410], ['write'])

  expect(await countCalls(set.postgres, ['read'])).toEqual({
    total: 350,
    minute: 10,
    hour: 350,
  })
  expect(await countCalls(set.postgres, ['write'])).toMatchObject({ total: 20 })
})

test('after an outage a replica counts the calls of a database that has lost some, and gives their ids again', async () => {
  await using set = await openQuotas(2, '20/minute')
  const { postgres, quotas } = set
  const [first, second] = quotas
  for (let count = 0; count < 6; count++) await first.take('write')
  const read = vi.spyOn(postgres, 'get').mockRejectedValue(new Error('away'))
  await expect.poll(() => read).toHaveBeenCalled()
  await postgres.query('delete from domain_service.calls')
  await postgres.query('alter table domain_service.calls alter column id restart')
  for (let count = 0; count < 5; count++) await second?.take('write')

  read.mockRestore()

  await expect.poll(() => leftOf(first)).toBe(15)
})
