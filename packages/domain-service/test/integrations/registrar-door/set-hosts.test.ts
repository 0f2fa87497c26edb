import { expect, test } from 'vitest'
import { type Door, type DoorRow, openDoor, toRows } from '../../support/door.ts'
import { driveClock } from '../../support/drive-clock.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { type Service, start } from '../../support/start.ts'

const hosts = [
  { name: 'www', type: 'A', address: '192.0.2.1', ttl: 300 },
  { name: '@', type: 'TXT', address: 'v=spf1 -all' },
]
const domains = [
  { name: 'example.com', emailType: 'FWD' as const, hosts },
  { name: 'example.net', hosts: [] },
]
const txt = (name: string, value = name): DoorRow => ({
  HostName: name,
  RecordType: 'TXT',
  Address: value,
})
const txtHost = (name: string) => ({ name, type: 'TXT', address: name })
const names = (service: Service) => service.live().map((each) => each.split(' ')[0])
const addHost = (service: Service, name: string) =>
  service.call('POST', '/api/domains/example.com/dns/hosts/TXT', { body: { name, address: name } })

test('a list adds, changes and removes what it changes in the zone that the client was given', async () => {
  await using service = await start({ domains })
  const door = await openDoor(service)
  const rows = await door.rows()

  const answer = await door.setHosts([
    { HostName: 'WWW', RecordType: 'a', Address: '192.0.2.1', TTL: '600' },
    txt('new'),
  ])
  await door.setHosts([{ HostName: 'www', RecordType: 'A', Address: '192.0.2.1' }, txt('new')])

  expect(rows).toHaveLength(2)
  expect([answer.http, answer.status, answer.numbers]).toEqual([200, 'OK', []])
  expect(answer.all('DomainDNSSetHostsResult')).toEqual([{ Domain: 'example.com', IsSuccess: 'true' }])
  expect(service.live()).toEqual(['www A 192.0.2.1 600 10', 'new TXT new 1800 10'])
  expect(service.sandbox.zone('example.com').emailType).toBe('FWD')
})

test('a list is one change of the history, with its token, beside the writes of others', async () => {
  await using service = await start({ domains })
  const door = await openDoor(service)
  const rows = await door.rows()
  await addHost(service, 'other')

  await door.setHosts([...rows.slice(1), txt('one'), txt('two')])
  const { body } = await service.call('GET', '/api/domains/example.com/dns/history')

  expect(names(service)).toEqual(['@', 'one', 'other', 'two'])
  expect(body.history).toHaveLength(2)
  expect(body.history?.[0]).toMatchObject({ by: 'admin', token: expect.stringMatching(/^test /) })
})

test.each([
  ['one token', true],
  ['tokens of their own', false],
])('six clients with %s that were given the same zone keep each other’s records', async (_case, isShared) => {
  await using service = await start({ domains })
  const first = await openDoor(service)
  const numbers = [0, 1, 2, 3, 4, 5]
  const doors = await Promise.all(numbers.map(() => (isShared ? openDoor(service, first.key) : openDoor(service))))
  const rows = await first.rows()
  await Promise.all(doors.map((door) => door.rows()))

  await Promise.all(doors.map((door, at) => door.setHosts([...rows, txt(`n${at}`)])))
  await Promise.all(doors.map((door, at) => door.setHosts([...rows, txt(`n${at}`), txt(`m${at}`)])))

  const own = numbers.flatMap((at) => [`m${at}`, `n${at}`])
  expect(names(service).sort()).toEqual(['@', 'www', ...own].sort())
})

test('a client that adds a record and goes back removes it, as often as it does so', async () => {
  await using service = await start({ domains })
  const door = await openDoor(service)
  const seen: (string | undefined)[][] = []
  for (const name of ['c', 'd']) {
    const rows = await door.rows()
    await door.setHosts([...rows, txt(name)])
    seen.push(names(service))
    await addHost(service, `after-${name}`)
    await door.setHosts(rows)
    seen.push(names(service))
  }

  expect(seen).toEqual([
    ['www', '@', 'c'],
    ['www', '@', 'after-c'],
    ['www', '@', 'after-c', 'd'],
    ['www', '@', 'after-c', 'after-d'],
  ])
})

test('challenges of a domain and its wildcard, which lego adds one by one, are removed together after other orders', async () => {
  await using service = await start({ domains })
  const door = await openDoor(service)
  const set = async (edit: (rows: DoorRow[]) => DoorRow[]) => door.setHosts(edit(await door.rows()))
  const challenge = (name: string, value: string) => txt(`_acme-challenge${name}`, value)
  const obtain = async (name: string, values: string[]) => {
    for (const value of values) await set((rows) => [...rows, challenge(name, value)])
    // lego removes all values of the name at once, and finds none when it comes to the second one.
    await set((rows) => rows.filter(({ HostName }) => HostName !== `_acme-challenge${name}`))
    await door.rows()
  }

  for (const name of ['.www', '.mail', '.web']) await obtain(name, ['1'])
  await obtain('', ['apex', 'wildcard'])

  expect(names(service)).toEqual(['www', '@'])
})

