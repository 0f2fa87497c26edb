import { promises } from 'node:dns'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import { setImmediate } from 'node:timers/promises'
import { systemClock } from '@domains-and-files/http'
import { render, sql } from '@domains-and-files/persistence'
import { Webhook as Verifier } from 'standardwebhooks'
import { describe, expect, it, onTestFinished, test, vi } from 'vitest'
import { lossyDatabase } from '../../../test/support/lossy-database.ts'
import { eventId } from '../src/outbox.ts'
import { sendDelivery } from '../src/webhooks/dispatcher.ts'
import { retryDelaysMs, WebhookStore } from '../src/webhooks/webhook-store.ts'
import { isRefused } from '../src/webhooks/webhook-urls.ts'
import { forms, openPostgres, start } from './support/databases.ts'
import { append, openProcess, openReceiver } from './support/deliveries.ts'

const settled = (store: WebhookStore, id: string, count: number) =>
  expect.poll(async () => (await store.deliveries(id)).filter(({ tries }) => tries > 0).length).toBe(count)

const webhookOf = async (store: WebhookStore, id: string) => (await store.list()).find((each) => each.id === id)

describe.each(forms)('webhooks in $form', ({ form, open }) => {
  it('get the events of their types and domains, signed as Standard Webhooks has it', async () => {
    await using stack = new AsyncDisposableStack()
    const db = stack.use(await open())
    const receiver = stack.use(await openReceiver(() => 204))
    const { log, store } = openProcess(db.sql, stack)
    await append(db, 1)
    const by = { createdBy: 'admin', position: await log.end() }
    const all = await store.create({ url: receiver.url('/all') }, by)
    await store.create({ url: receiver.url('/some'), types: ['zone.changed'], domains: ['example.org'] }, by)
    await append(db, 2, { type: 'change.refused', domain: 'example.org' })
    await append(db, 3, { domain: 'example.org' })
    await append(db, 4)
    const received = await receiver.count(4)
    const numbers = (path: string) => received.filter((each) => each.path === path).map(({ body }) => body.data?.number)
    expect(numbers('/all')).toEqual([2, 3, 4])
    expect(numbers('/some')).toEqual([3])
    const [first] = received.filter(({ path }) => path === '/all')
    expect(first?.body.id).toBe(first?.id)
    const now = Date.now()
    expect(Math.abs(now - 1000 * Number(first?.headers['webhook-timestamp']))).toBeLessThan(240_000)
    const verifier = new Verifier(all.secret)
    expect(verifier.verify(first?.text ?? '', first?.headers ?? {})).toEqual(first?.body)
    expect(() => verifier.verify(`${first?.text} `, first?.headers ?? {})).toThrow()
    await settled(store, all.id, 3)
    expect(await store.deliveries(all.id)).toMatchObject(
      [4, 3, 2].map(() => ({ status: 'delivered', tries: 1, response_status: 204 })),
    )
  })

  it('cost no transaction while nothing is to be delivered', async () => {
    await using db = await open()
    const store = new WebhookStore(db.sql)
    const position = eventId(1)
    await store.create({ url: 'https://hooks.example.com/' }, { createdBy: 'admin', position })
    const updates: string[] = []
    const get = db.sql.get.bind(db.sql)
    vi.spyOn(db.sql, 'get').mockImplementation((statement) => {
      if (render(statement, { dialect: form, schema: 'sample' }).text.startsWith('update')) updates.push('update')
      return get(statement)
    })

    expect(await store.claim(position)).toBeUndefined()
    expect(updates).toEqual([])
    expect(await store.claim(eventId(2))).toBeDefined()
  })

  it('are looked for only while one of them is not paused, or a stream is open', async () => {
    await using stack = new AsyncDisposableStack()
    const db = stack.use(await open())
    const { store, log, dispatcher } = openProcess(db.sql, stack, { isIdle: true })
    const polls = new Set<() => void>()
    const { setTimer } = systemClock
    const timers = vi.spyOn(systemClock, 'setTimer').mockImplementation((callback, milliseconds) => {
      if (![20, 10_000].includes(milliseconds)) return setTimer(callback, milliseconds)
      if (milliseconds === 20) polls.add(callback)
      return { cancel: () => polls.delete(callback) }
    })
    onTestFinished(() => timers.mockRestore())
    const listed = vi.spyOn(store, 'list')
    const hasLooked = async (times: number) => {
      await expect.poll(() => listed.mock.calls.length).toBe(times)
      await listed.mock.results.at(-1)?.value
      await setImmediate()
    }
    dispatcher.start()
    await hasLooked(1)
    expect(polls.size).toBe(0)
    const slow = Promise.withResolvers<undefined>()
    vi.spyOn(store, 'claim').mockReturnValueOnce(slow.promise)
    const { id } = await store.create({ url: 'https://x/' }, { createdBy: 'admin', position: '' })
    await expect.poll(() => polls.size).toBe(1)
    const [during = () => {}] = polls
    during() // A poll that comes during another one is followed by more.
    slow.resolve(undefined)
    await hasLooked(3)
    expect(polls.has(during)).toBe(false)
    await store.update(id, { paused: true })
    for (const poll of polls) poll()
    await hasLooked(4)
    expect(polls.size).toBe(0)
    const appended = once(log.appended, 'events')
    await expect.poll(() => polls.size).toBe(1)
    await append(db, 1)
    for (const poll of polls) poll()
    await appended
  })

  it('are 50 at most, also when two processes create them at once', async () => {
    await using stack = new AsyncDisposableStack()
    const db = stack.use(await open())
    const stores = [db.sql, await db.another()].map((process) => new WebhookStore(process))
    const by = { createdBy: 'admin', position: '' }
    const create = (n: number) => stores.map((store) => store.create({ url: `https://hooks.example.com/${n}` }, by))
    for (let n = 0; n < 24; n += 1) await Promise.all(create(n))
    await stores[0]?.create({ url: 'https://hooks.example.com/odd' }, by)
    // Two at a time, on the connections that are open: a pool refuses what waits for one too long.
    for (let n = 24; n < 34; n += 1) {
      const ends = await Promise.allSettled(create(n))
      const [last, ...more] = ends.flatMap((end) => (end.status === 'fulfilled' ? end.value : []))
      expect([last, more]).toEqual([expect.anything(), []])
      await stores[0]?.remove(last?.id ?? '')
    }
  })

  it('are tried again by schedule, with the same id, then given up; others do not wait', async () => {
    await using stack = new AsyncDisposableStack()
    const db = stack.use(await open())
    const receiver = stack.use(
      await openReceiver(({ path, body }) => (path === '/fails' && body.data?.number === 1 ? 302 : 200)),
    )
    const { log, store } = openProcess(db.sql, stack)
    const by = { createdBy: 'admin', position: await log.end() }
    const { id } = await store.create({ url: receiver.url('/fails') }, by)
    await append(db, 1)
    await append(db, 2)
    await receiver.count(2)
    await settled(store, id, 2)
    const [second, minute, hour] = [1_000, 60_000, 3_600_000]
    const hours = [1, 3, 6, 12, 24].map((each) => each * hour)
    expect(retryDelaysMs).toEqual([5 * second, 30 * second, 2 * minute, 15 * minute, ...hours])
    let now = start
    for (const [at, delay] of retryDelaysMs.entries()) {
      now += delay - 1
      await db.setTime(now)
      expect(await store.claim(await log.end()), `too early for try ${at + 2}`).toBeUndefined()
      now += Math.ceil(delay / 5) + 1
      await db.setTime(now)
      await receiver.count(at + 3)
      await expect
        .poll(async () => (await store.deliveries(id)).find(({ status }) => status !== 'delivered')?.tries)
        .toBe(at + 2)
    }
    const [last] = (await store.deliveries(id)).filter(({ response_status }) => response_status === 302)
    expect(last).toMatchObject({ status: 'failed', tries: 10, answer: 'answer of /fails' })
    const tries = receiver.received.filter(({ body }) => body.data?.number === 1)
    expect(new Set(tries.map((each) => each.id)).size).toBe(1)
    expect(receiver.received.map(({ path }) => path)).not.toContain('/redirected')
    await db.setTime(now + 100 * 3_600_000)
    expect(await store.claim(await log.end())).toBeUndefined()
    await store.retry(id, last?.event ?? '')
    await receiver.count(12)
    await expect
      .poll(async () => (await store.deliveries(id)).find(({ event }) => event === last?.event))
      .toMatchObject({ status: 'pending', tries: 1 })
  })

  it('are recorded once they are answered: what one process had begun another sends again', async () => {
    await using stack = new AsyncDisposableStack()
    const db = stack.use(await open())
    let answer: 'hang' | 200 = 'hang'
    const receiver = stack.use(await openReceiver(() => answer))
    const { log, store, close } = openProcess(db.sql, stack)
    const by = { createdBy: 'admin', position: await log.end() }
    const { id } = await store.create({ url: receiver.url('/') }, by)
    await append(db, 1)
    await receiver.count(1)
    expect((await store.deliveries(id)).filter(({ tries }) => tries > 0)).toEqual([])
    answer = 200
    await close()
    openProcess(await db.another(), stack)
    const [first, second] = await receiver.count(2)
    expect(second?.id).toBe(first?.id)
    await settled(store, id, 1)
    expect(await store.deliveries(id)).toMatchObject([{ status: 'delivered', tries: 1 }])
  })

  it('keep what happens while they are paused; 410 pauses them', async () => {
    await using stack = new AsyncDisposableStack()
    const db = stack.use(await open())
    let answer = 410
    const receiver = stack.use(await openReceiver(() => answer))
    const { log, store } = openProcess(db.sql, stack)
    const by = { createdBy: 'admin', position: await log.end() }
    const { id } = await store.create({ url: receiver.url('/') }, by)
    await append(db, 1)
    await expect.poll(async () => (await webhookOf(store, id))?.paused).toBe(true)
    await append(db, 2)
    await db.setTime(start + 60_000)
    expect(await store.claim(await log.end())).toBeUndefined()
    answer = 200
    await store.update(id, { paused: false })
    const received = await receiver.count(3)
    expect(received.map(({ body }) => body.data?.number)).toEqual([1, 1, 2])
    await settled(store, id, 2)
    await store.update(id, { paused: true })
    await append(db, 3)
    await db.setTime(start + 30 * 86_400_000)
    await store.update(id, { paused: false })
    await settled(store, id, 3)
    await store.update(id, { paused: true })
    await append(db, 4)
    await db.setTime(start + 61 * 86_400_000)
    await append(db, 5)
    await store.update(id, { paused: false })
    const later = (await receiver.count(5)).slice(3).map(({ body }) => body.data?.number)
    expect(later, 'what is older than 30 days is gone').toEqual([3, 5])
  })

  it('get what happened while they were paused, also after a test that is sent again and pauses them', async () => {
    await using stack = new AsyncDisposableStack()
    const db = stack.use(await open())
    let tries = 0
    const receiver = stack.use(await openReceiver(() => (++tries === 2 ? 410 : 200)))
    // Before the test: its id has the time of the process.
    await db.setTime(Date.now() - 60_000)
    const { log, store, dispatcher } = openProcess(db.sql, stack)
    const by = { createdBy: 'admin', position: await log.end() }
    const { id } = await store.create({ url: receiver.url('/') }, by)
    const paused = await store.update(id, { paused: true })
    await append(db, 1)
    const { event } = await dispatcher.test(paused)
    await store.retry(id, event)
    await store.update(id, { paused: false })
    await expect.poll(async () => (await webhookOf(store, id))?.paused).toBe(true)
    await store.update(id, { paused: false })
    const received = await receiver.count(3)
    expect(received.map(({ body }) => [body.type, body.data?.number])).toEqual([
      ['webhook.test', undefined],
      ['webhook.test', undefined],
      ['zone.changed', 1],
    ])
  })

  it('that are changed get what follows as they are now, also during a delivery', async () => {
    await using stack = new AsyncDisposableStack()
    const db = stack.use(await open())
    const receiver = stack.use(await openReceiver(({ path }) => (path === '/old' ? 'hang' : 200)))
    const { log, store, endTimeLimits } = openProcess(db.sql, stack)
    const by = { createdBy: 'admin', position: await log.end() }
    const { id } = await store.create({ url: receiver.url('/old') }, by)
    for (const number of [1, 2]) await append(db, number)
    await receiver.count(1)
    await store.update(id, { url: receiver.url('/new') })
    endTimeLimits()
    const received = await receiver.count(3)
    const told = received.map(({ path, body }) => [path, body.data?.number])
    expect(told).toEqual([
      ['/old', 1],
      ['/new', 1],
      ['/new', 2],
    ])
  })

  it('are shared by processes; one that ends in a delivery is taken over, with the same id', async () => {
    await using stack = new AsyncDisposableStack()
    const db = stack.use(await open())
    const receiver = stack.use(await openReceiver(() => 200))
    const processes = await Promise.all([db.another(), db.another(), db.another()])
    const { store, log } = openProcess(db.sql, stack, { isIdle: true })
    const by = { createdBy: 'admin', position: await log.end() }
    await store.create({ url: receiver.url('/a') }, by)
    await append(db, 0)
    // As left by a process that was killed during a delivery.
    const claimed = await store.claim(await log.end())
    expect(claimed).toBeDefined()
    await store.create({ url: receiver.url('/b') }, by)
    await store.create({ url: receiver.url('/c') }, by)
    for (const sql of processes) openProcess(sql, stack)
    for (let number = 1; number < 10; number++) await append(db, number)
    await receiver.count(20)
    expect(receiver.received.filter(({ path }) => path === '/a')).toEqual([])
    await db.setTime(start + 15_001)
    // At least once: a claim that ends while its delivery runs is repeated, with the same id.
    const numbersOf = (path: string) =>
      receiver.received.filter((each) => each.path === path).map(({ body }) => body.data?.number)
    for (const path of ['/a', '/b', '/c']) {
      const all = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
      await expect.poll(() => [...new Set(numbersOf(path))]).toEqual(all)
      const ids = receiver.received.filter((each) => each.path === path).map(({ id }) => id)
      expect(new Set(ids).size).toBe(10)
    }
    const { received } = receiver
    const attempt = { status: 200, ms: 1, answer: '' }
    const late = { event: received[0]?.id ?? '', type: 'zone.changed', tries: 0, attempt }
    expect(claimed && (await store.record(claimed, late)), 'its claim is over').toBe(false)
  })

  it('read what a burst has for them by the page, not for each delivery', async () => {
    await using stack = new AsyncDisposableStack()
    const db = stack.use(await open())
    const receiver = stack.use(await openReceiver(() => 200))
    const { store, log, dispatcher } = openProcess(db.sql, stack, { isIdle: true })
    const by = { createdBy: 'admin', position: await log.end() }
    await store.create({ url: receiver.url('/'), domains: ['example.com'] }, by)
    for (let number = 0; number < 30; number++)
      await append(db, number, { domain: number % 2 === 0 ? 'example.com' : 'other.example' })
    const read = vi.spyOn(log, 'page')
    dispatcher.start()
    await receiver.count(15)
    expect(receiver.received.map(({ body }) => body.data?.number)).toEqual(
      Array.from({ length: 15 }, (_, at) => at * 2),
    )
    expect(read).toHaveBeenCalledTimes(1)
  })

  it('are found by one look at the end of the log, however many have something to get', async () => {
    await using stack = new AsyncDisposableStack()
    const db = stack.use(await open())
    const receiver = stack.use(await openReceiver(() => 200))
    const { store, log, dispatcher } = openProcess(db.sql, stack, { isIdle: true })
    const by = { createdBy: 'admin', position: await log.end() }
    for (let hook = 0; hook < 5; hook++) await store.create({ url: receiver.url(`/${hook}`) }, by)
    await append(db, 1)
    const [looked, claimed] = [vi.spyOn(log, 'end'), vi.spyOn(store, 'claim')]
    dispatcher.start()
    await receiver.count(5)
    const fifth = claimed.mock.invocationCallOrder[4] ?? 0
    expect(looked.mock.invocationCallOrder.filter((order) => order < fifth)).toHaveLength(1)
  })

  it('that hang delay no other; a large event is sent without its data', async () => {
    await using stack = new AsyncDisposableStack()
    const db = stack.use(await open())
    const receiver = stack.use(await openReceiver(({ path }) => (path === '/slow' ? 'hang' : 200)))
    const { log, store, timers, endTimeLimits } = openProcess(db.sql, stack)
    const by = { createdBy: 'admin', position: await log.end() }
    const slow = await store.create({ url: receiver.url('/slow') }, by)
    await append(db, 1)
    const [{ text } = { text: '' }] = await receiver.count(1)
    expect([...timers.values()]).toEqual([10_000])
    await store.create({ url: receiver.url('/fast') }, { ...by })
    const room = 65_536 - Buffer.byteLength(text.replace('example.com', ''))
    await append(db, 2, { domain: 'x'.repeat(room) })
    await append(db, 3, { domain: 'x'.repeat(room + 1) })
    const received = await receiver.count(4)
    const [, whole, large] = received.filter(({ path }) => path === '/fast')
    expect(Buffer.byteLength(whole?.text ?? '')).toBe(65_536)
    expect(large?.body).toMatchObject({ data: null, truncated: true })
    expect(received.filter(({ path }) => path === '/slow')).toHaveLength(1)
    endTimeLimits()
    await settled(store, slow.id, 1)
    expect((await store.deliveries(slow.id))[0]).toMatchObject({
      response_status: null,
      answer: 'no response within 10 s',
    })
  })
})

