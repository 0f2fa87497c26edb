import { delay } from '@domains-and-files/http'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { driveClock } from '../support/drive-clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { type Service, start, www } from '../support/start.ts'

// Asynchronous changes wait half a second for others. On a clock that stands still they stay queued until a write comes.
const dns = '/api/domains/example.com/dns'
const home = `${dns}/rrsets/home/A`
const prefer = { prefer: 'respond-async' }

const startStill = () => start({ domains: [{ name: 'example.com', hosts: [www] }], clock: new FakeClock() })

const setLater = async (service: Service, address: string, { path = home, key = {} } = {}) => {
  const { headers } = await service.call('PUT', path, {
    body: { ttl: 300, values: [address] },
    headers: { ...prefer, ...key },
  })
  return headers.get('location') ?? ''
}

const setNow = (service: Service, address: string, headers = {}) =>
  service.call('PUT', home, { body: { ttl: 300, values: [address] }, headers })

const changeAt = async (service: Service, location: string) => {
  const { body } = await service.call('GET', location)
  return [body.status, body.reason]
}

test('a queued change does not overwrite a newer one that was answered: it is superseded', async () => {
  await using service = await startStill()
  const older = await setLater(service, '192.0.2.11')

  const newer = await setNow(service, '192.0.2.12')

  expect(newer.status).toBe(201)
  await expect.poll(() => changeAt(service, older)).toEqual(['cancelled', 'superseded'])
  expect(service.live()).toContain('home A 192.0.2.12 300 10')
  expect(service.live()).toHaveLength(2)
})

test('a superseded change is not carried out when its request is repeated', async () => {
  await using service = await startStill()
  const key = { 'idempotency-key': 'key' }
  const older = await setLater(service, '192.0.2.11', { key })
  await setNow(service, '192.0.2.12')

  expect(await setLater(service, '192.0.2.11', { key })).toBe(older)
  expect(await changeAt(service, older)).toEqual(['cancelled', 'superseded'])
})

test('a queued change that a later one takes back is superseded, and nothing is written', async () => {
  await using service = await startStill()
  const older = await setLater(service, '192.0.2.11')

  const newer = await service.call('DELETE', home)

  expect(newer.status).toBe(204)
  await expect.poll(() => changeAt(service, older)).toEqual(['cancelled', 'superseded'])
  expect(service.commands()).not.toContain('dns.sethosts')
})

test('of several queued changes of one RRset the newest takes effect', async () => {
  await using service = await startStill()
  const older = [await setLater(service, '192.0.2.11'), await setLater(service, '192.0.2.12')]
  const newest = await setLater(service, '192.0.2.13')

  await service.call('DELETE', `${dns}/rrsets/other/A`)

  for (const each of older) await expect.poll(() => changeAt(service, each)).toEqual(['cancelled', 'superseded'])
  await expect.poll(() => changeAt(service, newest)).toEqual(['confirmed', undefined])
  expect(service.live()).toContain('home A 192.0.2.13 300 10')
})

test('a queued change of another RRset is carried out before a newer write', async () => {
  await using service = await startStill()
  const older = await setLater(service, '192.0.2.11', { path: `${dns}/rrsets/other/A` })

  const newer = await setNow(service, '192.0.2.12')

  expect(newer.status).toBe(201)
  await expect.poll(() => changeAt(service, older)).toEqual(['confirmed', undefined])
  expect(service.live()).toHaveLength(3)
})

test('a newer write that is refused supersedes nothing', async () => {
  await using service = await startStill()
  const older = await setLater(service, '192.0.2.11')

  const newer = await setNow(service, '192.0.2.12', { 'if-match': '"outdated"' })

  expect(newer.status).toBe(412)
  await expect.poll(() => changeAt(service, older)).toEqual(['confirmed', undefined])
  expect(service.live()).toContain('home A 192.0.2.11 300 10')
})

test('a newer write that the registrar refuses supersedes nothing: the queued change is carried out', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  const older = await setLater(service, '192.0.2.11')
  service.sandbox.fault({
    kind: 'refused_row',
    address: '192.0.2.12',
    command: 'namecheap.domains.dns.setHosts',
    times: 0,
  })

  const newer = await setNow(service, '192.0.2.12')
  expect(newer.status).toBe(422)
  await setNow(service, '192.0.2.13', { 'if-match': '"outdated"' })

  await expect.poll(() => changeAt(service, older)).toEqual(['confirmed', undefined])
  expect(service.live()).toContain('home A 192.0.2.11 300 10')
})

test('a queued change that is newer than a write under way is carried out after it', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock, env: { REGISTRAR_TIMEOUT_MS: '60000' } })
  service.sandbox.fault({ kind: 'slow', ms: 60_000, command: 'namecheap.domains.dns.getHosts' })
  const first = setNow(service, '192.0.2.11')
  await expect.poll(service.countWaiting).toBe(1)
  const second = await setLater(service, '192.0.2.12')
  service.sandbox.clearFaults()

  expect((await first).status).toBe(201)
  const done = expect.poll(() => changeAt(service, second)).toEqual(['confirmed', undefined])
  await driveClock(clock, service, Promise.resolve(done))
  expect(service.live()).toContain('home A 192.0.2.12 300 10')
})

