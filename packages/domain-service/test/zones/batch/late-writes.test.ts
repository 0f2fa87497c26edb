import { expect, test } from 'vitest'
import { start } from '../../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const setHosts = 'namecheap.domains.dns.setHosts'
const www = { name: 'www', type: 'A', address: '192.0.2.1' }
const add = (name: string) => ({ body: { name, address: '192.0.2.7' } })

/** A service that gives a call up after 300 ms, and a registrar that carries the first write out only after `ms`. */
async function startLate(ms: number) {
  const service = await start({
    domains: [{ name: 'example.com', hosts: [www] }],
    env: { REGISTRAR_TIMEOUT_MS: '300', CACHE_TTL_MS: '0' },
  })
  service.sandbox.fault({ kind: 'slow', ms, command: setHosts })
  const names = () => service.sandbox.zone('example.com').hosts.map(({ name }) => name)
  // The first of two writes of `first` is still on its way then, and `second` is there.
  const writes = [
    await service.call('POST', `${hosts}/A`, add('first')),
    await service.call('POST', `${hosts}/A`, add('second')),
  ]
  const statuses = writes.map(({ status }) => status)
  return { service, names, statuses }
}

test('a write that was given up, and is carried out over a later one, is undone by itself', async () => {
  const { service, names, statuses } = await startLate(2_500)
  await using _closed = service

  expect(statuses).toEqual([201, 201])
  const told = expect.objectContaining({
    level: 'error',
    msg: 'late write overwrote newer changes, restoring',
  })
  await expect.poll(service.lines, { timeout: 10_000 }).toContainEqual(told)
  await expect.poll(names).toEqual(['first', 'second', 'www'])
  const { body } = await service.call('GET', '/api/domains/example.com/dns/history')
  expect(body.history).toMatchObject([
    { by: 'domain-service', reason: 'late_write', status: 'confirmed' },
    { by: 'admin' },
    { by: 'admin' },
  ])
})

test('a write that comes after it does not build on what a late write has undone', async () => {
  const { service, names, statuses } = await startLate(1_000)
  await using _closed = service
  await expect.poll(names, { timeout: 5_000 }).toEqual(['first', 'www'])

  const third = await service.call('POST', `${hosts}/A`, add('third'))

  expect([...statuses, third.status]).toEqual([201, 201, 201])
  expect(third.body).toMatchObject({ name: 'third' })
  expect(names()).toEqual(['first', 'second', 'third', 'www'])
})

test('what somebody else has changed meanwhile is left as it is', async () => {
  const { service, names } = await startLate(60_000)
  await using _closed = service
  const panel = [{ name: 'panel', type: 'A', address: '192.0.2.9' }]
  await service.sandbox.setZone('example.com', { hosts: panel })

  const third = await service.call('POST', `${hosts}/A`, add('third'))

  expect(third.status).toBe(201)
  expect(names()).toEqual(['panel', 'third'])
})

test('a write that was not confirmed may be done late, and stays', async () => {
  await using service = await start({
    domains: [{ name: 'example.com', hosts: [www] }],
    env: { REGISTRAR_TIMEOUT_MS: '300' },
  })
  service.sandbox.fault({ kind: 'slow', ms: 1_000, command: setHosts, times: 2 })
  const names = () => service.sandbox.zone('example.com').hosts.map(({ name }) => name)

  const { status } = await service.call('POST', `${hosts}/A`, add('first'))
  const lateWrites = () =>
    service.sandbox.calls.filter(
      ({ command, outcome }) => command === setHosts.toLowerCase() && outcome === 'ok',
    )
  await expect.poll(lateWrites, { timeout: 5_000 }).toHaveLength(2)
  const second = await service.call('POST', `${hosts}/A`, add('second'))

  expect([status, second.status]).toEqual([502, 201])
  expect(names()).toEqual(['first', 'second', 'www'])
})

test('a write that was given up, sent again and then refused is not there in the end', async () => {
  await using service = await start({
    domains: [{ name: 'example.com', hosts: [www] }],
    env: { REGISTRAR_TIMEOUT_MS: '300' },
  })
  service.sandbox.fault({ kind: 'slow', ms: 1_000, command: setHosts, times: 1 })
  service.sandbox.fault({ kind: 'error', number: 2011170, command: setHosts, after: 1, times: 1 })
  const names = () => service.sandbox.zone('example.com').hosts.map(({ name }) => name)

  const { status, body } = await service.call('POST', `${hosts}/A`, add('first'))
  const restored = expect.objectContaining({
    msg: 'late write overwrote newer changes, restoring',
  })
  await expect.poll(service.lines, { timeout: 10_000 }).toContainEqual(restored)

  expect([status, body.code]).toEqual([422, 'registrar_rejected'])
  await expect.poll(names, { timeout: 5_000 }).toEqual(['www'])
})
