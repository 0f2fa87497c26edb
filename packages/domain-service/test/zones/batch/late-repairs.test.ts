import { expect, test } from 'vitest'
import { driveClock } from '../../support/drive-clock.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { type Service, start, www } from '../../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const setHosts = 'namecheap.domains.dns.setHosts'

const add = (service: Service, name: string) =>
  service.call('POST', `${hosts}/A`, { body: { name, address: '192.0.2.7' } })

const namesOf = (service: Service) =>
  service.sandbox
    .zone('example.com')
    .hosts.map(({ name }) => name)
    .toSorted()

test('a repair that would only restore records of types that cannot be sent is none', async () => {
  const clock = new FakeClock()
  const srv = { name: '_sip._tcp', type: 'SRV', address: '0 5 5060 sip.example.net.' }
  const domains = [{ name: 'example.com', hosts: [www, srv] }]
  await using service = await start({ clock, domains, env: { CACHE_TTL_MS: '0' } })
  service.sandbox.fault(
    { kind: 'late', command: setHosts },
    { kind: 'error', number: 2011170, command: setHosts, after: 1 },
  )
  const refused = await service.call('PUT', `${hosts}?force=true`, { body: { hosts: [www] } })
  await service.sandbox.runLate()
  expect([refused.status, namesOf(service)]).toEqual([422, ['www']])

  const { status, body } = await driveClock(clock, service, add(service, 'third'))

  expect([status, body.name, namesOf(service)]).toEqual([201, 'third', ['third', 'www']])
  const { body: shown } = await service.call('GET', '/api/domains/example.com/dns/history')
  expect(shown.history?.[0]).toMatchObject({ status: 'confirmed', changes: { added: [{ name: 'third' }] } })
})

test('a repair that is not sent, as another tool has written meanwhile, is refused', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock, env: { CACHE_TTL_MS: '0' } })
  service.sandbox.fault({ kind: 'late', command: setHosts })
  for (const name of ['first', 'second']) await add(service, name)
  await clock.advance(61_000)
  await expect.poll(() => clock.isQuiet()).toBe(true)
  await service.sandbox.runLate()
  const known = service.commands().length
  // The registrar wants no call for a second: the repair is held back after its read.
  service.sandbox.fault({ kind: 'status', status: 405, command: setHosts })

  const third = add(service, 'third')
  await expect.poll(() => service.commands().slice(known)).toContain('dns.sethosts')
  await service.sandbox.setZone('example.com', { hosts: [www] as never })
  await clock.advance(1_500)
  const { status } = await driveClock(clock, service, third)

  expect([status, namesOf(service)]).toEqual([201, ['third', 'www']])
  const { body: repair } = await service.call('GET', '/api/changes/4')
  expect(repair).toMatchObject({ reason: 'late_write', status: 'refused' })
})