describe.each(forms)('stored webhooks in $form', ({ open }) => {
  it('are answered as stored, though the database is lost right after the commit', async () => {
    await using db = await open()
    const { sql, losing } = lossyDatabase(db.sql)
    const store = new WebhookStore(sql)
    const by = { createdBy: 'admin', position: '' }
    const webhook = await losing(() => store.create({ url: 'https://example.com/' }, by))
    const paused = await losing(() => store.update(webhook.id, { paused: true, name: 'chat' }))
    const attempt = { status: 500, ms: 1, answer: 'no' }
    const tested = await losing(() => store.recordTest(webhook.id, { event: 'one', attempt }))
    const again = await losing(() => store.retry(webhook.id, 'one'))
    expect(await webhookOf(store, webhook.id)).toEqual(paused)
    expect(paused).toEqual({ ...webhook, paused: true, name: 'chat' })
    expect(tested).toMatchObject({ event: 'one', status: 'failed', tries: 1, response_status: 500 })
    expect(await store.deliveries(webhook.id)).toEqual([again])
  })
})

describe.each(forms)('the deliveries in $form', ({ open }) => {
  it('that fail are repeated after a pause that is longer by a random part', async () => {
    await using db = await open()
    const store = new WebhookStore(db.sql)
    const random = vi.spyOn(Math, 'random')
    onTestFinished(() => random.mockRestore())
    const attempt = { status: 500, ms: 1, answer: '' }
    const pauseAfter = async (tries: number, part: number) => {
      random.mockReturnValue(part)
      const { id } = await store.create({ url: 'https://x/' }, { createdBy: '', position: '' })
      const claimed = await store.claim('1')
      if (claimed) await store.record(claimed, { event: 'e', type: 'zone.changed', tries, attempt })
      return Number((await store.deliveries(id))[0]?.next_at) - start
    }
    const pauses = [await pauseAfter(0, 0), await pauseAfter(0, 1), await pauseAfter(3, 0.5)]
    expect(pauses).toEqual([5_000, 6_000, 990_000])
  })

  it('are the last hundred', async () => {
    await using db = await open()
    const store = new WebhookStore(db.sql)
    const { id } = await store.create({ url: 'https://x/' }, { createdBy: 'admin', position: '' })
    const attempt = { status: 200, ms: 1, answer: '' }
    for (let n = 1; n <= 103; n++) {
      await db.setTime(start + n)
      await store.recordTest(id, { event: `event ${n}`, attempt })
    }
    const events = (await store.deliveries(id)).map(({ event }) => event)
    expect([events.length, events[0], events.at(-1)]).toEqual([100, 'event 103', 'event 4'])
    await expect(store.retry(id, 'event 3')).rejects.toMatchObject({ code: 'delivery_not_found' })
  })
})

