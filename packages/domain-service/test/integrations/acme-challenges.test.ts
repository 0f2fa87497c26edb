import { expect, test } from 'vitest'
import { FakeClock } from '../support/fake-clock.ts'
import { basic, createToken, send } from '../support/protocol-client.ts'
import { type Service, start } from '../support/start.ts'

const day = 86_400_000

const present = (service: Service, token: string, value: string) =>
  send(service, 'POST', '/integrations/acme/present', {
    headers: basic(token),
    body: JSON.stringify({ fqdn: '_acme-challenge.example.com', value }),
  })

const values = (service: Service) =>
  service
    .live()
    .filter((line) => line.includes('TXT'))
    .map((line) => line.split(' ')[2])

test('a forgotten challenge is removed with the next one, at no extra call', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  const token = await createToken(service, { role: 'editor' })
  await present(service, token, 'forgotten')
  const callsOfOne = service.commands().length
  await clock.advance(day + 1)
  service.sandbox.clearCalls()

  const getHosts = 'namecheap.domains.dns.getHosts'
  service.sandbox.fault({ kind: 'slow', ms: 600_000, command: getHosts })
  const presented = present(service, token, 'new')
  await expect.poll(() => service.countWaiting()).toBe(2)
  service.sandbox.clearFaults()
  await presented

  expect(values(service)).toEqual(['new'])
  expect(service.commands().filter((each) => each.startsWith('dns.'))).toHaveLength(
    Math.min(3, callsOfOne),
  )
})

test('a forgotten challenge is removed without any request, and others stay', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  const token = await createToken(service, { role: 'editor' })
  await present(service, token, 'forgotten')
  await clock.advance(day / 2)
  await present(service, token, 'younger')

  await clock.advance(day / 2 + 2 * 3_600_000)

  await expect.poll(() => values(service)).toEqual(['younger'])
})

test('the age of challenges outlives the service', async () => {
  const clock = new FakeClock()
  await using first = await start({ clock })
  const token = await createToken(first, { role: 'editor' })
  await present(first, token, 'forgotten')
  await first.close()
  await clock.advance(day)

  const second = await start({ clock, dataDir: first.dataDir, sandbox: first.sandbox })
  await clock.advance(2 * 3_600_000)

  await expect.poll(() => values(second)).toEqual([])
  await second.close()
})

test('removed challenges are not looked for again', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  const token = await createToken(service, { role: 'editor' })
  await present(service, token, 'v')
  await send(service, 'POST', '/integrations/acme/cleanup', {
    headers: basic(token),
    body: JSON.stringify({ fqdn: '_acme-challenge.example.com', value: 'v' }),
  })
  service.sandbox.clearCalls()

  await clock.advance(2 * day)

  expect(service.commands().filter((each) => each === 'dns.gethosts')).toEqual([])
})
