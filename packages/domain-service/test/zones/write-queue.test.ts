import { expect, test } from 'vitest'
import { driveClock } from '../support/drive-clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { realRate, type Service, start, www } from '../support/start.ts'

const pathOf = (domain: string) => `/api/domains/${domain}/dns/hosts`
const prefer = { prefer: 'respond-async' }

const addLater = (service: Service, domain = 'example.com', name = 'new', headers = {}) =>
  service.call('POST', `${pathOf(domain)}/A`, {
    body: { name, address: '192.0.2.9' },
    headers: { ...prefer, ...headers },
  })

const changeAt = async (service: Service, location: string | null) => (await service.call('GET', location ?? '')).body

const statusOf = async (service: Service, location: string | null) => (await changeAt(service, location)).status

/** Seldom: the clock is driven only while the service does nothing. */
const untilDone = (service: Service, headers: Headers) =>
  expect.poll(() => statusOf(service, headers.get('location')), { interval: 1_000 }).toBe('confirmed')

test('a write that prefers not to wait is answered 202, carried out, and told at its address', async () => {
  await using service = await start()

  const { status, headers, body } = await addLater(service, 'example.com', 'new', {
    prefer: 'handling=lenient, Respond-Async; wait=10',
  })
  const location = headers.get('location')

  expect([status, headers.get('preference-applied'), body.status]).toEqual([202, 'respond-async', 'queued'])
  await expect.poll(() => statusOf(service, location)).toBe('confirmed')
  expect(service.live()).toContain('new A 192.0.2.9 1800 10')
  expect(await changeAt(service, location)).toMatchObject({
    domain: 'example.com',
    by: 'admin',
    changes: { added: [{ name: 'new' }], removed: [], kept: 1 },
  })
})

test('its refusal is at its address, with the problem', async () => {
  await using service = await start()
  const { headers } = await addLater(service, 'example.com', 'www')
  const again = await addLater(service, 'example.com', 'www')
  const location = again.headers.get('location')

  await expect.poll(() => statusOf(service, location)).toBe('refused')

  expect(await changeAt(service, headers.get('location'))).toMatchObject({ status: 'confirmed' })
  expect(await changeAt(service, location)).toMatchObject({
    problem: { status: 409, code: 'record_exists' },
    sent_at: null,
  })
})

test('eight domains are changed in one go, at the registrar’s pace', async () => {
  const clock = new FakeClock()
  const names = Array.from({ length: 8 }, (_, n) => `d${n}.com`)
  const domains = names.map((name) => ({ name, hosts: [www] }))
  await using service = await start({ domains, clock, env: { REGISTRAR_RATE: realRate } })

  const answers = await Promise.all(names.map((name) => addLater(service, name)))
  const list = async () => {
    const { body } = await service.call('GET', '/api/changes?status=confirmed&page_size=100')
    return body.pagination
  }
  const areDone = expect.poll(list).toMatchObject({ total_items: 8 })
  await driveClock(clock, service, areDone)

  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]))
  expect(names.filter((name) => service.live(name).length === 2)).toEqual(names)
  expect(service.sandbox.calls.filter(({ outcome }) => outcome === 'rate')).toEqual([])
})

test('a queued change survives a restart', async () => {
  const clock = new FakeClock()
  const env = { REGISTRAR_RATE: '3/minute' }
  await using first = await start({ clock, env })
  await first.call('GET', pathOf('example.com'))
  const { headers } = await addLater(first)
  await first.close()

  await using second = await start({ dataDir: first.dataDir, sandbox: first.sandbox, clock, env })
  const isDone = untilDone(second, headers)
  await driveClock(clock, second, isDone)

  expect(second.live()).toHaveLength(2)
})

test('a failing registrar delays a queued change, and does not refuse it', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  service.sandbox.fault({ kind: 'html', times: 4 })

  const { headers } = await addLater(service)
  const isDone = untilDone(service, headers)
  await driveClock(clock, service, isDone)

  expect(service.live()).toHaveLength(2)
})

