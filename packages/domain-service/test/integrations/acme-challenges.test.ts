import { expect, test } from 'vitest'
import { driveClock } from '../support/drive-clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { basic, createToken, send } from '../support/protocol-client.ts'
import { type Service, start } from '../support/start.ts'

const day = 86_400_000

const post = (service: Service, token: string, [path, value]: [string, string]) =>
  send(service, 'POST', `/integrations/acme/${path}`, {
    headers: basic(token),
    body: JSON.stringify({ fqdn: '_acme-challenge.example.com', value }),
  })

const present = (service: Service, token: string, value: string) => post(service, token, ['present', value])

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
  expect(service.commands().filter((each) => each.startsWith('dns.'))).toHaveLength(Math.min(3, callsOfOne))
})

test('a forgotten challenge is removed without any request, and younger and repeated ones stay', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  const token = await createToken(service, { role: 'editor' })
  for (const value of ['forgotten', 'repeated']) await present(service, token, value)
  await clock.advance(day / 2)
  for (const value of ['repeated', 'younger']) await present(service, token, value)

  await clock.advance(day / 2 + 2 * 3_600_000)

  await expect.poll(() => values(service)).toEqual(['repeated', 'younger'])
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
  await post(service, token, ['cleanup', 'v'])
  service.sandbox.clearCalls()

  await clock.advance(2 * day)

  expect(service.commands().filter((each) => each === 'dns.gethosts')).toEqual([])
})

const permanent = { name: '_acme-challenge', type: 'TXT', address: 'permanent' }

test('a record that was there before a client presented it is neither swept nor cleaned up', async () => {
  const clock = new FakeClock()
  await using service = await start({
    clock,
    domains: [{ name: 'example.com', hosts: [permanent] }],
  })
  const token = await createToken(service, { role: 'editor' })

  const presented = await present(service, token, 'permanent')
  const cleaned = await post(service, token, ['cleanup', 'permanent'])
  await present(service, token, 'permanent')
  await clock.advance(day + 1)
  await present(service, token, 'new')

  expect([presented.status, cleaned.status]).toEqual([200, 200])
  expect(values(service).sort()).toEqual(['new', 'permanent'])
})

test('a record that was there before stays, also where it is cleaned up while the zone is changing', async () => {
  const clock = new FakeClock()
  await using service = await start({
    clock,
    domains: [{ name: 'example.com', hosts: [permanent] }],
  })
  const token = await createToken(service, { role: 'editor' })
  await present(service, token, 'permanent')
  const command = 'namecheap.domains.dns.getHosts'
  service.sandbox.fault({ kind: 'slow', ms: 600_000, command })
  const changing = present(service, token, 'new')
  await expect.poll(() => service.countWaiting()).toBe(1)

  const cleaning = post(service, token, ['cleanup', 'permanent'])
  service.sandbox.clearFaults()
  const answers = await driveClock(clock, service, Promise.all([changing, cleaning]))

  expect(answers.map(({ status }) => status)).toEqual([200, 200])
  expect(values(service).sort()).toEqual(['new', 'permanent'])
})

test('a challenge whose client did not wait for it is swept, too', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  const token = await createToken(service, { role: 'editor' })
  const command = 'namecheap.domains.dns.getHosts'
  service.sandbox.fault({ kind: 'reset', command, times: 0 })
  const presenting = present(service, token, 'late')
  await driveClock(clock, service, presenting)
  service.sandbox.clearFaults()
  const added = expect.poll(() => values(service)).toEqual(['late'])
  await driveClock(clock, service, Promise.resolve(added))

  const repeated = await driveClock(clock, service, present(service, token, 'late'))
  await clock.advance(day + 2 * 3_600_000)
  const swept = expect.poll(() => values(service)).toEqual([])
  await driveClock(clock, service, Promise.resolve(swept))

  expect([(await presenting).status, repeated.status]).toEqual([503, 200])
})

test('a value that is cleaned up while it waits to be set does not appear later', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  const token = await createToken(service, { role: 'editor' })
  const command = 'namecheap.domains.dns.getHosts'
  service.sandbox.fault({ kind: 'reset', command, times: 0 })
  const presented = await driveClock(clock, service, present(service, token, 'waiting'))
  service.sandbox.clearFaults()

  const cleanUp = () => driveClock(clock, service, post(service, token, ['cleanup', 'waiting']))
  let cleaned = await cleanUp()
  while (cleaned.status === 503) cleaned = await cleanUp()
  const queued = async () => {
    const { body } = await service.call('GET', '/api/changes?status=queued')
    return body.change_list?.length
  }
  await driveClock(clock, service, Promise.resolve(expect.poll(queued).toBe(0)))

  expect([presented.status, cleaned.status]).toEqual([503, 200])
  expect(values(service)).toEqual([])
})
