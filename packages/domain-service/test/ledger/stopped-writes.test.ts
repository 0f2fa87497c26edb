import { expect, test } from 'vitest'
import { type DoorRow, openDoor } from '../support/door.ts'
import { driveClock } from '../support/drive-clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { start } from '../support/start.ts'

// In one process with SQLite. A replica cannot tell whether another one still makes the write.

const domains = [{ name: 'example.com', hosts: [{ name: 'www', type: 'A', address: '192.0.2.1' }] }]
const txt = (name: string): DoorRow => ({ HostName: name, RecordType: 'TXT', Address: name })

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
  await expect.poll(async () => (await sending()).body.change_list).toHaveLength(1)
  const shown = await restarted.rows()
  second.sandbox.clearFaults()
  await pending
  const next = await restarted.setHosts([...rows, txt('a'), txt('b')])

  expect(lost.http).toBe(405)
  expect(shown.map(({ HostName }) => HostName)).not.toContain('a')
  expect([
    next.numbers,
    second
      .live()
      .map((each) => each.split(' ')[0])
      .sort(),
  ]).toEqual([[], ['a', 'b', 'other', 'www']])
})
