import { createLogger } from '@domains-and-files/http'
import type { FaultInput } from '@domains-and-files/registrar-sandbox'
import { describe, expect, test, vi } from 'vitest'
import type { Zone } from '../../../src/dns/zone.ts'
import { registrarBusy } from '../../../src/errors.ts'
import { CallFailed } from '../../../src/registrar/call-failed.ts'
import { RegistrarZone } from '../../../src/zones/batch/registrar-zone.ts'
import { driveClock } from '../../support/drive-clock.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { add, final, newRow, passing, startBefore, startZone } from '../../support/faulty-answers.ts'
import { www, zone } from '../../support/zones.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const getHosts = 'namecheap.domains.dns.getHosts'
const setHosts = 'namecheap.domains.dns.setHosts'

describe('a write whose answer is', () => {
  const executed = (fault: FaultInput): FaultInput =>
    'execute' in fault || ['slow', 'reset', 'lost', 'doctype'].includes(fault.kind)
      ? fault
      : ({ ...fault, execute: true } as FaultInput)

  test.each(passing.filter(([, { kind }]) => kind !== 'reset' && kind !== 'slow'))(
    '%s, though the write was executed, succeeds after reading the zone',
    async (_name, fault) => {
      await using service = await startBefore(fault)
      const before = service.live()
      service.sandbox.fault({ ...executed(fault), command: setHosts })

      const { status } = await add(service)

      expect(status).toBe(201)
      expect(service.live().toSorted()).toEqual([newRow, ...before].toSorted())
      expect(service.steps()).toEqual(['dns.gethosts', 'dns.sethosts', 'dns.gethosts'])
    },
  )

  test('an unlisted error, though the write was executed, succeeds after reading the zone', async () => {
    await using service = await startZone()
    service.sandbox.fault({ kind: 'error', number: 9999999, execute: true, command: setHosts })

    expect((await add(service)).status).toBe(201)
    expect(service.live()).toContain(newRow)
  })

  test.each<[string, FaultInput]>([
    ['HTTP 405', { kind: 'status', status: 405, execute: true }],
    ['error 500000', { kind: 'error', number: 500000, execute: true }],
    ['error 2010170', { kind: 'error', number: 2010170, execute: true }],
    ['error 2016166', { kind: 'error', number: 2016166, execute: true }],
  ])('%s, though the write was executed, succeeds and is in the history', async (_name, fault) => {
    const clock = new FakeClock()
    await using service = await startZone({}, clock)
    service.sandbox.fault({ ...fault, command: setHosts })

    const { status } = await driveClock(clock, service, add(service))

    expect(status).toBe(201)
    expect(service.live()).toContain(newRow)
    const { body } = await service.call('GET', '/api/domains/example.com/dns/history')
    expect(body.history).toMatchObject([{ status: 'confirmed', changes: { added: [{}] } }])
  })

  test('a refusal is one if the zone does not have the write', async () => {
    await using service = await startZone()
    service.sandbox.fault({ kind: 'error', number: 2010170, command: setHosts })
    const before = service.live()

    const { status, body } = await add(service)

    expect([status, body.code]).toEqual([422, 'registrar_rejected'])
    expect(service.live()).toEqual(before)
    expect(service.steps()).toEqual(['dns.gethosts', 'dns.sethosts', 'dns.gethosts'])
  })

  test('lost before execution is resent once', async () => {
    await using service = await startZone()
    service.sandbox.fault({ kind: 'reset', command: setHosts })

    const { status } = await add(service)

    expect(status).toBe(201)
    expect(service.steps()).toEqual(['dns.gethosts', 'dns.sethosts', 'dns.gethosts', 'dns.sethosts', 'dns.gethosts'])
    expect(service.live()).toContain(newRow)
  })

  test('lost twice before execution is not confirmed, and the zone is unchanged', async () => {
    await using service = await startZone()
    const before = service.live()
    service.sandbox.fault({ kind: 'reset', command: setHosts, times: 0 })

    const { status, body } = await add(service)

    expect([status, body.code]).toEqual([502, 'write_not_confirmed'])
    expect(body.detail).toContain('missing: new A 192.0.2.77')
    expect(service.live()).toEqual(before)
    expect(service.commands().filter((command) => command === 'dns.sethosts')).toHaveLength(2)
  })

  test('lost, and the zone cannot be read back, is not confirmed', async () => {
    const clock = new FakeClock() // On a slow machine the zone would be read twice before the write.
    await using service = await startZone({}, clock)
    service.sandbox.fault({ kind: 'lost', command: setHosts }, { kind: 'html', command: getHosts, after: 1, times: 0 })

    const { status, body } = await driveClock(clock, service, add(service))

    expect([status, body.code]).toEqual([502, 'write_not_confirmed'])
    expect(body.detail).toContain('could not be read back')
    expect(service.lines()).toContainEqual(
      expect.objectContaining({
        level: 'error',
        msg: 'write not confirmed',
        changes: [expect.any(Number)],
      }),
    )
  })

  test('lost and not confirmed leaves no outdated zone in the cache', async () => {
    const clock = new FakeClock()
    await using service = await startZone({}, clock)
    await service.call('GET', hosts)
    service.sandbox.fault({ kind: 'lost', command: setHosts }, { kind: 'html', command: getHosts, after: 1, times: 0 })
    const { status } = await driveClock(clock, service, add(service))
    service.sandbox.clearFaults()

    const { body } = await service.call('GET', hosts)

    expect(status).toBe(502)
    expect(body.hosts?.map(({ name }) => name)).toContain('new')
  })

  test('success without any change is not confirmed', async () => {
    await using service = await startZone()
    service.sandbox.fault({ kind: 'ignored', command: setHosts })

    const { status, body } = await add(service)

    expect([status, body.code]).toEqual([502, 'write_not_confirmed'])
    expect(body.detail).toContain('missing: new A 192.0.2.77')
  })

  test('OK with IsSuccess=false is resent once', async () => {
    await using service = await startZone()
    service.sandbox.fault({ kind: 'is_success_false', command: setHosts })

    expect((await add(service)).status).toBe(201)
    expect(service.live()).toContain(newRow)
  })

  test.each(final)('%s fails, is not repeated, and leaves the zone unchanged', async (_name, fault, status, code) => {
    await using service = await startZone()
    const before = service.live()
    service.sandbox.fault({ ...fault, command: setHosts, times: 0 })

    const written = await add(service)

    expect([written.status, written.body.code]).toEqual([status, code])
    // Reads tell what an error did. After an unlisted one the first may be outdated.
    const isListed = code !== 'registrar_error'
    const commands = service.commands()
    expect(commands.slice(commands.indexOf('dns.sethosts'))).toEqual([
      'dns.sethosts',
      ...Array(isListed ? 1 : 3).fill('dns.gethosts'),
    ])
    expect(service.live()).toEqual(before)
  })
})

