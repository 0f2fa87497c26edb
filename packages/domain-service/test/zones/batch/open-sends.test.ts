import { startSandbox } from '@domains-and-files/registrar-sandbox'
import { expect, test } from 'vitest'
import type { SendOutcome } from '../../../src/ledger/ledger.ts'
import { resolveOpenSend } from '../../../src/zones/batch/open-sends.ts'
import { driveClock } from '../../support/drive-clock.ts'
import { failSends } from '../../support/failing-sends.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { joinWrites } from '../../support/join-writes.ts'
import { begin, domain, enqueue, openLedger, requestBy, row, zoneOf } from '../../support/ledger.ts'
import { apiKey, type Service, start, www } from '../../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const history = '/api/domains/example.com/dns/history'
const getHosts = 'namecheap.domains.dns.getHosts'
const setHosts = 'namecheap.domains.dns.setHosts'
const mx = { name: '@', type: 'MX', address: 'mx1.example.net', mx_pref: 20 }

const add = (service: Service, name = 'new') =>
  service.call('POST', `${hosts}/A`, { body: { name, address: '192.0.2.9' } })

const entriesOf = async (service: Service) => (await service.call('GET', history)).body.history ?? []

/** Waits until the only entry of the history is confirmed. */
async function confirmedLater(clock: FakeClock, service: Service) {
  const isConfirmed = expect.poll(() => entriesOf(service)).toMatchObject([{ status: 'confirmed' }])
  await driveClock(clock, service, isConfirmed)
}

/** A registrar that keeps the old preference of an MX record. */
async function startKeepingMxPref() {
  const sandbox = await startSandbox({
    apiUser: 'tester',
    apiKey,
    rate: 'off',
    keepsMxPref: true,
    domains: [
      {
        name: 'example.com',
        emailType: 'MX',
        hosts: [
          www,
          { name: 'old', type: 'A', address: '192.0.2.5' },
          { name: '@', type: 'MX', address: 'mx1.example.net.', mxPref: 10 },
        ],
      },
    ],
  })
  return start({ sandbox })
}

test('a write that came back otherwise is in the history, names what differs, and can be restored', async () => {
  await using service = await startKeepingMxPref()

  const put = await service.call('PUT', hosts, { body: { hosts: [mx] } })
  const [entry] = await entriesOf(service)
  const events = await service.call('GET', '/api/events?types=change.unconfirmed')
  const restored = await service.call('POST', `${history}/${entry?.id}/restore`)

  expect([put.status, put.body.code]).toEqual([502, 'write_not_confirmed'])
  expect(put.body.detail).toContain('missing: @ MX mx1.example.net (ttl 1800, mx_pref 20)')
  expect(entry).toMatchObject({
    status: 'unconfirmed',
    problem: { code: 'write_not_confirmed' },
    changes: { removed: expect.arrayContaining([expect.objectContaining({ name: 'old' })]) },
  })
  expect(JSON.parse(events.text).events).toMatchObject([{ data: { id: entry?.id } }])
  expect(restored.status).toBe(200)
  expect(restored.body.hosts?.map(({ name }) => name)).toEqual(['@', 'old', 'www'])
  await service.sandbox.close()
})

test('the zones in the history of a batch that came back otherwise really were', async () => {
  await using service = await startKeepingMxPref()
  const before = service.live()
  const put = () => service.call('PUT', hosts, { body: { hosts: [www, mx] } })

  const answers = await joinWrites({ services: [service], count: 2, isOrdered: true }, (n) =>
    n === 0 ? put() : add(service, 'added'),
  )
  const entries = await Promise.all((await entriesOf(service)).map(({ id }) => service.call('GET', `${history}/${id}`)))

  expect(answers.map(({ status, body }) => body.code ?? status)).toEqual(['write_not_confirmed', 201])
  const { body: zone } = await service.call('GET', hosts)
  expect(zone.code).toBeUndefined()
  for (const { body } of entries) {
    expect(body).toMatchObject({ after: { hosts: zone.hosts } })
    expect(body).toHaveProperty('before.hosts.length', before.length)
  }
  // Newest first; each entry still tells its own change.
  expect(entries.map(({ body }) => [body.status, body.changes?.added.length])).toEqual([
    ['confirmed', 1],
    ['unconfirmed', 1],
  ])
  await service.sandbox.close()
})