test('a queued change can be cancelled, and is never sent; a done one cannot', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  const { headers } = await addLater(service)
  const location = headers.get('location') ?? ''

  const cancelled = await service.call('DELETE', location)
  await clock.advance(60_000)
  const again = await service.call('DELETE', location)

  expect([cancelled.status, cancelled.body.status]).toEqual([200, 'cancelled'])
  expect([again.status, again.body.code]).toEqual([409, 'change_not_queued'])
  expect(service.commands()).not.toContain('dns.sethosts')
})

test('a change that is cancelled while its batch reads the zone is never sent', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  service.sandbox.fault({ kind: 'reset', times: 0 })
  const { headers } = await addLater(service)
  const { calls } = service.sandbox
  const isRead = expect.poll(() => calls.length, { interval: 5 }).toBeGreaterThan(0)
  await driveClock(clock, service, isRead)

  const { status } = await service.call('DELETE', headers.get('location') ?? '')
  service.sandbox.clearFaults()
  const next = await addLater(service, 'example.com', 'next')
  await driveClock(clock, service, untilDone(service, next.headers))

  expect(status).toBe(200)
  expect(service.live().map((row) => row.split(' ')[0])).toEqual(['next', 'www'])
})

test('a change that is cancelled after its batch has taken it is not sent, but the others of the batch are', async () => {
  const env = { REGISTRAR_TIMEOUT_MS: '120000' }
  await using service = await start({ env, clock: new FakeClock() })
  service.sandbox.fault({ kind: 'slow', ms: 600_000, command: 'namecheap.domains.dns.getHosts' })
  const { headers } = await addLater(service)
  const location = headers.get('location') ?? ''
  const other = service.call('POST', `${pathOf('example.com')}/A`, {
    body: { name: 'other', address: '192.0.2.9' },
  })
  // The batch has both changes, and reads the zone.
  await expect.poll(service.commands).toEqual(['dns.gethosts'])

  const cancelled = await service.call('DELETE', location)
  service.sandbox.clearFaults()
  const { status } = await other

  expect([cancelled.status, status]).toEqual([200, 201])
  expect(service.live().map((row) => row.split(' ')[0])).toEqual(['other', 'www'])
  expect(await statusOf(service, location)).toBe('cancelled')
  const { body } = await service.call('GET', '/api/domains/example.com/dns/history')
  expect(body.history).toMatchObject([{ changes: { added: [{ name: 'other' }] } }])
})

test('a repeated request under one key is one change', async () => {
  await using service = await start()
  const key = { 'idempotency-key': 'key' }

  const answers = [
    await addLater(service, 'example.com', 'new', key),
    await addLater(service, 'example.com', 'new', key),
  ]

  const [location, again] = answers.map(({ headers }) => headers.get('location'))
  expect(again).toBe(location)
})

test('a list is refused at once for a fault that no live record excuses', async () => {
  const odd = { name: 'odd', type: 'A', address: 'no address' }
  await using service = await start({ domains: [{ name: 'example.com', hosts: [odd] }] })
  const put = (address: string) =>
    service.call('PUT', pathOf('example.com'), {
      body: { hosts: [{ ...odd, address }] },
      headers: { ...prefer, 'idempotency-key': address },
    })

  const [excused, faulty] = [await put('no address'), await put('none')]
  await service.sandbox.setZone('example.com', { hosts: [www] })
  const repeated = await put('no address')

  expect([excused.status, faulty.status, repeated.status]).toEqual([202, 400, 202])
  expect(faulty.body.errors).toMatchObject([{ path: '/hosts/0/address' }])
  expect(repeated.headers.get('location')).toBe(excused.headers.get('location'))
})

test('a list of what GET returned is queued, though its odd record was made outside a moment ago', async () => {
  await using service = await start()
  await service.call('GET', pathOf('example.com'))
  await service.sandbox.setZone('example.com', { hosts: [www, { name: 'odd', type: 'A', address: 'no address' }] })
  const { body } = await service.call('GET', pathOf('example.com'), { headers: { 'cache-control': 'no-cache' } })

  const { status } = await service.call('PUT', pathOf('example.com'), { body: { hosts: body.hosts }, headers: prefer })

  expect([body.hosts?.length, status]).toEqual([2, 202])
})

test('a dry run is answered at once', async () => {
  await using service = await start()

  const { status } = await service.call('PUT', `${pathOf('example.com')}?dry_run=true`, {
    body: { hosts: [] },
    headers: prefer,
  })

  expect(status).toBe(200)
})