test('a client that reads before each write removes what it added, among the records of others', async () => {
  await using service = await start({ domains })
  const door = await openDoor(service)
  const set = async (edit: (rows: DoorRow[]) => DoorRow[]) => door.setHosts(edit(await door.rows()))

  await set((rows) => [...rows, txt('a')])
  await addHost(service, 'x')
  await set((rows) => [...rows, txt('b')])
  await set((rows) => rows.filter(({ HostName }) => HostName !== 'b'))
  await addHost(service, 'y')
  await set((rows) => [...rows.filter(({ HostName }) => HostName !== 'a'), txt('c')])
  await set((rows) => rows.filter(({ HostName }) => HostName !== 'c'))

  expect(names(service).sort()).toEqual(['@', 'www', 'x', 'y'])
})

test('a list without a zone of the last ten minutes is refused, and done with the zone or by a token that may replace', async () => {
  const clock = new FakeClock()
  await using service = await start({ domains, clock })
  const door = await openDoor(service)
  const bold = await openDoor(service, { role: 'editor', replace: true })
  const driven = (answer: ReturnType<Door['setHosts']>) => driveClock(clock, service, answer)
  await driven(door.getHosts())

  await clock.advance(599_000)
  const inTime = await driven(door.setHosts([txt('a')]))
  await clock.advance(601_000)
  const calls = service.commands().length
  const late = await driven(door.setHosts([txt('b')]))
  const sent = service.commands().length - calls
  await driveClock(clock, service, service.call('GET', '/api/domains/example.com/dns/hosts'))
  await service.sandbox.setZone('example.com', { hosts: [...hosts, txtHost('newer-than-the-cache')] })
  const replaced = await driven(bold.setHosts([txt('c')]))

  expect([inTime.numbers, late.numbers, replaced.numbers]).toEqual([[], ['2016166'], []])
  expect(late.words).toContain('getHosts first')
  expect(sent).toBe(0)
  expect(service.live()).toEqual(['c TXT c 1800 10'])
})

test('a token limited to records lists and changes only those, with a zone and without', async () => {
  await using service = await start({ domains })
  const records = [{ name: '_acme-challenge', types: ['TXT'] }]
  const door = await openDoor(service, { records })
  const reader = await openDoor(service, { records, role: 'editor' })
  const challenge = txt('_acme-challenge', 'v')

  const before = await door.setHosts([challenge])
  const listed = [await door.rows(), await reader.rows()]
  const foreign = await door.setHosts([challenge, txt('other')])
  const email = await door.setHosts([challenge], { EmailType: 'NONE' })
  const kept = names(service)
  const after = await door.setHosts([])

  expect([before.numbers, foreign.numbers, email.numbers]).toEqual([[], ['2030166'], ['2030166']])
  expect(listed.map((rows) => rows.map(({ HostName }) => HostName))).toEqual([['_acme-challenge'], ['_acme-challenge']])
  expect(kept).toEqual(['www', '@', '_acme-challenge'])
  expect([after.numbers, names(service)]).toEqual([[], ['www', '@']])
})

test('a token that may only propose changes writes nothing, and its client reads why', async () => {
  await using service = await start({ domains })
  const door = await openDoor(service, { role: 'editor', writes: 'propose' })

  const answer = await door.setHosts([...(await door.rows()), txt('a')])

  expect([answer.numbers, answer.words]).toEqual([['2030166'], expect.stringContaining('propose')])
  expect(service.commands()).toEqual(['dns.gethosts'])
})

test('an email type is changed only if another one is sent than was given', async () => {
  await using service = await start({ domains })
  const door = await openDoor(service)
  const rows = await door.rows()
  await service.sandbox.setZone('example.com', { emailType: 'OX' })

  await door.setHosts([...rows, txt('a')], { EmailType: 'FWD' })
  const kept = service.sandbox.zone('example.com').emailType
  await door.setHosts([...rows, txt('a')], { EmailType: 'none' })

  expect([kept, service.sandbox.zone('example.com').emailType]).toEqual(['OX', 'NONE'])
})

test('a name with a trailing dot comes back as its client wrote it, to that client', async () => {
  await using service = await start({ domains })
  const door = await openDoor(service, { records: [{ name: '_acme-challenge', types: ['TXT'] }] })
  const path = '/api/domains/example.com/dns/hosts'

  const written = await door.setHosts([txt('_acme-challenge.', 'v')])
  const rows = await door.rows()
  const { body } = await service.call('GET', path)
  const other = await openDoor(service)
  const seen = await other.rows()
  const removed = await door.setHosts([])

  expect([written.numbers, removed.numbers]).toEqual([[], []])
  expect(seen.map(({ HostName }) => HostName)).toContain('_acme-challenge')
  expect(rows).toMatchObject([{ HostName: '_acme-challenge.', Address: 'v' }])
  expect(body.hosts?.map(({ name }) => name)).toEqual(['@', '_acme-challenge', 'www'])
  expect(names(service)).toEqual(['www', '@'])
})

