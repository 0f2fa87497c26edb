import { createLogger } from '@domains-and-files/http'
import { startSandbox } from '@domains-and-files/registrar-sandbox'
import { expect, test } from 'vitest'
import { CallQuota } from '../../src/budget/call-quota.ts'
import { marginMs } from '../../src/budget/call-windows.ts'
import { LocalBudget } from '../../src/budget/local-budget.ts'
import { RegistrarClient } from '../../src/registrar/client.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { openEmbedded } from '../support/ledger.ts'
import { apiKey, realRate, start } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const fresh = { 'cache-control': 'no-cache' }

async function startAtRealRate() {
  const clock = new FakeClock()
  const service = await start({ clock, env: { REGISTRAR_RATE: realRate } })
  const readFresh = () => service.call('GET', hosts, { user: 'viewer', headers: fresh })
  return { clock, service, readFresh }
}

test('twenty no-cache reads leave the calls of writes alone', async () => {
  const { service, readFresh } = await startAtRealRate()
  await using _ = service
  for (let read = 0; read < 20; read++) expect((await readFresh()).status).toBe(200)

  const { status } = await service.call('POST', `${hosts}/A`, {
    body: { name: 'x', address: '192.0.2.9' },
  })

  expect(status).toBe(201)
})

test('while calls for readers are scarce, no-cache gets an answer up to ten seconds old, with Age', async () => {
  const { clock, service, readFresh } = await startAtRealRate()
  await using _ = service
  for (let read = 0; read < 6; read++) await readFresh()
  expect(service.commands()).toHaveLength(6)

  await clock.advance(9_999)
  const young = await readFresh()
  expect(service.commands()).toHaveLength(6)
  await clock.advance(1)
  const old = await readFresh()

  expect([young.headers.get('age'), old.headers.get('age')]).toEqual(['9', '0'])
  expect(service.commands()).toHaveLength(7)
})

test('readers alone can use half of a minute: then they get 503 with a truthful Retry-After', async () => {
  const { clock, service } = await startAtRealRate()
  await using _ = service
  for (let name = 0; name < 10; name++)
    await service.call('GET', `/api/domains/unknown${name}.com/dns/hosts`, { user: 'viewer' })
  await clock.advance(17_000)

  const refused = await service.call('GET', hosts, { user: 'viewer' })
  expect(refused).toMatchObject({
    status: 503,
    body: { code: 'registrar_busy', detail: expect.stringContaining('43 s') },
  })
  expect(refused.headers.get('retry-after')).toBe('43')
  await clock.advance(43_000 + marginMs)

  expect((await service.call('GET', hosts, { user: 'viewer' })).status).toBe(200)
})

test('a name that the registrar does not know costs one call a minute', async () => {
  const { clock, service } = await startAtRealRate()
  await using _ = service
  const ask = () => service.call('GET', '/api/domains/unknown.com/dns/hosts', { user: 'viewer', headers: fresh })

  for (let time = 0; time < 20; time++) expect((await ask()).status).toBe(404)
  expect(service.commands()).toHaveLength(1)
  await clock.advance(60_001)
  await ask()

  expect(service.commands()).toHaveLength(2)
})

test('errors about one domain neither open the breaker for others nor degrade health', async () => {
  await using service = await start({ domains: [{ name: 'example.com' }, { name: 'sick.com' }] })
  service.sandbox.fault({
    kind: 'error',
    number: '3050900',
    message: 'Unknown error',
    domain: 'sick.com',
    times: 0,
  })
  for (let time = 0; time < 2; time++) {
    const { status } = await service.call('GET', '/api/domains/sick.com/dns/hosts')
    expect(status).toBe(502)
  }

  expect((await service.call('GET', hosts)).status).toBe(200)
  expect((await service.call('GET', '/health')).body).toMatchObject({ status: 'ok' })
  expect(service.commands()).toHaveLength(7)
})

/** A client of the registrar without a service. */
async function startClient() {
  const stack = new AsyncDisposableStack()
  const sandbox = stack.use(
    await startSandbox({ apiUser: 'tester', apiKey, rate: 'off', domains: [{ name: 'a.com' }] }),
  )
  const clock = new FakeClock()
  const budget = new LocalBudget(openEmbedded(), { account: 'tester', clock, onFailure: () => undefined })
  const client = new RegistrarClient({
    account: {
      url: sandbox.url,
      apiUser: 'tester',
      userName: 'tester',
      readApiKey: () => apiKey,
      clientIp: '127.0.0.1',
    },
    timeoutMs: 1_000,
    quota: await CallQuota.open({ limits: [{ calls: 20, window: 'minute' }], budget, clock }),
    clock,
    log: createLogger({ name: 'test', level: 'silent' }),
  })
  stack.defer(() => client.close())
  return { client, sandbox, clock, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

const domain = { name: 'a.com', sld: 'a', tld: 'com' }

test('a zone of unknown email type is not sent: a guess could end e-mail forwarding', async () => {
  await using set = await startClient()
  const zone = { domain: 'a.com', usesRegistrarDns: true, emailType: undefined, rows: [] }

  await expect(set.client.replaceZone(domain, zone, 'write', () => undefined)).rejects.toMatchObject({
    status: 409,
    code: 'email_type_conflict',
  })

  expect(set.sandbox.calls).toEqual([])
})

test('after an outage a call that waits for its slot, perhaps for hours, keeps no other from probing', async () => {
  await using set = await startClient()
  const { client, sandbox, clock } = set
  await client.zone(domain, 'sweep')
  sandbox.fault({ kind: 'status', status: 500, times: 5 })
  const failed = Promise.allSettled(Array.from({ length: 5 }, () => client.zone(domain, 'write')))
  await expect.poll(() => client.state().breaker).toBe('open')
  await clock.advance(5_000)
  expect((await failed).map(({ status }) => status)).not.toContain('fulfilled')
  const sweep = client.zone(domain, 'sweep')
  sweep.catch(() => undefined) // Refused at the end.
  await expect.poll(() => client.quota.waiting).toBe(1)

  const probed = await client.zone(domain, 'write')

  expect(probed.domain).toBe('a.com')
})