test('untouched rows and the email type are sent byte for byte as read', async () => {
  await using service = await startZone()

  await add(service)

  const params = service.sandbox.calls.find(({ command }) => /sethosts/i.test(command))?.params ?? {}
  const sent = (number: number) =>
    ['HostName', 'RecordType', 'Address', 'MXPref', 'TTL'].map((name) => parameterOf(params, `${name}${number}`))
  const all = [1, 2, 3, 4, 5].map((number) => sent(number).join(' '))
  expect(all).toEqual(
    expect.arrayContaining([
      '@ MX mx1.example.net. 0 1799',
      '@ TXT v=spf1 +a "x" ;  ~all 10 60',
      'Alias CNAME Target.Example.net 10 60000',
      'www A 192.0.2.1 10 300',
      'new A 192.0.2.77 10 1800',
    ]),
  )
  expect(parameterOf(params, 'EmailType')).toBe('MX')
})

test('with VERIFY_WRITES=false a confirmed write is not read back, a lost one is', async () => {
  await using service = await startZone({ VERIFY_WRITES: 'false' })

  const confirmed = await add(service)
  service.sandbox.fault({ kind: 'lost', command: setHosts })
  const lost = await add(service, 'lost')

  expect([confirmed.status, lost.status]).toEqual([201, 201])
  expect(service.steps()).toEqual(['dns.gethosts', 'dns.sethosts', 'dns.gethosts', 'dns.sethosts', 'dns.gethosts'])
})

test.each([
  ['HTTP 405', { kind: 'status', status: 405 }],
  ['error 500000', { kind: 'error', number: 500000 }],
] as [string, FaultInput][])('%s makes reads and writes wait', async (_name, fault) => {
  const clock = new FakeClock()
  await using service = await startZone({}, clock)
  service.sandbox.fault({ ...fault, command: getHosts }, { ...fault, command: setHosts })

  const { status } = await driveClock(clock, service, add(service))

  expect(status).toBe(201)
  expect(service.steps()).toEqual([
    'dns.gethosts',
    'dns.sethosts',
    // The pause made the first read older than a second.
    'dns.gethosts',
    'dns.sethosts',
    'dns.gethosts',
  ])
  // The refused read, and one more before each send and after the last.
  expect(service.commands().filter((each) => each === 'dns.gethosts').length).toBeGreaterThanOrEqual(4)
})

test.each([
  [2, 201],
  [3, 503],
])('a write that the registrar is too busy for %i times in a row ends with %i', async (times, status) => {
  const clock = new FakeClock()
  await using service = await startZone({}, clock)
  service.sandbox.fault({ kind: 'status', status: 405, command: setHosts, times })

  const written = await driveClock(clock, service, add(service))

  expect(written.status).toBe(status)
  expect(service.commands().filter((each) => each === 'dns.sethosts')).toHaveLength(3)
})

