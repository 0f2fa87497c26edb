import { HttpError } from '@domains-and-files/http'
import { name, type Sql, sql } from '@domains-and-files/persistence'
import { describe, expect, test } from 'vitest'
import { deleteHistory } from '../../src/ledger/history-pruning.ts'
import { effectOf } from '../../src/ledger/ledger.ts'
import { begin, confirm, domain, enqueue, openLedger, requestBy, row, zoneOf } from '../support/ledger.ts'
import { countZones, ledgers } from '../support/ledgers.ts'

const page = { page: 1, page_size: 100 }
const [a, b] = [row('a'), row('b')]

// As a restore does.
const holdQueued = (database: Sql) => database.run(sql`update ${name('changes')} set is_held = 1`)

describe.each(ledgers)('%s', (_name, open) => {
  test('equal zones are stored once, whatever the order of their rows', async () => {
    const store = await open()
    const { ledger } = store

    await confirm(ledger, zoneOf(a, b), zoneOf(a))
    await confirm(ledger, zoneOf(a), zoneOf(b, a))

    expect(await countZones(store)).toBe(2)
  })

  test('a change is found with its own rows and both zones', async () => {
    const { ledger } = await open()
    const id = await confirm(ledger, zoneOf(a), zoneOf(a, b))

    expect(await ledger.zonesOf(id)).toMatchObject({
      before: zoneOf(a),
      after: zoneOf(a, b),
      added: [b],
      removed: [],
    })
  })

  test('lists are filtered by domain, author, status, time and what the reader may see', async () => {
    const { ledger } = await open()
    const other = requestBy('editor', { domain: 'shop.example.co.uk' })
    await confirm(ledger, zoneOf(a), zoneOf(b))
    await confirm(ledger, zoneOf(a), zoneOf(b), other)
    await enqueue(ledger, requestBy('admin'))
    const count = async (filter: object) => (await ledger.list(filter, page)).total

    expect(await count({})).toBe(3)
    expect(await count({ domain })).toBe(2)
    expect(await count({ by: 'editor' })).toBe(1)
    expect(await count({ status: 'queued' })).toBe(1)
    expect(await count({ sentOnly: true })).toBe(2)
    expect(await count({ since: new Date(Date.now() + 60_000) })).toBe(0)
    expect(await count({ domains: ['*.co.uk'] })).toBe(1)
    expect(await count({ domains: ['o.uk', 'xample.com'] })).toBe(0)
    expect(await count({ domains: [domain, '*.example.co.uk'] })).toBe(3)
    expect(await count({ domains: [] })).toBe(0)
  })

  test('a change that is sent cannot be cancelled, and a cancelled one cannot be sent', async () => {
    const { ledger } = await open()
    const [first, second] = [await enqueue(ledger, requestBy('admin')), await enqueue(ledger, requestBy('admin'))]

    expect(await ledger.cancel(first)).toMatchObject({ status: 'cancelled' })
    expect((await begin(ledger, [first, second])).gone).toEqual(new Set([first]))
    expect((await ledger.find(second))?.status).toBe('queued')
    expect((await begin(ledger, [second])).gone.size).toBe(0)
    await expect(ledger.cancel(second)).rejects.toMatchObject({ status: 409, code: 'change_not_queued' })
    expect((await ledger.find(first))?.status).toBe('cancelled')
  })

  test('a change that was not sent, and was then found made already, has no event', async () => {
    const { ledger, sql: database } = await open()
    const id = await enqueue(ledger, requestBy('admin'))
    const send = await begin(ledger, [id])
    const queued = { id, status: 'queued' as const, isUnsent: true }
    await ledger.endSend(send, { state: 'unsent', unanswered: 0, changes: [queued] })

    const effect = effectOf(zoneOf(b), zoneOf(b))
    await ledger.endChanges(domain, [{ id, status: 'confirmed', isUnsent: true, effect }])

    expect((await ledger.find(id))?.status).toBe('confirmed')
    expect(await database.all(sql`select type from ${name('events')}`)).toEqual([])
  })

  test('what the registrar refused when the process ended is still queued, or cancelled', async () => {
    const { ledger, endProcess, sql: database } = await open()
    const { id: awaited } = await ledger.acceptAwaited(requestBy('admin'))
    const queued = await enqueue(ledger, requestBy('admin'))
    const send = await begin(ledger, [awaited, queued])
    await ledger.endSend(send, { state: 'refused', unanswered: 0, changes: [] })

    await endProcess()
    await database.run(sql`update ${name('changes')} set awaited_until = 0`)
    await ledger.recover()

    const statuses = (await ledger.list({}, page)).changes.map(({ status }) => status)
    expect(statuses).toEqual(['queued', 'cancelled'])
  })

  test('a late write whose repair was never sent is to be repaired again', async () => {
    const { ledger } = await open()
    const send = (zone = zoneOf(b), repairs: number[] = []) =>
      ledger.startSend({ base: zoneOf(a), zone, intents: [], repairs })
    const late = await send()
    await ledger.endSend(late, {
      state: 'settled',
      found: zoneOf(b),
      unanswered: 1,
      changes: [],
    })
    await confirm(ledger, zoneOf(b), zoneOf(a, b))
    const repair = await send(zoneOf(a, b), [late.id])
    const during = (await ledger.sendsOf(domain)).late

    await ledger.endSend(repair, { state: 'unsent', unanswered: 0, changes: [] })

    expect(during).toEqual([])
    expect((await ledger.sendsOf(domain)).late).toMatchObject([{ id: late.id }])
  })

  test('pruning deletes old changes and the zones that only they refer to', async () => {
    const store = await open()
    const { ledger, setTime } = store
    await setTime(-10 * 86_400_000)
    await confirm(ledger, zoneOf(a), zoneOf(b))
    await setTime(0)
    await confirm(ledger, zoneOf(b), zoneOf(a, b))

    const deleted = await deleteHistory(store.sql, new Date(Date.now() - 5 * 86_400_000))

    expect(deleted).toBe(1)
    expect((await ledger.list({}, page)).total).toBe(1)
    expect(await countZones(store)).toBe(2)
  })

  test('pruning keeps the last known zone, what a send has found, and a send without a final outcome', async () => {
    const store = await open()
    const { ledger, setTime } = store
    const shop = { ...zoneOf(row('shop')), domain: 'shop.example.co.uk' }
    await setTime(-10 * 86_400_000)
    await ledger.knownZones.compare(shop, { ageMs: 0, isIgnored: () => false })
    const send = await begin(ledger, [await enqueue(ledger, requestBy('admin'))])
    const [id = 0] = send.changeIds
    const change = { id, status: 'unconfirmed' as const, verified: false }
    await ledger.endSend(send, { state: 'unknown', found: zoneOf(a, b), unanswered: 1, changes: [change] })
    await setTime(0)

    expect(await deleteHistory(store.sql, new Date(Date.now() - 5 * 86_400_000))).toBe(1)

    expect(await ledger.knownZones.find(shop.domain)).toEqual(shop)
    expect((await ledger.sendsOf(domain)).open).toMatchObject([{ id: send.id, state: 'unknown' }])
    expect(await countZones(store)).toBe(4)
  })

  test('a list of changes of full zones is small, and reads no zone', async () => {
    const { ledger, sql: database } = await open()
    const full = (n: number) =>
      zoneOf(...Array.from({ length: 150 }, (_, at) => row(`t${at}`, `${n}${'x'.repeat(2_480)}`, 'TXT')))
    for (let n = 0; n < 10; n++) await confirm(ledger, full(n), full(n + 1))
    await database.run(sql`delete from ${name('zones')}`)

    const { changes, total } = await ledger.list({ domain }, page)

    expect(total).toBe(10)
    expect(JSON.stringify(changes).length).toBeLessThan(100_000)
    expect(changes[0]?.summary).toMatchObject({
      kept: 0,
      omitted: { added: 149, removed: 149 },
      added: [{ name: 't0' }],
    })
  })

  test('what has ended keeps no request', async () => {
    const { ledger, sql: database } = await open()
    const request = requestBy('admin')
    const [cancelled, refused, unconfirmed, queued] = [
      await enqueue(ledger, request),
      await enqueue(ledger, request),
      await enqueue(ledger, request),
      await enqueue(ledger, request),
    ]
    const end = { verified: false, warnings: [] }
    const error = new HttpError(422, 'registrar_rejected', 'no')

    await ledger.cancel(cancelled)
    await ledger.endChanges(domain, [
      { id: refused, status: 'refused', isUnsent: true, error },
      { ...end, id: unconfirmed, status: 'unconfirmed' },
      { ...end, id: queued, status: 'queued' },
    ])
    await confirm(ledger, zoneOf(a), zoneOf(b))

    const kept = await database.all(sql`select id from ${name('changes')} where request is not null order by id`)
    expect(kept).toEqual([{ id: queued }])
  })

  test('an idempotency key stands for one request for 24 hours', async () => {
    const { ledger, setTime } = await open()
    const request = requestBy('admin', { idempotency: { key: 'key', fingerprint: 'one' } })
    const hour = 3_600_000

    const ids: number[] = []
    for (const hours of [-24, -1, 0]) {
      await setTime(hours * hour)
      ids.push(await enqueue(ledger, request))
    }

    const [first, repeated, later] = ids
    expect(repeated).toBe(first)
    expect(later).not.toBe(first)
  })

  test('a user may queue a thousand changes, over all tokens, and all users ten thousand', async () => {
    const { ledger, sql: database } = await open()
    const queueMore = (user: string, token: string, count: number) =>
      database.run(sql`with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${count})
        insert into ${name('changes')} (domain, status, by, caller, request_id, is_async, verified, created_at, warnings,
          request)
        select 'example.com', 'queued', ${user}, ${token}, 'request', 1, 0, 0, '[]', '{}' from numbers`)
    const tooMany = { status: 429, code: 'too_many_changes', headers: { 'retry-after': '60' } }
    const by = (user: string, token = user) => requestBy(user, { callerId: token })
    await queueMore('first', 'first', 500)
    await queueMore('first', 'token', 499)

    const last = await enqueue(ledger, by('first'))

    await expect(enqueue(ledger, by('first'))).rejects.toMatchObject(tooMany)
    await expect(enqueue(ledger, by('first', 'another token'))).rejects.toMatchObject(tooMany)
    await enqueue(ledger, by('second'))
    await ledger.cancel(last)
    await enqueue(ledger, by('first'))
    await queueMore('third', 'third', 8_999)
    await expect(enqueue(ledger, by('fourth'))).rejects.toMatchObject(tooMany)
    expect(await ledger.countQueued()).toEqual({ queued: 10_000, held: 0 })
  })

  test('domains with queued changes take turns by caller, and those of one caller by age', async () => {
    const { ledger } = await open()
    const queue = (caller: string, domain: string) => enqueue(ledger, requestBy('admin', { callerId: caller, domain }))
    for (const domain of ['a.com', 'b.com', 'a.com', 'c.com', 'd.com']) await queue('many', domain)
    for (const domain of ['e.com', 'd.com']) await queue('few', domain)

    expect(await ledger.queuedDomains()).toEqual(['a.com', 'e.com', 'b.com', 'd.com', 'c.com'])
  })

  test('a batch takes 16 MiB of queued changes, and is told where the others begin', async () => {
    const { ledger, sql: database } = await open()
    const requests = Array.from({ length: 4 }, () => requestBy('admin'))
    const ids = []
    for (const request of requests) ids.push(await enqueue(ledger, request))
    const [first = 0, second = 0, third = 0, fourth] = ids
    await database.run(sql`update ${name('changes')} set request = request || ${' '.repeat(6 << 20)}`)
    const found = async (known: number[]) => {
      const { ready, upTo } = await ledger.ready(domain, known)
      return [ready.map(({ id }) => id), upTo]
    }

    const all = [await found([]), await found([first, second]), await found([first, second, third])]
    await ledger.cancel(first)

    expect(all).toEqual([
      [[first, second, third], third],
      [[third], third],
      [[], third],
    ])
    expect(await found([])).toEqual([[second, third, fourth], Infinity])
  })

  test('what a restored backup has queued waits for an admin', async () => {
    const { ledger, sql: database } = await open()
    const restored = [await enqueue(ledger, requestBy('admin')), await enqueue(ledger, requestBy('admin'))]
    await holdQueued(database)
    const later = await enqueue(ledger, requestBy('admin'))
    const queued = async () => (await ledger.ready(domain)).ready.map(({ id }) => id)
    const during = [await queued(), (await begin(ledger, restored)).gone.size, await ledger.countQueued()]

    const cancelled = await ledger.cancel(restored[0] ?? 0)
    const released = await ledger.endHold({ cancel: false })

    expect(during).toEqual([[later], 2, { queued: 1, held: 2 }])
    expect([cancelled?.status, released]).toEqual(['cancelled', 1])
    expect(await queued()).toEqual([restored[1], later])
  })

  test('an admin can cancel all that a restored backup has queued', async () => {
    const { ledger, sql: database } = await open()
    const restored = await enqueue(ledger, requestBy('admin'))
    await holdQueued(database)
    const later = await enqueue(ledger, requestBy('admin'))

    const elsewhere = { cancel: true, domains: [`*.${domain}`] }
    expect(await ledger.endHold(elsewhere)).toBe(0)
    expect(await ledger.endHold({ ...elsewhere, cancel: false })).toBe(0)
    const cancelled = await ledger.endHold({ cancel: true, domains: [domain] })

    const statuses = [restored, later].map(async (id) => (await ledger.find(id))?.status)
    expect(cancelled).toBe(1)
    expect(await Promise.all(statuses)).toEqual(['cancelled', 'queued'])
  })
})

test('the only process cancels what an earlier process left waiting', async () => {
  const { ledger } = openLedger()
  const { id: awaited } = await ledger.acceptAwaited(requestBy('admin'))
  const queued = await enqueue(ledger, requestBy('admin'))

  await ledger.recover()

  expect((await ledger.ready(domain)).ready.map(({ id }) => id)).toEqual([queued])
  expect((await ledger.find(awaited))?.status).toBe('cancelled')
})
