import { expect, test } from 'vitest'
import { driveClock } from '../../support/drive-clock.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { type Service, start, www } from '../../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const history = '/api/domains/example.com/dns/history'
const setHosts = 'namecheap.domains.dns.setHosts'
const getHosts = 'namecheap.domains.dns.getHosts'
const [first, second] = ['first', 'second'].map((name) => ({ ...www, name }))

const add = (service: Service, name: string, query = '') =>
  service.call('POST', `${hosts}/A${query}`, { body: { name, address: '192.0.2.7' } })

const namesOf = (service: Service) =>
  service.sandbox
    .zone('example.com')
    .hosts.map(({ name }) => name)
    .toSorted()

const reasonsOf = async (service: Service) =>
  (await service.call('GET', history)).body.history?.map(({ by, reason }) => reason ?? by)

const statusesOf = async (service: Service) =>
  (await service.call('GET', history)).body.history?.map(({ status }) => status)

/** What the history has of a write and of the repair that it caused, newest first: a write has its place when it is queued. */
const inHistory = <Entry>(write: Entry, repair: Entry, ...older: Entry[]) => [repair, write, ...older]

/** A write of `first` whose first send got no answer, and of `second` after it. `runLate` carries that send out. */
async function startWithLateWrite(options: { dataDir?: string; clock?: FakeClock } = {}) {
  const clock = options.clock ?? new FakeClock()
  const service = await start({ ...options, clock, env: { CACHE_TTL_MS: '0' } })
  service.sandbox.fault({ kind: 'late', command: setHosts })
  const statuses = [(await add(service, 'first')).status, (await add(service, 'second')).status]
  expect([statuses, namesOf(service)]).toEqual([
    [201, 201],
    ['first', 'second', 'www'],
  ])
  return { service, clock }
}

test('a late write over a newer one is repaired without any request, as a change of its own', async () => {
  const { service, clock } = await startWithLateWrite()
  await using _service = service

  await service.sandbox.runLate()
  expect(namesOf(service)).toEqual(['first', 'www'])
  const isRepaired = expect.poll(() => namesOf(service)).toEqual(['first', 'second', 'www'])
  await driveClock(clock, service, isRepaired)

  const newest = async () => (await service.call('GET', history)).body.history?.[0]
  await expect.poll(newest).toMatchObject({
    by: 'domain-service',
    status: 'confirmed',
    changes: { added: [{ name: 'second' }], removed: [] },
  })
  expect(await reasonsOf(service)).toEqual(['late_write', 'admin', 'admin'])
  const events = await service.call('GET', '/api/events?types=zone.changed')
  const byAdmin = { by: 'admin', request_id: expect.any(String) }
  expect(events.body.events).toMatchObject([byAdmin, byAdmin, { by: 'domain-service', request_id: null }])
  const figures = await fetch(`${service.url}/metrics`, {
    headers: { authorization: 'Bearer metrics-token-of-tests' },
  })
  expect(await figures.text()).toMatch(/^zone_late_writes_total 1$/m)
})

test('the next write builds on the repaired zone', async () => {
  const { service, clock } = await startWithLateWrite()
  await using _service = service
  await service.sandbox.runLate()

  const third = await driveClock(clock, service, add(service, 'third'))

  expect(third.status).toBe(201)
  expect(namesOf(service)).toEqual(['first', 'second', 'third', 'www'])
  expect(await reasonsOf(service)).toEqual(inHistory('admin', 'late_write', 'admin', 'admin'))
})

test.each([
  [580, ['first', 'second', 'third', 'www']],
  [620, ['first', 'third', 'www']],
])('a late write is expected for ten minutes: after %i s the zone is %j', async (seconds, names) => {
  const { service, clock } = await startWithLateWrite()
  await using _service = service
  await clock.advance(seconds * 1_000)
  // A check of the zone that began within the ten minutes would still repair it.
  await expect.poll(() => clock.isQuiet()).toBe(true)
  await service.sandbox.runLate()

  const third = await driveClock(clock, service, add(service, 'third'))

  expect([third.status, namesOf(service)]).toEqual([201, names])
})

test('a batch of dry runs repairs nothing', async () => {
  const { service, clock } = await startWithLateWrite()
  await using _service = service
  await service.sandbox.runLate()

  const { status } = await driveClock(clock, service, add(service, 'third', '?dry_run=true'))

  expect(status).toBe(201)
  expect(namesOf(service)).toEqual(['first', 'www'])
})

test('each late write is repaired once: a person who removes the record afterwards is not undone', async () => {
  const { service, clock } = await startWithLateWrite()
  await using _service = service
  await service.sandbox.runLate()
  const { hosts: late } = service.sandbox.zone('example.com')
  await driveClock(clock, service, add(service, 'third'))
  await service.sandbox.setZone('example.com', { hosts: late })

  const fourth = await driveClock(clock, service, add(service, 'fourth'))

  expect(fourth.status).toBe(201)
  expect(namesOf(service)).toEqual(['first', 'fourth', 'www'])
})

test('a person who removes a record is not undone where no write was given up', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock, env: { CACHE_TTL_MS: '0' } })
  await add(service, 'first')
  await add(service, 'second')
  await service.sandbox.setZone('example.com', { hosts: [www, first] as never })

  const { status } = await driveClock(clock, service, add(service, 'third'))

  expect(status).toBe(201)
  expect(namesOf(service)).toEqual(['first', 'third', 'www'])
})

