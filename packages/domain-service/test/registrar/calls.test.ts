import type { FaultInput } from '@domains-and-files/registrar-sandbox'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { CircuitBreaker } from '../../src/registrar/client.ts'
import { driveClock } from '../support/drive-clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { add, final, passing, startBefore, startZone } from '../support/faulty-answers.ts'
import type { Service } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const getHosts = 'namecheap.domains.dns.getHosts'

/** Ends the time limit of the first call once the registrar has it, so that a slow machine misses no other limit. */
async function expireFirstCall({ sandbox }: Service) {
  const limit = new AbortController()
  const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValueOnce(limit.signal)
  onTestFinished(() => timeout.mockRestore())
  await expect.poll(() => sandbox.calls.length).toBe(1)
  limit.abort(new DOMException('The time is over', 'TimeoutError'))
}

describe('a read whose answer is', () => {
  test.each(passing)('%s is repeated', async (_name, fault) => {
    await using service = await startZone()
    service.sandbox.fault({ ...fault, command: getHosts })

    const read = service.call('GET', hosts)
    if (fault.kind === 'slow' || fault.kind === 'hang') await expireFirstCall(service)
    const { status, body } = await read

    expect([status, body.hosts?.length]).toEqual([200, 4])
    expect(service.commands()).toEqual(['dns.gethosts', 'dns.gethosts'])
  })

  test.each(passing)(
    '%s every time fails with its own code, and no write follows',
    async (_name, fault, status, code) => {
      await using service = await startBefore(fault)
      const before = service.live()
      service.sandbox.fault({ ...fault, command: getHosts, times: 0 })

      const read = await service.call('GET', hosts)
      const written = await add(service)

      expect([read.status, read.body.code]).toEqual([status, code])
      // The fifth failure in a row opens the circuit, which may be in the middle of the second request.
      expect([code, 'registrar_unavailable']).toContain(written.body.code)
      expect(service.commands()).not.toContain('dns.sethosts')
      expect(service.live()).toEqual(before)
    },
  )

  test.each(final)('%s fails at once, and no write follows', async (_name, fault, status, code) => {
    await using service = await startZone()
    service.sandbox.fault({ ...fault, command: getHosts, times: 0 })

    const written = await add(service)

    expect([written.status, written.body.code]).toEqual([status, code])
    expect(service.commands()).toEqual(['dns.gethosts'])
  })

  test('truncated at any byte causes no write', async () => {
    await using service = await startZone()
    const before = service.live()
    for (const at of [0, 40, 400, 800, 1200]) {
      service.sandbox.fault({ kind: 'cut', framing: 'close', at, command: getHosts, times: 3 })
      const { status } = await service.call('PUT', hosts, { body: { hosts: [] } })
      expect(status).toBe(502)
      service.sandbox.clearFaults()
      // Something that succeeds, so that the circuit stays closed.
      expect((await service.call('GET', '/api/domains', { headers: { 'cache-control': 'no-cache' } })).status).toBe(200)
    }

    expect(service.commands()).not.toContain('dns.sethosts')
    expect(service.live()).toEqual(before)
  })
})

test.each<FaultInput>([
  { kind: 'status', status: 405 },
  { kind: 'status', status: 429 },
  { kind: 'error', number: 500000 },
])('too many calls (%j): a read is repeated later, else told to come back', async (fault) => {
  await using service = await startZone()
  const read = () => service.call('GET', hosts, { headers: { 'cache-control': 'no-cache' } })
  service.sandbox.fault({ ...fault, command: getHosts })

  const repeated = await read()
  service.sandbox.fault({ ...fault, command: getHosts, times: 0 })
  const refused = await read()

  expect(repeated.status).toBe(200)
  expect([refused.status, refused.body.code]).toEqual([503, 'registrar_busy'])
  expect(refused.headers.get('retry-after')).toBe('60')
})

test('a read is not tried again once twice the time of a call has passed', async () => {
  const clock = new FakeClock()
  await using service = await startZone({}, clock)
  service.sandbox.fault({ kind: 'status', status: 500, command: getHosts, times: 0 })

  const read = service.call('GET', hosts)
  await expect.poll(() => service.lines().map(({ msg }) => msg)).toContain('retrying read')
  await clock.leap(30_000)
  const { status } = await driveClock(clock, service, read)

  expect(status).toBe(502)
  expect(service.commands()).toEqual(['dns.gethosts', 'dns.gethosts'])
})

test('after five failures in a row calls fail fast, then one probes', async () => {
  const clock = new FakeClock()
  const breaker = new CircuitBreaker(clock)
  for (let failure = 0; failure < 5; failure++) {
    breaker.admit()
    breaker.failed()
  }
  expect(() => breaker.admit()).toThrow(
    expect.objectContaining({
      status: 503,
      code: 'registrar_unavailable',
      headers: { 'retry-after': '5' },
    }),
  )

  await clock.advance(5_000)
  expect(breaker.state).toBe('half_open')
  breaker.admit()
  expect(() => breaker.admit()).toThrow('gets a pause')
  breaker.succeeded()

  expect(breaker.state).toBe('closed')
  expect(() => breaker.admit()).not.toThrow()
})

test('a failed probe opens it again; a probe that was not made leaves it to the next call', async () => {
  const clock = new FakeClock()
  const breaker = new CircuitBreaker(clock)
  for (let failure = 0; failure < 5; failure++) breaker.failed()
  await clock.advance(5_000)
  breaker.admit()
  breaker.skipped()
  breaker.admit()
  breaker.failed()

  expect(breaker.state).toBe('open')
})

test('a probe that finds no call left is not made, and the next one is', async () => {
  const clock = new FakeClock()
  await using service = await startZone({ REGISTRAR_RATE: '10/minute' }, clock)
  const read = () => driveClock(clock, service, service.call('GET', hosts))
  service.sandbox.fault({ kind: 'status', status: 500, command: getHosts, times: 0 })
  const failed = [await read(), await read()]
  service.sandbox.clearFaults()
  await clock.advance(5_000)

  const unmade = await read()
  await clock.advance(60_000)
  const probed = await read()

  expect([...failed, unmade].map(({ body }) => body.code)).toEqual([
    'registrar_error',
    'registrar_unavailable',
    'registrar_busy',
  ])
  expect(probed.status).toBe(200)
})

test('a success resets the count of failures', () => {
  const breaker = new CircuitBreaker(new FakeClock())
  for (let failure = 0; failure < 4; failure++) breaker.failed()
  breaker.succeeded()
  for (let failure = 0; failure < 4; failure++) breaker.failed()

  expect(breaker.state).toBe('closed')
})
