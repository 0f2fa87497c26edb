import { startSandbox } from '@domains-and-files/registrar-sandbox'
import { describe, expect, test } from 'vitest'
import { marginMs } from '../../../src/budget/call-windows.ts'
import { driveClock } from '../../support/drive-clock.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { countChanges, joinWrites } from '../../support/join-writes.ts'
import { type Answer, apiKey, realRate, type Service, start, www } from '../../support/start.ts'

// At the registrar's real rate, on a clock that stands still: no window ever has more calls than its limit.
const names = Array.from({ length: 10 }, (_, n) => `d${n}.com`)
const tenDomains = names.map((name) => ({ name, hosts: [www] }))
// A call that a busy machine answers late must not time out: its retry would wait for the clock.
const env = { REGISTRAR_RATE: realRate, REGISTRAR_TIMEOUT_MS: '15000' }

const pathOf = (domain: string) => `/api/domains/${domain}/dns`
const add = (service: Service, domain: string) =>
  service.call('POST', `${pathOf(domain)}/hosts/A`, {
    body: { name: 'shop', address: '192.0.2.9' },
  })

async function stateOf(service: Service, domain: string, { status, body }: Answer) {
  const { body: history } = await service.call('GET', `${pathOf(domain)}/history`)
  return {
    answer: `${status} ${body.code ?? ''}`.trim(),
    isLive: service.live(domain).some((row) => row.startsWith('shop ')),
    history: history.history?.map(({ status }) => status),
  }
}

const done = { answer: '201', isLive: true, history: ['confirmed'] }
const refused = { answer: '503 registrar_busy', isLive: false, history: [] }

describe('20 calls a minute suffice for six writes', () => {
  test.each(['one after another', 'at once'])(
    '%s; further ones get 503, are not sent and in no history',
    async (mode) => {
      await using service = await start({ domains: tenDomains, env, clock: new FakeClock() })
      await service.call('GET', '/health')

      const answers: Answer[] = []
      if (mode === 'at once') answers.push(...(await Promise.all(names.map((name) => add(service, name)))))
      else for (const name of names) answers.push(await add(service, name))

      const states = await Promise.all(answers.map((answer, at) => stateOf(service, names[at] ?? '', answer)))
      expect(states.filter(({ answer }) => answer === '201')).toEqual(Array(6).fill(done))
      expect(states.filter(({ answer }) => answer !== '201')).toEqual(Array(4).fill(refused))
    },
  )

  test('and Retry-After is true: after it the write succeeds', async () => {
    const clock = new FakeClock()
    await using service = await start({ domains: tenDomains, env, clock })
    for (const name of names.slice(0, 6)) await add(service, name)

    const busy = await add(service, 'd6.com')
    // It would wait out the margin of the windows.
    await clock.advance(Number(busy.headers.get('retry-after')) * 1_000 + marginMs)
    const retried = await add(service, 'd6.com')

    expect([busy.status, retried.status]).toEqual([503, 201])
  })

  test('and one that removes records is done whole or not at all', async () => {
    const hosts = Array.from({ length: 12 }, (_, n) => ({ ...www, name: `r${n}` }))
    const domains = names.map((name) => ({ name, hosts }))
    await using service = await start({ domains, env, clock: new FakeClock() })

    const answers = await Promise.all(
      names.map((name) =>
        service.call('PUT', `${pathOf(name)}/hosts`, {
          body: { hosts: [{ name: 'r0', type: 'A', address: '192.0.2.1' }] },
        }),
      ),
    )

    const left = answers.map(({ status }, at) => [status, service.live(names[at]).length])
    expect(left.toSorted()).toEqual([...Array(6).fill([200, 1]), ...Array(4).fill([503, 12])])
  })
})

