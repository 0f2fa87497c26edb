import { expect, test } from 'vitest'
import { type DoorRow, openDoor, split } from '../../support/door.ts'
import { driveClock } from '../../support/drive-clock.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { type Service, start, www } from '../../support/start.ts'

const domains = [{ name: 'example.com', hosts: [www] }]
const txt = (name: string, Address = name): DoorRow => ({
  HostName: name,
  RecordType: 'TXT',
  Address,
})
const live = (service: Service) =>
  service
    .live()
    .map((each) => each.split(' ').slice(0, 3).join(' '))
    .sort()

test('each list of a tool that reads twice before it writes, as DNSControl does, takes effect', async () => {
  await using service = await start({ domains })
  const door = await openDoor(service)
  const push = async (...rows: DoorRow[]) => {
    await door.rows()
    const others = (await door.rows()).filter(({ HostName }) => HostName === 'www')
    await door.setHosts([...others, ...rows])
    return live(service).slice(0, -1)
  }

  const seen = [await push(txt('a')), await push(), await push(txt('a')), await push(txt('a', 'b'))]

  expect(seen).toEqual([['a TXT a'], [], ['a TXT a'], ['a TXT b']])
})

const written = async (service: Service, name: string) =>
  expect.poll(() => live(service)).toContain(`${name} TXT ${name}`)

const command = 'namecheap.domains.dns.getHosts'

test('a list that comes again since its answer was too late removes nothing of others with its token', async () => {
  const clock = new FakeClock()
  await using service = await start({ domains, clock })
  const door = await openDoor(service)
  const driven = <Answer>(answer: Promise<Answer>) => driveClock(clock, service, answer)
  const list = [...(await driven(door.rows())), txt('b')]
  service.sandbox.fault({ kind: 'reset', command, times: 0 })
  const began = clock.now()
  const late = await driven(door.setHosts(list))
  const waitedMs = clock.now() - began
  service.sandbox.clearFaults()
  await driven(written(service, 'b'))
  await clock.advance(60_000) // Until the door knows it.
  await driven(door.setHosts([...(await driven(door.rows())), txt('a')]))
  await driven(door.getHosts())

  const again = [await driven(door.setHosts(list)), await driven(door.setHosts(list))]

  expect([late.http, ...again.map(({ numbers }) => numbers)]).toEqual([405, [], []])
  // The clock may go on while the answer is sent.
  expect(waitedMs).toBeGreaterThanOrEqual(25_000)
  expect(waitedMs).toBeLessThan(200_000)
  expect(live(service)).toEqual(['a TXT a', 'b TXT b', 'www A 192.0.2.1'])
})

test('a list that comes again where a record of it was removed since is refused, until its tool reads the zone', async () => {
  const clock = new FakeClock()
  await using service = await start({ domains, clock })
  const door = await openDoor(service)
  const driven = <Answer>(answer: Promise<Answer>) => driveClock(clock, service, answer)
  await driven(door.setHosts([...(await driven(door.rows())), txt('c')]))
  const list = [...(await driven(door.rows())), txt('b')]
  service.sandbox.fault({ kind: 'reset', command, times: 0 })
  const late = await driven(door.setHosts(list))
  service.sandbox.clearFaults()
  await driven(written(service, 'b'))
  await clock.advance(60_000) // Until the door knows it.
  const rows = await driven(door.rows())
  await driven(door.setHosts(rows.filter(({ HostName }) => HostName !== 'c')))
  await driven(door.getHosts())

  const again = await driven(door.setHosts(list))
  const kept = live(service)
  await driven(door.getHosts())
  const meant = await driven(door.setHosts(list))

  expect([late.http, again.numbers, meant.numbers]).toEqual([405, ['2016166'], []])
  expect(kept).toEqual(['b TXT b', 'www A 192.0.2.1'])
  expect(live(service)).toEqual(['b TXT b', 'c TXT c', 'www A 192.0.2.1'])
})

test('a list that comes again since its client had left removes nothing of others with its token', async () => {
  const clock = new FakeClock()
  await using service = await start({ domains, clock })
  const door = await openDoor(service)
  const driven = <Answer>(answer: Promise<Answer>) => driveClock(clock, service, answer)
  const list = [...(await driven(door.rows())), txt('b')]
  service.sandbox.fault({ kind: 'reset', command, times: 0 })
  const client = new AbortController()
  const parameters = list.flatMap((row, index) =>
    Object.entries(row).map(([name, value]): [string, string] => [`${name}${index + 1}`, value]),
  )
  const all = {
    ApiKey: door.key,
    Command: 'namecheap.domains.dns.setHosts',
    ...split('example.com'),
  }
  const body = new URLSearchParams([...Object.entries(all), ...parameters])
  const url = `${service.url}/integrations/registrar/xml.response`
  const calls = service.sandbox.calls.length
  const left = fetch(url, { method: 'POST', body, signal: client.signal }).catch(() => 'left')
  await expect.poll(() => service.sandbox.calls.length).toBeGreaterThan(calls)
  client.abort()
  await expect.poll(() => JSON.stringify(service.lines())).toContain('request aborted')
  service.sandbox.clearFaults()
  await driven(written(service, 'b'))
  await driven(door.setHosts([...(await driven(door.rows())), txt('a')]))
  await driven(door.getHosts())

  const again = await driven(door.setHosts(list))

  expect([await left, again.numbers]).toEqual(['left', []])
  expect(live(service)).toEqual(['a TXT a', 'b TXT b', 'www A 192.0.2.1'])
})
