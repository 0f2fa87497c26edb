import { expect, test } from 'vitest'
import { makeDatabase } from '../support/databases.ts'
import { type DoorRow, openDoor } from '../support/door.ts'
import { driveClock } from '../support/drive-clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { type Service, start, www } from '../support/start.ts'

const domains = [{ name: 'example.com', hosts: [www] }]
const txt = (name: string): DoorRow => ({ HostName: name, RecordType: 'TXT', Address: name })

// In one process with SQLite. A replica cannot tell whether another one still makes the write.
test('what a stopped service did not write is not shown, and is written with the next list', async () => {
  const clock = new FakeClock()
  await using first = await start({ domains, clock })
  const [door, waiting] = [await openDoor(first), await openDoor(first)]
  const rows = await door.rows()
  const command = 'namecheap.domains.dns.getHosts'
  first.sandbox.fault({ kind: 'reset', command, times: 0 })
  const lost = await driveClock(clock, first, door.setHosts([...rows, txt('a')]))
  await first.close()
  first.sandbox.clearFaults()

  await using second = await start({ dataDir: first.dataDir, sandbox: first.sandbox, clock })
  second.sandbox.fault({ kind: 'slow', command: 'namecheap.domains.dns.setHosts', ms: 3_600_000 })
  const restarted = await openDoor(second, door.key)
  const other = await openDoor(second, waiting.key)
  await other.rows()
  const pending = other.setHosts([...rows, txt('other')])
  const sending = () => second.call('GET', '/api/changes?status=sending')
  await expect.poll(async () => (await sending()).body.change_list).not.toEqual([])
  const shown = await restarted.rows()
  second.sandbox.clearFaults()
  await pending
  const next = await restarted.setHosts([...rows, txt('a'), txt('b')])

  expect(lost.http).toBe(405)
  expect(shown.map(({ HostName }) => HostName)).not.toContain('a')
  expect([next.numbers, namesOf(second)]).toEqual([[], ['a', 'b', 'other', 'www']])
})

test('a record that a replica which died was to remove, and a later list kept, is shown while others write', async () => {
  await using database = await makeDatabase()
  const hosts = [www, { name: 'kept', type: 'TXT', address: 'kept' }]
  const zones = [{ name: 'example.com', hosts }]
  await using service = await start({ domains: zones, databaseUrl: database.url })
  const { sandbox } = service
  const [door, other] = [await openDoor(service), await openDoor(service)]
  const rows = await door.rows()
  // It died before the list without that record was a change.
  await database.postgres.query(`insert into domain_service.given_zones (token, domain, at, is_submitted, zone, base)
    select token, domain, at, 1, '{"records":[{"name":"www","type":"A","address":"192.0.2.1"}]}', zone
    from domain_service.given_zones`)
  const kept = await door.setHosts(await door.rows())
  await other.rows()
  sandbox.fault({ kind: 'slow', command: 'namecheap.domains.dns.setHosts', ms: 3_600_000 })
  const pending = other.setHosts([...rows, txt('other')])
  const sending = () => service.call('GET', '/api/changes?status=sending')
  await expect.poll(async () => (await sending()).body.change_list).toHaveLength(1)
  const shown = await door.rows()
  sandbox.clearFaults()
  await pending
  const next = await door.setHosts([...shown, txt('next')])

  expect([kept.status, next.status]).toEqual(['OK', 'OK'])
  expect(namesOf(service)).toEqual(['kept', 'next', 'other', 'www'])
})

const namesOf = (service: Service) =>
  service
    .live()
    .map((each) => each.split(' ')[0])
    .sort()