/** What an admin asks of the routes of auth, whose answers have other fields than those of domains. */
async function askAsAdmin(service: Service, method: string, path: string, body?: object) {
  const response = await fetch(service.url + path, {
    method,
    headers: {
      authorization: `Bearer ${await service.sessionOf('admin')}`,
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  expect(response.ok).toBe(true)
  const Made = z.object({ id: z.string().optional(), token: z.string().optional() })
  return Made.parse(response.status === 204 ? {} : await response.json())
}

const editor = '/api/users/editor'

test.each<[string, (service: Service) => Promise<unknown>]>([
  ['was removed', (service) => askAsAdmin(service, 'DELETE', editor)],
  ['is a viewer now', (service) => askAsAdmin(service, 'PATCH', editor, { role: 'viewer' })],
  ['is limited to another domain now', (service) => askAsAdmin(service, 'PATCH', editor, { domains: ['example.org'] })],
])('a queued change of a user who %s is refused when it is its turn', async (_name, change) => {
  await using service = await startStill()
  const { headers } = await service.call('PUT', home, {
    body: { ttl: 300, values: ['192.0.2.11'] },
    headers: prefer,
    user: 'editor',
  })
  await change(service)

  await service.call('DELETE', `${dns}/rrsets/other/A`)

  const problemAt = async () => {
    const { body } = await service.call('GET', headers.get('location') ?? '')
    return body
  }
  await expect.poll(problemAt).toMatchObject({ status: 'refused', problem: { status: 403, code: 'forbidden' } })
  expect(service.live()).toHaveLength(1)
})

test('a write of a user who is removed while it waits for the registrar is refused', async () => {
  await using service = await start({ env: { REGISTRAR_TIMEOUT_MS: '100000' } })
  service.sandbox.fault({ kind: 'slow', ms: 600_000, command: 'namecheap.domains.dns.getHosts' })
  const written = service.call('PUT', home, { body: { ttl: 300, values: ['192.0.2.11'] }, user: 'editor' })
  await expect.poll(service.countWaiting).toBe(1)
  await askAsAdmin(service, 'DELETE', editor)
  service.sandbox.clearFaults()

  expect(await written).toMatchObject({ status: 403, body: { code: 'forbidden' } })
  expect(service.commands()).not.toContain('dns.sethosts')
})

test('a queued change of an API token that was revoked is refused', async () => {
  await using service = await startStill()
  const made = await askAsAdmin(service, 'POST', '/api/tokens', { name: 'ci', role: 'editor' })
  const answer = await fetch(service.url + home, {
    method: 'PUT',
    headers: {
      ...prefer,
      authorization: `Bearer ${made.token}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ ttl: 300, values: ['192.0.2.11'] }),
  })
  expect(answer.status).toBe(202)
  await askAsAdmin(service, 'DELETE', `/api/tokens/${made.id}`)

  await service.call('DELETE', `${dns}/rrsets/other/A`)

  const location = answer.headers.get('location') ?? ''
  await expect.poll(() => changeAt(service, location)).toEqual(['refused', undefined])
  expect(service.live()).toHaveLength(1)
})

test('a queued change does not overtake one that pauses after an attempt: the newest of an RRset takes effect', async () => {
  const clock = new FakeClock()
  await using service = await start({ domains: [{ name: 'example.com', hosts: [www] }], clock })
  service.sandbox.fault({ kind: 'reset', times: 0 })
  const older = await setLater(service, '192.0.2.11')
  await driveClock(clock, service, delay(clock, 60_000))
  service.sandbox.clearFaults()

  const newer = await setLater(service, '192.0.2.12')
  await driveClock(clock, service, delay(clock, 120_000))

  expect([await changeAt(service, older), await changeAt(service, newer)]).toEqual([
    ['cancelled', 'superseded'],
    ['confirmed', undefined],
  ])
  expect(service.live()).toContain('home A 192.0.2.12 300 10')
})

test('a queued change does not overtake one that could not be sent', async () => {
  const clock = new FakeClock()
  await using service = await start({ domains: [{ name: 'example.com', hosts: [www] }], clock })
  const command = 'namecheap.domains.dns.setHosts'
  // Refused together, then sent one by one: for the first of them there is no call.
  service.sandbox.fault(
    { kind: 'error', number: 2011170, command },
    { kind: 'status', status: 405, command, after: 1, times: 3 },
  )
  const older = await setLater(service, '192.0.2.11')
  const body = { name: 'home', address: '192.0.2.12' }
  const added = await service.call('POST', `${dns}/hosts/A`, { body, headers: prefer })
  const newer = added.headers.get('location') ?? ''

  await driveClock(clock, service, delay(clock, 60_000))

  expect([await changeAt(service, older), await changeAt(service, newer)]).toEqual([
    ['confirmed', undefined],
    ['confirmed', undefined],
  ])
  expect(service.live().filter((row) => row.startsWith('home'))).toHaveLength(2)
})