test('a refused list leaves the zone that it was compared with in its place', async () => {
  await using service = await start({ domains })
  const door = await openDoor(service)
  const rows = await door.rows()
  await addHost(service, 'x')

  const refused = await door.setHosts([...rows, { ...txt('a'), RecordType: 'A' }])
  const again = await door.setHosts([...rows, txt('a')])

  expect([refused.numbers, refused.words]).toEqual([
    ['2011288'],
    expect.stringMatching(/^Parameter Address3 is invalid: must be an IPv4 address/),
  ])
  expect([again.numbers, names(service).sort()]).toEqual([[], ['@', 'a', 'www', 'x']])
})

test('a list that takes longer than 25 s is too many requests, goes on, and is done when it is repeated', async () => {
  const clock = new FakeClock()
  await using service = await start({ domains, clock })
  const door = await openDoor(service)
  const rows = await driveClock(clock, service, door.rows())
  const command = 'namecheap.domains.dns.getHosts'
  service.sandbox.fault({ kind: 'reset', command, times: 0 })

  const late = await driveClock(clock, service, door.setHosts([...rows, txt('a')]))
  service.sandbox.clearFaults()
  let repeat = late
  while (repeat.http === 405) repeat = await driveClock(clock, service, door.setHosts([...rows, txt('a')]))
  const history = await service.call('GET', '/api/domains/example.com/dns/history')

  expect([late.http, late.words]).toEqual([405, 'Too many requests'])
  expect([repeat.numbers, names(service)]).toEqual([[], ['www', '@', 'a']])
  expect(history.body.history).toHaveLength(1)
  expect(toRows(await door.getHosts())).toHaveLength(3)
})

// As lego does: what it could not add for certain it removes at once, and only where it sees it.
test('a client that was too early is shown what it wrote, and takes it back', async () => {
  const clock = new FakeClock()
  await using service = await start({ domains, clock })
  const door = await openDoor(service)
  const other = await openDoor(service)
  const rows = await driveClock(clock, service, door.rows())
  const command = 'namecheap.domains.dns.getHosts'
  service.sandbox.fault({ kind: 'reset', command, times: 0 })

  const late = await driveClock(clock, service, door.setHosts([...rows, txt('a.')]))
  const seen = await driveClock(clock, service, door.rows())
  const others = await driveClock(clock, service, other.rows())
  service.sandbox.clearFaults()
  let back = late
  while (back.http === 405) back = await driveClock(clock, service, door.setHosts(rows))
  const history = await service.call('GET', '/api/domains/example.com/dns/history')

  expect([late.http, seen.map(({ HostName }) => HostName)]).toEqual([405, ['www', '@', 'a.']])
  expect(others).toHaveLength(2)
  expect([back.numbers, names(service)]).toEqual([[], ['www', '@']])
  expect(history.body.history).not.toContainEqual(expect.objectContaining({ status: 'queued' }))
})

test('a client whose read finds no free call is given the zone that is known, and its list changes the live one', async () => {
  const clock = new FakeClock()
  await using service = await start({ domains, clock, env: { REGISTRAR_RATE: '6/minute' } })
  const door = await openDoor(service)
  await driveClock(clock, service, door.setHosts([...(await door.rows()), txt('a')]))
  await clock.advance(600_000)
  await driveClock(clock, service, addHost(service, 'other'))
  await service.sandbox.setZone('example.com', { hosts: [...hosts, txtHost('a'), txtHost('b')] })
  await clock.advance(600_000)
  const path = '/api/domains/example.net/dns/hosts'
  const headers = { 'cache-control': 'no-cache' }
  for (let n = 0; n < 4; n++) {
    await driveClock(clock, service, service.call('GET', path, { headers }))
    await clock.advance(11_000)
  }

  const rows = await driveClock(clock, service, door.rows())
  await clock.advance(120_000)
  const set = door.setHosts(rows.filter(({ HostName }) => HostName !== 'a'))
  const removed = await driveClock(clock, service, set)

  expect(rows.map(({ HostName }) => HostName)).toEqual(['www', '@', 'a', 'other'])
  expect([removed.numbers, names(service)]).toEqual([[], ['www', '@', 'b']])
})

test('a client finds its records by its own spelling for an hour, though others read meanwhile', async () => {
  const clock = new FakeClock()
  await using service = await start({ domains, clock })
  const door = await openDoor(service)
  const other = await openDoor(service)
  const rows = await driveClock(clock, service, door.rows())
  await driveClock(clock, service, door.setHosts([...rows, txt('a.')]))
  for (let minutes = 0; minutes < 60; minutes += 20) {
    await clock.advance(20 * 60_000)
    await driveClock(clock, service, other.rows())
  }

  const seen = await driveClock(clock, service, door.rows())

  expect(seen.map(({ HostName }) => HostName)).toEqual(['www', '@', 'a.'])
})