test('a write that the registrar was too busy for goes on with the zone that was read since', async () => {
  const [before, after] = [zone([www]), zone([])]
  const busy = new CallFailed('busy', registrarBusy(60))
  const clock = new FakeClock()
  const read = vi.fn(async (_domain, _slot, onRead: (zone: Zone, at: number) => void) => {
    onRead(before, clock.now())
    return before
  })
  const quota = { reserve: async () => ({ slots: 3 }), release: () => undefined }
  const replaceZone = () => Promise.reject(busy)
  const registrar = new RegistrarZone({
    registrar: { quota, zone: read, replaceZone, onZone: () => undefined },
    clock,
    domain: { name: 'example.com', sld: 'example', tld: 'com' },
    verify: true,
    log: createLogger({ name: 'test', level: 'silent' }),
  } as never) // The only methods that are called.
  const known = { recent: [], late: [] }
  await registrar.read()

  const outcome = await registrar.write({ before, after, sends: known })

  expect(outcome).toEqual({ state: 'unsent', error: busy, retry: { zone: before }, unanswered: 0 })
  expect(read).toHaveBeenCalledTimes(2)
})

test('an exhausted quota is a 503 with Retry-After', async () => {
  await using service = await startZone({ REGISTRAR_RATE: '1/minute' })
  await service.call('GET', hosts)

  const { status, headers, body } = await service.call('GET', '/api/domains/example.net/dns/hosts')

  expect([status, body.code]).toEqual([503, 'registrar_busy'])
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(40)
  expect(service.commands()).toHaveLength(1)
})

test('a registrar that refuses connections is unreachable', async () => {
  // Nobody listens there. A port that was free a moment ago may have been given to another process.
  await using service = await startZone({ REGISTRAR_URL: 'http://127.0.0.1:1/xml.response' })

  const { status, body } = await service.call('GET', hosts)

  expect([status, body.code]).toEqual([502, 'registrar_unreachable'])
})

test('after five consecutive failures calls fail fast, stale answers are served, and health is degraded', async () => {
  const clock = new FakeClock()
  await using service = await startZone({ CACHE_TTL_MS: '0' }, clock)
  await service.call('GET', hosts)
  service.sandbox.fault({ kind: 'html', times: 0 })
  const info = '/api/domains/example.com/info'
  await driveClock(clock, service, service.call('GET', info))
  await driveClock(clock, service, service.call('GET', info))
  const made = service.commands().length

  const refused = await service.call('GET', info)
  const old = await service.call('GET', hosts)
  const fresh = await service.call('GET', hosts, { headers: { 'cache-control': 'no-cache' } })
  const health = await service.call('GET', '/health')

  expect([refused.status, refused.body.code]).toEqual([503, 'registrar_unavailable'])
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(old.status).toBe(200)
  expect(old.headers.get('warning')).toBe('110 - "Response is Stale"')
  expect(fresh.status).toBe(503)
  expect(health).toMatchObject({
    status: 200,
    body: { status: 'degraded', checks: { registrar: { status: 'degraded', breaker: 'open' } } },
  })
  expect(service.commands()).toHaveLength(made)
})

test('refused credentials are a 502, degraded health, and a log line that names the remedy', async () => {
  await using service = await startZone()
  service.sandbox.fault({
    kind: 'error',
    number: 1011150,
    message: 'Invalid request IP: 203.0.113.9',
  })

  const { status, body } = await service.call('GET', hosts)
  const sick = await service.call('GET', '/health')
  await service.call('GET', hosts)
  const well = await service.call('GET', '/health')

  expect([status, body.code]).toEqual([502, 'registrar_auth'])
  expect(body.detail).not.toContain('203.0.113.9')
  expect(sick.body.status).toBe('degraded')
  expect(well.body.status).toBe('ok')
  expect(service.lines()).toContainEqual(
    expect.objectContaining({
      level: 'error',
      msg: expect.stringContaining('whitelist the address 127.0.0.1'),
    }),
  )
})

test('the API key is in no answer, log line, error or URL', async () => {
  await using service = await startZone()
  const seen: unknown[] = []
  for (const [, fault] of [...passing.slice(0, 5), ...final.slice(0, 2)]) {
    service.sandbox.fault({ ...fault, times: 2 })
    seen.push((await service.call('GET', hosts, { headers: { 'cache-control': 'no-cache' } })).body)
    service.sandbox.clearFaults()
  }
  seen.push((await service.call('GET', '/api/registrar')).body, (await service.call('GET', '/health')).body)

  expect(JSON.stringify([seen, service.lines()])).not.toContain('api-key-that-nobody-must-see')
  expect(service.sandbox.calls.every(({ method }) => method === 'POST')).toBe(true)
})

const parameterOf = (params: Record<string, string>, name: string) =>
  Object.entries(params).find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1]
