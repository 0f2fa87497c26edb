import { expect, test } from 'vitest'
import { driveClock } from '../support/drive-clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { basic, createToken, send } from '../support/protocol-client.ts'
import { realRate, start } from '../support/start.ts'

test('an ACME client that tries again does not wait for the asynchronous changes of other domains', async () => {
  const clock = new FakeClock()
  const names = Array.from({ length: 40 }, (_, n) => `domain${n}.example`)
  await using service = await start({
    clock,
    env: { REGISTRAR_RATE: realRate },
    domains: names.map((name) => ({ name, hosts: [] })),
  })
  const credentials = basic(await createToken(service, { role: 'editor' }))
  const set = (domain: string, headers = {}) =>
    service.call('PUT', `/api/domains/${domain}/dns/rrsets/a/A`, { headers, body: { values: ['192.0.2.1'] } })
  const busy = Promise.all(names.slice(0, 6).map((name) => set(name)))
  await driveClock(clock, service, busy)
  for (const name of names.slice(6, -1)) await set(name, { ...credentials, prefer: 'respond-async' })

  const body = JSON.stringify({ fqdn: `_acme-challenge.${names.at(-1)}.`, value: 'v'.repeat(43) })
  const statuses: number[] = []
  while (statuses.at(-1) !== 200 && statuses.length < 5) {
    const path = '/integrations/acme/present'
    const present = send(service, 'POST', path, { headers: credentials, body })
    statuses.push((await driveClock(clock, service, present)).status)
    await driveClock(clock, service, new Promise<void>((resolve) => void clock.setTimer(resolve, 15_000)))
  }

  expect(statuses.at(-1)).toBe(200)
  const queued = await service.call('GET', '/api/changes?status=queued&page_size=200')
  expect(queued.body.change_list?.length).toBeGreaterThan(20)
})
