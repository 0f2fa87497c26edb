import { expect, test } from 'vitest'
import { parseRecordPatterns } from '../../src/zones/zone-watch.ts'
import { driveClock } from '../support/drive-clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { type Service, start, www } from '../support/start.ts'

const path = '/api/domains/example.com/dns'
const panel = { name: 'panel', type: 'A', address: '192.0.2.50' }

async function begin(env: Record<string, string> = {}) {
  const clock = new FakeClock()
  const service = await start({ domains: [{ name: 'example.com', hosts: [www] }], clock, env })
  /** Reads the zone so often, each time so much later. */
  const read = async (times = 1, afterMs = 1_100) => {
    for (let n = 0; n < times; n++) {
      // Zones are compared in the background, by the clocks of the process and of the database.
      await expect.poll(() => clock.isQuiet()).toBe(true)
      await clock.advance(afterMs)
      await service.call('GET', `${path}/hosts`, { headers: { 'cache-control': 'no-cache' } })
    }
  }
  const history = async () => (await service.call('GET', `${path}/history`)).body.history ?? []
  const outside = async () => (await history()).filter(({ reason }) => reason === 'outside')
  return { clock, service, read, history, outside, [Symbol.asyncDispose]: service.close }
}

const setZone = ({ sandbox }: Service, hosts: object[], more = {}) =>
  sandbox.setZone('example.com', { hosts: hosts.map((host) => ({ ...www, ...host })), ...more })

test('a change made outside is an entry of the history once two reads a second apart show it', async () => {
  await using set = await begin()
  const { service, read, outside } = set
  await read()
  await setZone(service, [www, panel])

  await read()
  await read(1, 999)
  const early = await outside()
  await read(3)
  const [entry, ...more] = await outside()
  const whole = await service.call('GET', `${path}/history/${entry?.id}`)
  const events = await service.call('GET', '/api/events?types=zone.changed_outside')
  const { text: metrics } = await service.call('GET', '/metrics', {
    headers: { authorization: 'Bearer metrics-token-of-tests' },
  })

  expect([early, more]).toEqual([[], []])
  expect(entry).toMatchObject({
    by: null,
    reason: 'outside',
    status: 'confirmed',
    changes: { added: [panel], removed: [] },
  })
  expect(Date.parse(String(entry?.at)) - Date.parse(String(entry?.seen_since))).toBe(1_100)
  expect(whole.body).toMatchObject({ before: { hosts: [www] }, after: { hosts: [panel, www] } })
  expect(events.body.events).toMatchObject([{ type: 'zone.changed_outside', by: null, request_id: null }])
  expect(metrics).toMatch(/^zone_changes_outside_total 1$/m)
  expect(metrics).toMatch(/^zone_late_writes_total 0$/m)
  expect(service.live()).toContain('panel A 192.0.2.50 1800 10')
})

test('it is reverted like any other change, and the revert is no change made outside', async () => {
  await using set = await begin()
  const { clock, service, read, history, outside } = set
  await read()
  await setZone(service, [{ ...www, ttl: 300 }, panel], { emailType: 'MX' })
  await read(2)
  const [entry] = await outside()

  const reverting = service.call('POST', `${path}/history/${entry?.id}/revert`)
  const reverted = await driveClock(clock, service, reverting)
  await read(2)

  expect(reverted.status).toBe(200)
  expect(service.live()).toEqual(['www A 192.0.2.1 1800 10'])
  expect((await history()).map(({ by }) => by)).toEqual(['admin', null])
})

test('the reads of our own writes find it, too, also of those that are refused', async () => {
  await using set = await begin()
  const { clock, service, read, outside } = set
  await read()
  await setZone(service, [www, panel])
  for (const _ of [1, 2]) {
    await clock.advance(1_100)
    const body = { name: www.name, address: www.address }
    const { status } = await service.call('POST', `${path}/hosts/A`, { body })
    expect(status).toBe(409)
  }

  await expect.poll(outside).toMatchObject([{ changes: { added: [panel], removed: [] } }])
})

test('the read-back of a write is one of the two reads that show it', async () => {
  await using set = await begin()
  const { clock, service, read, outside } = set
  await read()
  await clock.advance(100)
  const command = 'namecheap.domains.dns.setHosts'
  service.sandbox.fault({ kind: 'other_tool', command, add: [panel] })
  await service.call('POST', `${path}/hosts/A`, { body: { name: 'a', address: '192.0.2.9' } })

  await read()

  expect(await outside()).toMatchObject([{ changes: { added: [panel], removed: [] } }])
})

test('our own writes in between do not hide it, and each entry has its own part', async () => {
  await using set = await begin()
  const { service, read, history } = set
  await read()
  await setZone(service, [www, panel])
  for (const name of ['a', 'b']) await service.call('POST', `${path}/hosts/A`, { body: { name, address: '192.0.2.9' } })

  await read(2)

  const entries = (await history()).map(({ by, changes }) => [
    by,
    ...[...(changes?.added ?? [])].map(({ name }) => name),
  ])
  expect(entries).toEqual([
    [null, 'panel'],
    ['admin', 'b'],
    ['admin', 'a'],
  ])
})

test('other spellings, another order and outdated answers are no change', async () => {
  await using set = await begin()
  const { service, read, outside } = set
  const hosts = [
    { name: 'x', type: 'CNAME', address: 'target.example.net' },
    { name: 'y', type: 'AAAA', address: '2001:db8::1' },
  ]
  await setZone(service, [www, ...hosts])
  await read()
  await setZone(service, [
    { name: 'Y', type: 'AAAA', address: '2001:0DB8:0::1' },
    { name: 'x', type: 'CNAME', address: 'Target.Example.net.' },
    www,
  ])
  await read(2)
  await service.call('POST', `${path}/hosts/A`, { body: { name: 'new', address: '192.0.2.9' } })
  service.sandbox.fault({ kind: 'outdated', times: 3, command: 'namecheap.domains.dns.getHosts' })
  await read(5)

  expect(await outside()).toEqual([])
})

test('records that other tools own make no entry', async () => {
  const ignored = 'home.example.com:A,*:_acme-challenge*:TXT'
  await using set = await begin({ DRIFT_IGNORE: ignored })
  const { service, read, outside } = set
  await read()
  const home = { name: 'home', type: 'A', address: '192.0.2.60' }
  await setZone(service, [www, home, { name: '_acme-challenge', type: 'TXT', address: 'x' }])
  await read(2)
  expect(await outside()).toEqual([])
  await setZone(service, [www, panel, { ...home, address: '192.0.2.61' }])
  await read(2)

  expect(await outside()).toMatchObject([{ changes: { added: [panel], removed: [] } }])
})

test.each(['x', 'a:b:c:d', 'home.example.com:', 'a b:A'])('the pattern %j is refused', (text) => {
  expect(parseRecordPatterns(text)).toBeUndefined()
})

test.each([
  ['home.example.com:A', 'home', 'A', true],
  ['home.example.com:A', 'homex', 'A', false],
  ['example.com:*', '@', 'MX', true],
  ['*:_acme-challenge*:TXT', '_acme-challenge.www', 'TXT', true],
  ['*.org:*:*', 'www', 'A', false],
])('%s names %s %s: %s', (pattern, name, type, isNamed) => {
  const [matches] = parseRecordPatterns(pattern) ?? []
  expect(matches?.('example.com', name, type)).toBe(isNamed)
})