test.each([1, 2])('%i outdated answers after a good write do not fail it', async (times) => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  service.sandbox.fault({ kind: 'outdated', command: getHosts, after: 1, times })

  const { status } = await driveClock(clock, service, add(service))

  expect(status).toBe(201)
  expect(service.commands().filter((command) => command === 'dns.gethosts')).toHaveLength(2 + times)
})

test('a write that the registrar shows only after three outdated answers is confirmed later', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  service.sandbox.fault({ kind: 'outdated', command: getHosts, after: 1, times: 3 })

  const { body } = await driveClock(clock, service, add(service))
  const [entry] = await entriesOf(service)
  await confirmedLater(clock, service)

  expect([body.code, entry?.status]).toEqual(['write_not_confirmed', 'unconfirmed'])
})

test('a write that was not done stays unconfirmed when a later one makes the same change', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  service.sandbox.fault({ kind: 'ignored', command: setHosts })

  const ignored = await driveClock(clock, service, add(service))
  const repeated = await driveClock(clock, service, add(service))
  const next = await add(service, 'next')
  const statuses = (await entriesOf(service)).map(({ status }) => status)

  expect([ignored.status, repeated.status, next.status]).toEqual([502, 201, 201])
  expect(statuses).toEqual(['confirmed', 'confirmed', 'unconfirmed'])
})

test('a write whose zone cannot be read back is a success with a warning, verified later', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  service.sandbox.fault({ kind: 'html', command: getHosts, after: 1, times: 3 })

  const { status, body } = await driveClock(clock, service, add(service))
  const unverified = await entriesOf(service)
  const isVerified = expect.poll(() => entriesOf(service)).toMatchObject([{ status: 'confirmed' }])
  await driveClock(clock, service, isVerified)

  expect([status, body.verified]).toEqual([201, false])
  expect(body.warnings).toEqual([expect.stringContaining('could not be read back yet')])
  expect(unverified).toMatchObject([{ status: 'confirmed', verified: false }])
  const verified = async () => (await entriesOf(service))[0]?.verified
  await driveClock(clock, service, expect.poll(verified).toBeUndefined())
})

test('a send that is neither answered nor readable is unconfirmed until the zone tells', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  service.sandbox.fault({ kind: 'lost', command: setHosts }, { kind: 'html', command: getHosts, after: 1, times: 3 })

  const { body } = await driveClock(clock, service, add(service))
  const [entry] = await entriesOf(service)
  await confirmedLater(clock, service)

  expect([body.code, entry?.status]).toEqual(['write_not_confirmed', 'unconfirmed'])
})

test('a write that arrives while a check of the zone fails is carried out after it', async () => {
  await using first = await start()
  const repair = await failSends(first, 'update')
  await add(first)
  await repair()
  await first.close()
  first.sandbox.clearCalls()
  first.sandbox.fault(
    { kind: 'slow', ms: 600_000, command: getHosts },
    { kind: 'error', number: 3031510, command: getHosts },
  )

  await using service = await start({ dataDir: first.dataDir, sandbox: first.sandbox })
  await expect.poll(() => service.commands()).toContain('dns.gethosts')
  const writing = add(service, 'next')
  await expect.poll(() => service.countWaiting()).toBe(1)
  service.sandbox.clearFaults()

  expect((await writing).status).toBe(201)
})

test('a refused change is in the history with its problem and the zone as it stayed', async () => {
  await using service = await start()
  service.sandbox.fault({ kind: 'error', number: 2011170, message: 'no', command: setHosts })

  const { status } = await add(service)
  const [entry] = await entriesOf(service)
  const { body } = await service.call('GET', `${history}/${entry?.id}`)

  expect(status).toBe(422)
  expect(body).toMatchObject({
    status: 'refused',
    problem: { code: 'registrar_rejected' },
    before: { hosts: [{ name: 'www' }] },
    after: { hosts: [{ name: 'www' }] },
  })
})