describe('a hundred joined adds of which the registrar refuses one, at the real rate', () => {
  test.each([
    { named: true, bad: 57 },
    { named: false, bad: 0 },
    { named: false, bad: 50 },
    { named: false, bad: 57 },
    { named: false, bad: 99 },
  ])('named: $named, the bad one at $bad: 99 × 201, 1 × 422', async ({ named, bad }) => {
    const clock = new FakeClock()
    await using sandbox = await startSandbox({
      apiUser: 'tester',
      apiKey,
      rate: realRate,
      now: clock.now,
      domains: [{ name: 'example.com', hosts: [www] }],
    })
    await using service = await start({
      sandbox,
      env: { ...env, REGISTRAR_TIMEOUT_MS: '120000' },
      clock,
    })
    const refusal = {
      kind: 'refused_row',
      named,
      address: '192.0.2.66',
      command: 'namecheap.domains.dns.setHosts',
      times: 0,
    } as const

    const batch = { count: 100, isOrdered: true, faults: [refusal] }
    const answers = await joinWrites({ services: [service], ...batch }, (n) =>
      service.call('POST', `${pathOf('example.com')}/hosts/A`, {
        body: { name: `h${n}`, address: n === bad ? '192.0.2.66' : '192.0.2.9' },
      }),
    )

    const failed = answers.flatMap(({ status, body }, at) => (status === 201 ? [] : [{ at, status, code: body.code }]))
    expect(failed).toEqual([{ at: bad, status: 422, code: 'registrar_rejected' }])
    expect(service.live()).toHaveLength(100)
    expect(sandbox.calls.every(({ outcome }) => outcome !== 'rate')).toBe(true)
    expect(sandbox.calls.length).toBeLessThanOrEqual(20)
    const { body } = await service.call('GET', `${pathOf('example.com')}/history?page_size=100`)
    expect(body.history?.filter(({ status }) => status === 'confirmed')).toHaveLength(99)
  })
})

test('a registrar that is busy is waited out, and its answer is never taken for a refusal', async () => {
  const clock = new FakeClock()
  await using service = await start({ env, clock })
  service.sandbox.fault({ kind: 'status', status: 405, command: 'namecheap.domains.dns.setHosts' })

  const { status } = await driveClock(clock, service, add(service, 'example.com'))

  expect(status).toBe(201)
})

test('who comes back late finds the place gone, and others have its slots', async () => {
  const clock = new FakeClock()
  await using service = await start({ domains: tenDomains, env, clock })
  for (const name of names.slice(0, 6)) await add(service, name)
  const told = await add(service, 'd6.com')

  await clock.advance((Number(told.headers.get('retry-after')) + 11) * 1_000)
  const answers = await Promise.all(
    names.slice(0, 6).map((name) =>
      service.call('POST', `${pathOf(name)}/hosts/A`, {
        body: { name: 'later', address: '192.0.2.9' },
        user: 'editor',
      }),
    ),
  )

  expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(201))
})

test('writes of one domain that were refused one after another are one batch when they come back', async () => {
  const clock = new FakeClock()
  await using service = await start({ domains: tenDomains, env: { ...env, REGISTRAR_TIMEOUT_MS: '120000' }, clock })
  for (const name of names.slice(0, 6)) await add(service, name)
  const addHost = (n: number) =>
    service.call('POST', `${pathOf('d6.com')}/hosts/A`, {
      body: { name: `h${n}`, address: '192.0.2.9' },
      user: n % 2 === 0 ? 'admin' : 'editor',
    })
  const hosts = Array.from({ length: 12 }, (_, n) => n)
  let seconds = 0
  for (const n of hosts) {
    const { status, headers } = await addHost(n)
    expect(status).toBe(503)
    seconds = Number(headers.get('retry-after'))
    await clock.advance(500)
  }
  const known = await countChanges(service)

  await clock.advance(seconds * 1_000 + marginMs)
  const first = addHost(0)
  await expect.poll(() => countChanges(service)).toBe(known + 1)
  const writes = Promise.all([first, ...hosts.slice(1).map(addHost)])
  // The batch goes on when all of them wait: the clock stands still.
  await expect.poll(() => countChanges(service)).toBe(known + hosts.length)
  const answers = await driveClock(clock, service, writes)

  expect(answers.map(({ status }) => status)).toEqual(hosts.map(() => 201))
  expect(service.commands().filter((command) => command === 'dns.sethosts')).toHaveLength(6 + 1)
})

test('dry runs take no slots of writers', async () => {
  await using service = await start({ domains: tenDomains, env, clock: new FakeClock() })
  const tries = Array.from({ length: 20 }, (_, n) =>
    service.call('POST', `${pathOf(names[n % 10] ?? '')}/hosts/A?dry_run=true`, {
      body: { name: `try${n}`, address: '192.0.2.9' },
      user: 'editor',
    }),
  )
  const answers = await Promise.all(tries)

  const written = [await add(service, 'd0.com'), await add(service, 'd1.com')]

  expect(answers.filter(({ status }) => status === 200 || status === 201).length).toBeGreaterThan(0)
  expect(written.map(({ status }) => status)).toEqual([201, 201])
})