test('a delivery is sent again on demand also while another replica records a try of it', async () => {
  await using db = await openPostgres()
  const store = new WebhookStore(db.sql)
  const other = new WebhookStore(await db.another())
  const { id } = await store.create({ url: 'https://x/' }, { createdBy: 'admin', position: '' })
  const ended = { event: 'e', attempt: { status: 500, ms: 1, answer: '' } }
  await store.recordTest(id, ended)
  const waiting = sql`select 1 from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`
  let again: Promise<unknown> | undefined
  const begin = db.sql.transaction.bind(db.sql)
  vi.spyOn(db.sql, 'transaction').mockImplementationOnce((work) =>
    begin(async (transaction) => {
      const stored = await work(transaction)
      again = other.retry(id, 'e')
      await expect.poll(() => db.sql.all(waiting)).toHaveLength(1)
      return stored
    }),
  )

  await store.recordTest(id, ended)

  expect(await again).toMatchObject({ event: 'e', status: 'pending', tries: 0 })
})

test('a delivery whose webhook may not see its event any more is not tried again', async () => {
  await using stack = new AsyncDisposableStack()
  const db = stack.use(await forms[0].open())
  const receiver = stack.use(await openReceiver(() => 500))
  const { log, store } = openProcess(db.sql, stack)
  const by = { createdBy: 'admin', position: await log.end() }
  const { id } = await store.create({ url: receiver.url('/') }, by)
  await append(db, 1)
  await expect.poll(() => store.deliveries(id)).toMatchObject([{ status: 'pending', tries: 1 }])

  await store.update(id, { domains: ['example.net'] })
  await db.setTime(start + 10_000)

  const failed = { status: 'failed', response_status: null, answer: 'The event is not kept any more' }
  await expect.poll(() => store.deliveries(id)).toMatchObject([failed])
  expect(receiver.received).toHaveLength(1)
})