test('an email type that getHosts does not tell is looked up, and sent as it is', async () => {
  await using service = await start({
    domains: [{ name: 'example.com', emailType: 'FWD', hosts: [www] }],
    clock: new FakeClock(),
  })
  service.sandbox.fault({ kind: 'no_email_type', command: getHosts, times: 0 })

  const { status } = await add(service)

  expect(status).toBe(201)
  expect(service.sandbox.zone('example.com').emailType).toBe('FWD')
  expect(service.commands()).toEqual(['dns.gethosts', 'getinfo', 'dns.sethosts', 'dns.gethosts'])
})

test('where nobody tells the email type, a write must name it, and nothing is sent otherwise', async () => {
  await using service = await start({
    domains: [{ name: 'example.com', emailType: 'FWD', hosts: [www] }],
  })
  service.sandbox.fault(
    { kind: 'no_email_type', command: getHosts, times: 0 },
    { kind: 'error', number: 2030166, command: 'namecheap.domains.getInfo', times: 0 },
  )

  const unnamed = await add(service)
  const named = await service.call('POST', `${hosts}/A`, {
    body: { name: 'new', address: '192.0.2.9', email_type: 'FWD' },
  })

  expect([unnamed.status, unnamed.body.code]).toEqual([409, 'email_type_conflict'])
  expect(named.status).toBe(201)
  expect(service.sandbox.zone('example.com').emailType).toBe('FWD')
})

const [a, b, c] = [zoneOf(row('a')), zoneOf(row('b')), zoneOf(row('c'))]
const gaveUp = { state: 'unknown', unanswered: 1 } as const
const unverified = { state: 'unverified', unanswered: 0 } as const

// A send of `b` over `a`. Its state afterwards is empty where it is resolved for good.
test.each([
  ['of a client shows the new zone', { zone: b }, { status: 'confirmed', isKept: true, states: [] }],
  ['of a client shows the old zone', { zone: a }, { status: 'unconfirmed', isKept: false, states: ['unknown'] }],
  ['of a client shows another zone', { zone: c }, { status: 'unconfirmed', isKept: false, states: [] }],
  ['of a queued change shows the old zone', { zone: a, isAsync: true }, { status: 'queued', states: ['unknown'] }],
  ['of a queued change shows the new zone', { zone: b, isAsync: true }, { status: 'confirmed', states: [] }],
  ['that was given up shows the old zone', { zone: a, known: gaveUp }, { status: 'unconfirmed', states: ['unknown'] }],
  ['that was given up shows the new zone', { zone: b, known: gaveUp }, { status: 'confirmed', states: [] }],
  ['given up 11 minutes ago shows the old zone', { zone: a, known: gaveUp, minutes: 11 }, { states: [] }],
  ['reported as done shows the old zone', { zone: a, known: unverified }, { status: 'confirmed', states: ['unknown'] }],
])('a read after a send %s', async (_what, { zone, isAsync = false, known, minutes = 0 }: Resolved, expected) => {
  let passedMs = 0
  const now = () => Date.now() + passedMs
  const { ledger } = openLedger(now)
  const request = requestBy('admin', { idempotency: { key: 'key', fingerprint: 'one' } })
  const id = isAsync ? await enqueue(ledger, request) : (await ledger.acceptAwaited(request)).id
  const send = await begin(ledger, [id])
  const status = known?.state === 'unverified' ? 'confirmed' : 'unconfirmed'
  if (known) await ledger.endSend(send, { ...known, changes: [{ id, status, verified: false }] })
  passedMs = minutes * 60_000

  for (const open of (await ledger.sendsOf(domain)).open)
    await resolveOpenSend(open, zone, { ledger, clock: { now }, log: { info: () => undefined } } as never)

  const states = (await ledger.sendsOf(domain)).open.map(({ state }) => state)
  const isKept = (await ledger.findByKey(request)) !== undefined
  expect({ status: (await ledger.find(id))?.status, isKept, states }).toMatchObject(expected)
})

interface Resolved {
  zone: typeof a
  isAsync?: boolean
  known?: Pick<SendOutcome, 'state' | 'unanswered'>
  minutes?: number
}
