import { expect, test } from 'vitest'
import { password } from '../../../test/support/test-users.ts'
import { driveClock } from './support/drive-clock.ts'
import { FakeClock } from './support/fake-clock.ts'
import { type Service, start } from './support/start.ts'

const getHosts = 'namecheap.domains.dns.getHosts'
const setHosts = 'namecheap.domains.dns.setHosts'
const zone = '/api/domains/example.com/dns/hosts'

/** What the service tells now: each figure by its name and labels as they are written. */
async function scrape(service: Service): Promise<Record<string, number>> {
  const answer = await fetch(`${service.url}/metrics`, {
    headers: { authorization: 'Bearer metrics-token-of-tests' },
  })
  const lines = (await answer.text()).split('\n').filter((line) => line && !line.startsWith('#'))
  return Object.fromEntries(
    lines.map((line) => {
      const space = line.lastIndexOf(' ')
      return [line.slice(0, space), Number(line.slice(space + 1))]
    }),
  )
}

const logIn = (service: Service, word: string) =>
  fetch(`${service.url}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'viewer', password: word }),
  })

test('requests are counted by route and status, problems by code, calls by command and outcome', async () => {
  await using service = await start()
  await service.call('GET', '/api/domains/unknown.com/dns/hosts')
  await service.call('GET', zone)
  await service.call('DELETE', `${zone}/0123456789ab`, { user: 'viewer' })

  const figures = await scrape(service)

  const requests = 'http_request_duration_seconds_count{method="GET"'
  const calls = `registrar_call_duration_seconds_count{command="${getHosts}"`
  expect(figures).toMatchObject({
    [`${requests},route="/api/domains/:domain/dns/hosts",status="404"}`]: 1,
    [`${requests},route="/api/domains/:domain/dns/hosts",status="200"}`]: 1,
    'http_problems_total{code="domain_not_found"}': 1,
    'http_problems_total{code="forbidden"}': 1,
    [`${calls},outcome="domain_not_found"}`]: 1,
    [`${calls},outcome="ok"}`]: 1,
  })
  expect(Object.keys(figures).join('\n')).not.toMatch(/example|viewer|admin/)
})

test('queued asynchronous changes are a gauge', async () => {
  await using service = await start({ env: { REGISTRAR_RATE: '1/day' } })
  await service.call('GET', zone) // The only call: nothing can be carried out.
  for (const name of ['a', 'b'])
    await service.call('POST', `${zone}/A`, {
      body: { name, address: '192.0.2.9' },
      headers: { prefer: 'respond-async' },
    })

  expect(await scrape(service)).toMatchObject({
    'changes_queued{state="queued"}': 2,
    'changes_queued{state="held"}': 0,
  })
})

test('the rate limit and the calls left are gauges by window', async () => {
  await using service = await start({ env: { REGISTRAR_RATE: '5/minute,700/hour' } })
  await service.call('GET', zone)

  expect(await scrape(service)).toMatchObject({
    'registrar_calls_limit{window="minute"}': 5,
    'registrar_calls_left{window="minute"}': 4,
    'registrar_calls_left{window="hour"}': 699,
    registrar_calls_waiting: 0,
  })
})

test('calls that wait for slots are a gauge', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock, env: { REGISTRAR_RATE: '100/minute' } })
  service.sandbox.fault({ kind: 'error', number: 500000, command: getHosts })

  const read = service.call('GET', zone)

  // Past the backoff, and within the second for which the registrar wants no calls.
  const countWaiting = async () => {
    await clock.advance(50)
    return (await scrape(service)).registrar_calls_waiting
  }
  await expect.poll(countWaiting).toBe(1)
  await driveClock(clock, service, read)
  expect(await scrape(service)).toMatchObject({ registrar_calls_waiting: 0 })
})

test('the state of the circuit breaker is a gauge', async () => {
  await using service = await start()
  const before = await scrape(service)
  service.sandbox.fault({ kind: 'reset', times: 0 })
  await service.call('GET', zone)
  await service.call('GET', zone)

  const after = await scrape(service)

  const closed = 'registrar_circuit_state{state="closed"}'
  const open = 'registrar_circuit_state{state="open"}'
  expect([before[closed], before[open]]).toEqual([1, 0])
  expect([after[closed], after[open]]).toEqual([0, 1])
})

test('an unconfirmed write is counted by its code', async () => {
  await using service = await start()
  service.sandbox.fault({ kind: 'lost', command: setHosts })
  service.sandbox.fault({ kind: 'slow', ms: 600_000, command: setHosts })

  const written = service.call('PUT', zone, { body: { hosts: [] } })
  // A slow machine reads the zone again before it is sent, so that only what follows may fail.
  await expect.poll(() => service.commands()).toContain('dns.sethosts')
  service.sandbox.clearFaults()
  service.sandbox.fault({ kind: 'reset', command: getHosts, times: 0 })
  const { body } = await written

  expect(body.code).toBe('write_not_confirmed')
  expect(await scrape(service)).toMatchObject({
    'http_problems_total{code="write_not_confirmed"}': 1,
  })
})

test('each read cache counts hits and misses; the domain list has its size and age', async () => {
  await using service = await start({ env: { CACHE_TTL_MS: '60000' } })
  for (const path of [zone, zone, '/api/domains', '/api/domains/example.com/info']) {
    await service.call('GET', path)
  }

  expect(await scrape(service)).toMatchObject({
    'domain_cache_hits_total{cache="zones"}': 1,
    'domain_cache_misses_total{cache="zones"}': 1,
    'domain_cache_misses_total{cache="infos"}': 1,
    'domain_cache_misses_total{cache="nameservers"}': 0,
    'domain_cache_stale_total{cache="zones"}': 0,
  })
})

test('an answer served stale because the registrar failed is counted', async () => {
  await using service = await start({ env: { CACHE_TTL_MS: '0' } })
  await service.call('GET', zone)
  service.sandbox.fault({ kind: 'reset', command: getHosts, times: 3 })
  await service.call('GET', zone)

  expect(await scrape(service)).toMatchObject({ 'domain_cache_stale_total{cache="zones"}': 1 })
})

test('writes that wait for their batch are a gauge', async () => {
  await using service = await start()
  service.sandbox.fault({ kind: 'slow', ms: 600_000, command: getHosts })

  const write = service.call('POST', `${zone}/A`, {
    body: { name: 'new', address: '192.0.2.9' },
  })

  await expect.poll(async () => (await scrape(service)).zone_writes_waiting).toBe(1)
  service.sandbox.clearFaults()
  await write
  expect(await scrape(service)).toMatchObject({ zone_writes_waiting: 0 })
})

test('logins are measured: waiting, failed and limited ones', async () => {
  await using service = await start()

  // Two are hashed at a time, so that others wait for as long as these go on.
  let isSeen = false
  const clients = Array.from({ length: 5 }, async () => {
    while (!isSeen) await logIn(service, password)
  })
  await expect
    .poll(async () => (await scrape(service)).auth_hashes_waiting)
    .toBeGreaterThan(0)
    .finally(() => {
      isSeen = true
    })
  await Promise.all(clients)
  for (let attempt = 0; attempt < 13; attempt++) await logIn(service, 'not it')
  const figures = await scrape(service)
  expect(figures.auth_hashes_waiting).toBe(0)
  const wrong = figures['http_problems_total{code="invalid_credentials"}'] ?? 0
  const limited = figures['http_problems_total{code="too_many_requests"}'] ?? 0
  expect([wrong, limited]).toEqual([10, 3])
})

test('the event loop, the process and the disk are measured', async () => {
  await using service = await start()
  // The service runs in this thread. Its timer measures a pause in the next iteration, before or after this scrape.
  const measurePause = async () => {
    for (const until = performance.now() + 300; performance.now() < until; );
    return (await scrape(service)).nodejs_eventloop_lag_max_seconds
  }
  await expect.poll(measurePause).toBeGreaterThan(0.2)

  const figures = await scrape(service)
  expect(figures.process_start_time_seconds).toBeGreaterThan(0)
  expect(figures.data_disk_free_bytes).toBeGreaterThan(0)
  expect(figures.data_disk_size_bytes).toBeGreaterThanOrEqual(figures.data_disk_free_bytes ?? 0)
})

test('every metric that an alert needs exists from the start, so that its first event is a change', async () => {
  await using service = await start()

  expect(await scrape(service)).toMatchObject({
    'http_problems_total{code="internal_error"}': 0,
    'http_problems_total{code="write_not_confirmed"}': 0,
    'http_problems_total{code="registrar_auth"}': 0,
  })
})