test.each([
  ['that has 1,024 bytes, and does not end', 'x'.repeat(1024), false],
  ['that is cut', 'x', true],
])('an answer %s counts by its status', async (_name, text, isCut) => {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.write(text, () => isCut && response.destroy()))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo // It listens on a port.
  const event = { id: eventId(1), type: 'zone.changed', at: '', by: null, data: {} }
  const noTimers = { now: Date.now, setTimer: () => ({ cancel: () => undefined }) }

  const sent = await sendDelivery(
    { url: `http://127.0.0.1:${port}/`, secret: 'whsec_' },
    { ...event, request_id: null },
    { clock: noTimers, networks: ['127.0.0.1'], closing: new AbortController().signal },
  )

  expect(sent).toMatchObject({ status: 200, answer: text })
})

describe('addresses of webhooks', () => {
  it('are resolved once for a delivery, checked, and connected to', async () => {
    await using receiver = await openReceiver(() => 200)
    const lookup = vi.spyOn(promises, 'lookup')
    onTestFinished(() => lookup.mockRestore())
    const answer = (address: string) => lookup.mockResolvedValueOnce([{ address, family: 4 }] as never) // As `all` has it.
    const closing = new AbortController().signal
    const options = { clock: systemClock, networks: ['127.0.0.1/32'], closing }
    const data = { id: eventId(1), type: 'zone.changed', at: '', by: null, data: {} }
    const event = { ...data, request_id: null }
    const url = receiver.url('/').replace('127.0.0.1', 'hooks.invalid')
    const secret = 'whsec_c2VjcmV0'
    answer('127.0.0.1')
    const sent = await sendDelivery({ url, secret }, event, options)
    answer('10.0.0.1')
    const refused = await sendDelivery({ url, secret }, event, options)
    expect([sent.status, refused.status, receiver.received.length]).toEqual([200, null, 1])
    expect(refused.answer).toContain('leads to 10.0.0.1')
    expect(lookup).toHaveBeenCalledTimes(2)
  })

  it('are not those of this machine', () => {
    const own = vi.spyOn(os, 'networkInterfaces')
    own.mockReturnValue({ eth0: [{ address: '9.9.9.9' }] } as never) // What is read of it.
    syncBuiltinESMExports()
    const isOwnRefused = isRefused('9.9.9.9', [])
    own.mockRestore()
    syncBuiltinESMExports()
    expect([isOwnRefused, isRefused('9.9.9.9', [])]).toEqual([true, false])
  })

  it.each([
    ...['127.0.0.1', '10.1.2.3', '172.31.0.1', '192.168.1.1', '169.254.169.254', '100.100.100.200', '0.0.0.0'],
    ...['::1', '::', 'fe80::1', 'fe80::1%lo', 'fd00:ec2::254', 'ff02::1', '::ffff:127.0.0.1', '::ffff:7f00:1'],
    ...[
      '64:ff9b::10.0.0.1',
      '64:ff9b::7f00:1',
      '64:ff9b:1::1',
      '2002:7f00:1::',
      '::127.0.0.1',
      '255.255.255.255',
      '168.63.129.16',
    ],
  ])('%s is refused', (address) => {
    expect(isRefused(address, [])).toBe(true)
  })

  it.each(['9.9.9.9', '2620:fe::fe', '64:ff9b::9.9.9.9', '::ffff:9.9.9.9'])('%s is not', (address) => {
    expect(isRefused(address, [])).toBe(false)
  })

  it.each([
    ['10.1.2.3', '10.1.0.0/16', false],
    ['10.2.2.3', '10.1.0.0/16', true],
    ['::ffff:10.1.2.3', '10.1.0.0/16', false],
    ['::1', '::1/128', false],
    ['127.0.0.1', '::1/128', true],
  ])('%s with WEBHOOK_NETWORKS=%s: %s', (address, network, expected) => {
    expect(isRefused(address, [network])).toBe(expected)
  })
})
