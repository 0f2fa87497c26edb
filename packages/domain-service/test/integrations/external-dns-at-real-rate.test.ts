import { expect, test } from 'vitest'
import { driveClock } from '../support/drive-clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { basic, createToken, send } from '../support/protocol-client.ts'
import { realRate, start } from '../support/start.ts'

const names = Array.from({ length: 20 }, (_, n) => `domain${n}.example`)

test('a plan of 200 changes over 20 domains is done at the real rate, while external-dns repeats it', async () => {
  const clock = new FakeClock()
  await using service = await start({
    clock,
    env: { REGISTRAR_RATE: realRate },
    domains: names.map((name) => ({ name, hosts: [] })),
  })
  const headers = basic(await createToken(service, { role: 'editor' }))
  const body = JSON.stringify({
    create: names.flatMap((name) =>
      Array.from({ length: 10 }, (_, n) => ({
        dnsName: `host${n}.${name}`,
        recordType: 'A',
        targets: ['192.0.2.9'],
      })),
    ),
  })
  const began = clock.now()

  const statuses: number[] = []
  while (statuses.at(-1) !== 204 && statuses.length < 60) {
    const path = '/integrations/external-dns/records'
    const answer = await driveClock(clock, service, send(service, 'POST', path, { headers, body }))
    statuses.push(answer.status)
  }

  const writes = service.commands().filter((each) => each === 'dns.sethosts')
  expect(statuses.at(-1)).toBe(204)
  expect(new Set(statuses.slice(0, -1))).toEqual(new Set([503]))
  expect(names.map((name) => service.live(name).length)).toEqual(names.map(() => 10))
  expect(writes).toHaveLength(20)
  expect(clock.now() - began).toBeGreaterThan(3 * 60_000)
})
