import { type Sandbox, startSandbox } from '@domains-and-files/registrar-sandbox'
import { expect, test } from 'vitest'
import { connect } from '../support/databases.ts'
import { driveClock } from '../support/drive-clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { joinWrites } from '../support/join-writes.ts'
import { startReplicas } from '../support/replicas.ts'
import { apiKey, realRate, type Service, www } from '../support/start.ts'

// Replicas of one account at the registrar's real rate, which the sandbox enforces.
const names = Array.from({ length: 24 }, (_, n) => `d${n}.com`)
const env = { REGISTRAR_RATE: realRate, REGISTRAR_TIMEOUT_MS: '120000' }

const hostsOf = (domain: string) => `/api/domains/${domain}/dns/hosts`
const add = (service: Service, domain: string, name: string, address = '192.0.2.9') =>
  service.call('POST', `${hostsOf(domain)}/A`, { body: { name, address } })

const countRefused = ({ calls }: Sandbox) => calls.filter(({ outcome }) => outcome === 'rate').length

/** Two replicas, and a clock that they share with the registrar: it moves while `drive` awaits what needs time. */
async function startPair() {
  const stack = new AsyncDisposableStack()
  const clock = new FakeClock()
  const sandbox = stack.use(
    await startSandbox({
      apiUser: 'tester',
      apiKey,
      rate: realRate,
      domains: names.map((name) => ({ name, hosts: [www] })),
      now: clock.now,
    }),
  )
  const { replicas, databaseUrl } = stack.use(await startReplicas(2, { env, sandbox, clock }))
  const database = stack.use(await connect(databaseUrl))
  const [first, second] = replicas
  const drive = <Result>(result: Promise<Result>) => driveClock(clock, { sandbox }, result)
  const useUp = (calls: number) =>
    database.query(`insert into domain_service.calls (account, at, priority)
      select account, domain_service.now_ms(), 'write' from domain_service.budgets, generate_series(1, ${calls})`)
  return {
    first,
    second,
    sandbox,
    clock,
    drive,
    useUp,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

test('a hundred adds at two replicas, of which the registrar refuses one, are 99 × 201 and 1 × 422', async () => {
  await using pair = await startPair()
  const { first, second, sandbox, drive } = pair
  const refusal = {
    kind: 'refused_row',
    address: '192.0.2.66',
    command: 'namecheap.domains.dns.setHosts',
    times: 0,
  } as const

  const answers = await drive(
    joinWrites({ services: [first, second], count: 100, faults: [refusal] }, (n) =>
      add(n % 2 === 0 ? first : second, 'd0.com', `h${n}`, n === 57 ? '192.0.2.66' : '192.0.2.9'),
    ),
  )

  const failed = answers.flatMap(({ status, body }, at) => (status === 201 ? [] : [{ at, status, code: body.code }]))
  expect(failed).toEqual([{ at: 57, status: 422, code: 'registrar_rejected' }])
  expect(sandbox.zone('d0.com').hosts).toHaveLength(100)
  expect(countRefused(sandbox)).toBe(0)
})

test('readers at two replicas use half of a minute together, and a write at either replica goes on', async () => {
  await using pair = await startPair()
  const { first, second, sandbox, drive } = pair

  const reads = await Promise.all(names.map((name, n) => (n % 2 === 0 ? first : second).call('GET', hostsOf(name))))
  const writes = [await drive(add(first, 'd0.com', 'new')), await drive(add(second, 'd1.com', 'new'))]

  expect(reads.filter(({ status }) => status === 200)).toHaveLength(10)
  const busy = reads.filter(({ status }) => status !== 200)
  expect(new Set(busy.map(({ body }) => body.code))).toEqual(new Set(['registrar_busy']))
  expect(writes.map(({ status }) => status)).toEqual([201, 201])
  expect(countRefused(sandbox)).toBe(0)
})

test('when a minute is used up both replicas refuse writes, and after their Retry-After both write', async () => {
  await using pair = await startPair()
  const { first, second, sandbox, useUp, clock, drive } = pair
  await first.call('GET', hostsOf('d6.com')) // The first call of an account creates its budget.
  await useUp(17)
  const addAtBoth = async () => [await drive(add(first, 'd6.com', 'new')), await drive(add(second, 'd7.com', 'new'))]

  const refused = await addAtBoth()
  const waits = refused.map(({ headers }) => Number(headers.get('retry-after')))
  // Past the margin, too: replicas learn a moved clock with their next turn, so nothing could wait for it before.
  await clock.advance((Math.max(...waits) + 1) * 1_000)
  const retried = await addAtBoth()

  expect(refused.map(({ status, body }) => [status, body.code])).toEqual([
    [503, 'registrar_busy'],
    [503, 'registrar_busy'],
  ])
  expect(Math.max(...waits)).toBeLessThanOrEqual(60)
  expect(retried.map(({ status }) => status)).toEqual([201, 201])
  expect(countRefused(sandbox)).toBe(0)
})

test('in five minutes of reads and writes at two replicas the registrar sees no call over its rate', async () => {
  await using pair = await startPair()
  const { first, second, sandbox, clock, drive } = pair
  const statuses = new Map<number, number>()

  for (let step = 0; step < 14; step++) {
    const at = (n: number) => names[(step * 5 + n) % names.length] ?? ''
    const answers = await drive(
      Promise.all([
        ...[first, second].map((replica, n) => add(replica, at(n), `r${step}`)),
        ...[first, second, first].map((replica, n) =>
          replica.call('GET', hostsOf(at(n + 2)), { headers: { 'cache-control': 'no-cache' } }),
        ),
      ]),
    )
    for (const { status } of answers) statuses.set(status, (statuses.get(status) ?? 0) + 1)
    await clock.advance(20_000)
  }

  expect(countRefused(sandbox)).toBe(0)
  // Writes have half of 20 calls a minute at least, and need three or four.
  expect(statuses.get(201)).toBeGreaterThanOrEqual(12)
  expect([200, 201, 503]).toEqual(expect.arrayContaining([...statuses.keys()]))
})
