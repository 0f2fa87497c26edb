import { expect, onTestFinished, test } from 'vitest'
import { driveClock } from '../support/drive-clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { logIn, start, www } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const hour = 3_600_000

// Before any service is made, since parts may keep the function.
const realNow = Date.now
let offset = 0
Date.now = () => realNow() + offset

/** Sets the system's clock; what is measured otherwise goes on. */
function jump(milliseconds: number) {
  offset += milliseconds
  onTestFinished(() => {
    offset = 0
  })
}

test.each([
  ['back', -hour],
  ['forward', hour / 2],
])('a clock that is set %s makes no cached answer last longer', async (_name, by) => {
  await using service = await start({ env: { CACHE_TTL_MS: '500' } })
  await service.call('GET', hosts)
  jump(by)
  await service.call('GET', hosts)
  await service.sandbox.setZone('example.com', { hosts: [{ ...www, name: 'panel' }] })

  const names = async () => {
    const { body } = await service.call('GET', hosts)
    return body.hosts?.map(({ name }) => name)
  }

  await expect.poll(names).toEqual(['panel'])
})

test('a clock that is set back does not keep the circuit open', async () => {
  await using service = await start({ env: { CACHE_TTL_MS: '0' } })
  service.sandbox.fault({ kind: 'html', times: 6 })
  await service.call('GET', hosts)
  await service.call('GET', hosts)
  expect((await service.call('GET', hosts)).body.code).toBe('registrar_unavailable')
  service.sandbox.clearFaults()

  jump(-hour)

  const status = async () => (await service.call('GET', hosts)).status
  await expect.poll(status).toBe(200)
})

test('a clock that is set back does not hold up the calls that the registrar allows', async () => {
  await using service = await start({ env: { CACHE_TTL_MS: '0' } })
  service.sandbox.fault({ kind: 'status', status: 405, times: 3 })
  await service.call('GET', hosts)

  jump(-hour)

  expect((await service.call('GET', hosts)).status).toBe(200)
})

test('a token ends by the clock that is in force', async () => {
  await using service = await start({ env: { TOKEN_TTL: '3000' } })
  const headers = { authorization: `Bearer ${await logIn(service.url, 'admin')}` }
  expect((await service.call('GET', '/api/auth/me', { headers })).status).toBe(200)

  jump(hour)
  const late = await service.call('GET', '/api/auth/me', { headers })
  jump(-2 * hour)
  const early = await service.call('GET', '/api/auth/me', { headers })

  expect([late.status, late.body.code, early.status]).toEqual([401, 'token_expired', 200])
})

test('a clock that is set forward does not let a late write pass', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  const add = (name: string) => service.call('POST', `${hosts}/A`, { body: { name, address: '192.0.2.7' } })
  service.sandbox.fault({ kind: 'late', command: 'namecheap.domains.dns.setHosts' })
  await add('first')
  await add('second')

  jump(hour)
  await service.sandbox.runLate()

  const names = () => service.sandbox.zone('example.com').hosts.map(({ name }) => name)
  const isRepaired = expect.poll(names).toContain('second')
  await driveClock(clock, service, isRepaired)
})

test('what a service stored while its clock was ahead holds nothing up after a restart with the right one', async () => {
  const [day, env] = [24 * hour, { DRIFT_INTERVAL_S: '30' }]
  const ahead = new FakeClock(1_800_000_000_000 + day)
  await using first = await start({ clock: ahead, env })
  const { dataDir, sandbox } = first
  const readBy = async (from: typeof first, clock: FakeClock) => {
    await clock.advance(1_100)
    await from.call('GET', hosts, { headers: { 'cache-control': 'no-cache' } })
    const { body } = await from.call('GET', '/api/domains/example.com/dns/history')
    return body.history?.flatMap(({ by, changes }) =>
      by === null ? (changes?.removed.map(({ name }) => name) ?? []) : by,
    )
  }
  await first.call('GET', hosts)
  const own = { name: 'own', address: '192.0.2.7' }
  await driveClock(ahead, first, first.call('POST', `${hosts}/A`, { body: own }))
  await ahead.advance(60_000)
  await sandbox.setZone('example.com', { hosts: [{ ...www, ...own }] })
  await expect.poll(() => readBy(first, ahead)).toEqual(['www', 'admin'])
  await driveClock(ahead, first, first.call('GET', '/api/domains'))
  sandbox.fault({ kind: 'html', times: 0 })
  const body = { name: 'queued', address: '192.0.2.7' }
  await first.call('POST', `${hosts}/A`, { body, headers: { prefer: 'respond-async' } })
  const messages = expect.poll(() => first.lines().map(({ msg }) => msg))
  await driveClock(ahead, first, messages.toContain('queued changes not carried out'))
  await first.close()
  sandbox.clearFaults()
  const clock = new FakeClock()
  await using service = await start({ clock, dataDir, sandbox, env })

  await sandbox.setZone('example.com', { hosts: [{ ...www, name: 'panel' }] })
  await clock.advance(60_000) // Until then a read may show the zone from before the write.
  await expect.poll(() => readBy(service, clock)).toHaveLength(4)
  expect(await readBy(service, clock)).toEqual(expect.arrayContaining(['own', 'admin', 'www', 'admin']))
  await sandbox.addDomain({ name: 'second.com' })
  const listed = async () => {
    await clock.advance(300_000)
    return (await service.call('GET', '/api/domains')).body.domains?.length
  }
  await expect.poll(listed).toBe(2)
})
