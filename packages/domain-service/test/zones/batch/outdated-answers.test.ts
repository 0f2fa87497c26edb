import { expect, test } from 'vitest'
import { driveClock } from '../../support/drive-clock.ts'
import { failSends } from '../../support/failing-sends.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { type Service, start, www } from '../../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const getHosts = 'namecheap.domains.dns.getHosts'
const setHosts = 'namecheap.domains.dns.setHosts'

const add = (service: Service, name: string) =>
  service.call('POST', `${hosts}/A`, { body: { name, address: '192.0.2.9' } })

const namesOf = (service: Service) =>
  service.sandbox
    .zone('example.com')
    .hosts.map(({ name }) => name)
    .toSorted()

test.each([1, 2, 3])('%i outdated answers before a write do not undo the write before', async (times) => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  await add(service, 'first')
  service.sandbox.fault({ kind: 'outdated', command: getHosts, times })

  const { status } = await driveClock(clock, service, add(service, 'second'))

  expect([status, namesOf(service)]).toEqual([201, ['first', 'second', 'www']])
})

test('an outdated answer, where a held-back write reads again, does not undo the write before', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  await add(service, 'first')
  service.sandbox.clearCalls()
  // The registrar wants no call for a second: the write is held back after its read.
  service.sandbox.fault({ kind: 'status', status: 405, command: setHosts })
  const answer = add(service, 'second')
  await expect.poll(service.commands).toContain('dns.sethosts')
  service.sandbox.fault({ kind: 'outdated', command: getHosts })
  await clock.advance(1_500)

  const { status } = await driveClock(clock, service, answer)

  expect([status, namesOf(service)]).toEqual([201, ['first', 'second', 'www']])
})

test('an outdated answer after a write whose outcome was not recorded does not undo it', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  const repair = await failSends(service, 'update')
  const first = await add(service, 'first')
  await repair()
  service.sandbox.fault({ kind: 'outdated', command: getHosts })

  const { status } = await driveClock(clock, service, add(service, 'second'))

  expect([first.status, status]).toEqual([201, 201])
  expect(namesOf(service)).toEqual(['first', 'second', 'www'])
  const { body } = await service.call('GET', '/api/domains/example.com/dns/history')
  expect(body.history).toMatchObject([{ status: 'confirmed' }, { status: 'confirmed' }])
})

test('an unconfirmed write that only outdated answers hid is not undone by the next one', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  service.sandbox.fault({ kind: 'outdated', command: getHosts, after: 1, times: 4 })
  const first = await driveClock(clock, service, add(service, 'first'))

  const second = await driveClock(clock, service, add(service, 'second'))

  expect([first.status, second.status]).toEqual([502, 201])
  expect(namesOf(service)).toEqual(['first', 'second', 'www'])
})

test('a done write whose answer was an unlisted error is not called failed for one outdated answer', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  service.sandbox.fault(
    { kind: 'error', number: 9999999, execute: true, command: setHosts },
    { kind: 'outdated', command: getHosts, after: 1 },
  )

  const { status } = await driveClock(clock, service, add(service, 'first'))

  expect([status, namesOf(service)]).toEqual([201, ['first', 'www']])
})

test('a read-back that shows the zone of two writes ago is no outcome: the write is confirmed later', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock, env: { REGISTRAR_TIMEOUT_MS: '15000' } })
  const show = (...names: string[]) =>
    service.sandbox.setZone('example.com', {
      hosts: [www, ...names.map((name) => ({ name, type: 'A', address: '192.0.2.9' }))],
    })
  await add(service, 'first')
  service.sandbox.fault({ kind: 'slow', ms: 10_000, when: 'after', command: setHosts })
  const answer = add(service, 'second')
  await expect.poll(() => namesOf(service)).toContain('second')
  await show()
  service.sandbox.clearFaults()

  const { body: problem } = await driveClock(clock, service, answer)
  await show('first', 'second')

  expect(problem.code).toBe('write_not_confirmed')
  const statuses = async () => (await service.call('GET', '/api/domains/example.com/dns/history')).body.history
  const areConfirmed = expect.poll(statuses).toMatchObject([{ status: 'confirmed' }, { status: 'confirmed' }])
  await driveClock(clock, service, areConfirmed)
})