test('a late write is repaired although the registrar refuses the write that finds it', async () => {
  const { service, clock } = await startWithLateWrite()
  await using _service = service
  await service.sandbox.runLate()
  service.sandbox.fault({ kind: 'error', number: 2011170, command: setHosts })

  const { status } = await driveClock(clock, service, add(service, 'third'))

  expect(status).toBe(422)
  const isRepaired = expect
    .poll(() => statusesOf(service))
    .toEqual(inHistory('refused', 'confirmed', 'confirmed', 'confirmed'))
  await driveClock(clock, service, isRepaired)
  expect(namesOf(service)).toEqual(['first', 'second', 'www'])
})

test('a late write whose repair got no answer, and is not to be seen, is repaired by the next write', async () => {
  const { service, clock } = await startWithLateWrite()
  await using _service = service
  await service.sandbox.runLate()
  service.sandbox.fault({ kind: 'reset', command: setHosts, times: 2 })
  const third = await driveClock(clock, service, add(service, 'third'))
  expect([third.body.code, namesOf(service)]).toEqual(['write_not_confirmed', ['first', 'www']])

  const fourth = await driveClock(clock, service, add(service, 'fourth'))

  expect(fourth.status).toBe(201)
  expect(namesOf(service)).toEqual(['first', 'fourth', 'second', 'www'])
})

test('a late write whose repair could not be read back, and is not to be seen, is repaired by the next write', async () => {
  const { service, clock } = await startWithLateWrite()
  await using _service = service
  await service.sandbox.runLate()
  service.sandbox.fault({ kind: 'ignored', command: setHosts }, { kind: 'html', command: getHosts, after: 4, times: 3 })
  const third = await driveClock(clock, service, add(service, 'third'))
  expect([third.body.verified, namesOf(service)]).toEqual([false, ['first', 'www']])

  const fourth = await driveClock(clock, service, add(service, 'fourth'))

  expect(fourth.status).toBe(201)
  expect(namesOf(service)).toEqual(['first', 'fourth', 'second', 'www'])
})

test('a late write whose repair the registrar refuses is repaired by the next write', async () => {
  const { service, clock } = await startWithLateWrite()
  await using _service = service
  await service.sandbox.runLate()
  service.sandbox.fault({ kind: 'error', number: 2011170, command: setHosts, times: 2 })
  const third = await driveClock(clock, service, add(service, 'third'))
  expect([third.status, namesOf(service)]).toEqual([422, ['first', 'www']])

  const fourth = await driveClock(clock, service, add(service, 'fourth'))

  expect(fourth.status).toBe(201)
  expect(namesOf(service)).toEqual(['first', 'fourth', 'second', 'www'])
})

test('a write that was sent twice without an answer may be carried out late twice, and is repaired twice', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock, env: { CACHE_TTL_MS: '0' } })
  service.sandbox.fault({ kind: 'late', command: setHosts, times: 2 })
  const lost = await driveClock(clock, service, add(service, 'first'))
  await driveClock(clock, service, add(service, 'second'))
  await service.sandbox.runLate()
  const { hosts: late } = service.sandbox.zone('example.com')
  const addAfterLate = async (name: string) => {
    await service.sandbox.setZone('example.com', { hosts: late })
    await driveClock(clock, service, add(service, name))
    return namesOf(service)
  }

  const zones = [
    await addAfterLate('third'),
    await addAfterLate('fourth'),
    // Two sends, two repairs: now it is a person who set this zone.
    await addAfterLate('fifth'),
  ]

  expect(lost.body.code).toBe('write_not_confirmed')
  expect(zones).toEqual([
    ['second', 'third', 'www'],
    ['fourth', 'second', 'third', 'www'],
    ['fifth', 'first', 'www'],
  ])
})

test('a given-up write is still known after a restart', async () => {
  const { service, clock } = await startWithLateWrite()
  await using _service = service
  await service.close()
  await service.sandbox.runLate()

  const { sandbox, dataDir } = service
  await using restarted = await start({ sandbox, dataDir, clock, env: { CACHE_TTL_MS: '0' } })
  const isRepaired = expect.poll(() => namesOf(restarted)).toContain('second')
  await driveClock(clock, restarted, isRepaired)

  await expect.poll(() => reasonsOf(restarted)).toEqual(['late_write', 'admin', 'admin'])
})

test('a write whose retry was refused is not there in the end', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock, env: { CACHE_TTL_MS: '0' } })
  service.sandbox.fault(
    { kind: 'late', command: setHosts },
    { kind: 'error', number: 2011170, command: setHosts, after: 1 },
  )
  const { status } = await add(service, 'first')
  await service.sandbox.runLate()
  expect([status, namesOf(service)]).toEqual([422, ['first', 'www']])

  const isRepaired = expect.poll(() => namesOf(service)).toEqual(['www'])
  await driveClock(clock, service, isRepaired)
})

test('a write that was never confirmed may be carried out late; it stays, and the history tells', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock, env: { CACHE_TTL_MS: '0' } })
  service.sandbox.fault({ kind: 'late', command: setHosts, times: 2 })
  const lost = await driveClock(clock, service, add(service, 'first'))
  const before = (await service.call('GET', history)).body.history?.[0]?.status
  await service.sandbox.runLate()

  const { status } = await add(service, 'second')

  expect([lost.body.code, before, status]).toEqual(['write_not_confirmed', 'unconfirmed', 201])
  expect(namesOf(service)).toEqual(['first', 'second', 'www'])
  const { body } = await service.call('GET', history)
  expect(body.history).toMatchObject([{ status: 'confirmed' }, { status: 'confirmed' }])
})

test('another tool’s zone is left as it is, though a write was given up', async () => {
  const { service, clock } = await startWithLateWrite()
  await using _service = service
  await service.sandbox.setZone('example.com', { hosts: [second] as never })

  const { status } = await driveClock(clock, service, add(service, 'third'))

  expect(status).toBe(201)
  expect(namesOf(service)).toEqual(['second', 'third'])
})
