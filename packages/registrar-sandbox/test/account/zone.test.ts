import { expect, test } from 'vitest'
import type { DomainSketch } from '../../src/index.ts'
import { start } from '../support/start.ts'

const name = 'zone-under-test.com'
const own = (domain: Partial<DomainSketch> = {}) => start({ domains: [{ name, ...domain }] })

test('setHosts replaces the zone: what is not sent is gone', async () => {
  await using registrar = await own({ hosts: [{ name: 'old', type: 'A', address: '192.0.2.1' }] })

  await registrar.setHosts(name, [{ HostName: 'new', RecordType: 'A', Address: '192.0.2.2' }])

  expect(await registrar.getHosts(name)).toEqual([['new', 'A', '192.0.2.2', '10', '1800']])
})

test('no records make an empty zone', async () => {
  await using registrar = await own({ hosts: [{ name: 'old', type: 'A', address: '192.0.2.1' }] })

  const answer = await registrar.setHosts(name, [])

  expect(answer.status).toBe('OK')
  expect(await registrar.getHosts(name)).toEqual([])
})

test('150 records are accepted and 151 are too many', async () => {
  await using registrar = await own()
  const rows = Array.from({ length: 151 }, (_, index) => ({
    HostName: `h${index}`,
    RecordType: 'TXT',
    Address: 'x'.repeat(2500),
  }))

  const most = await registrar.setHosts(name, rows.slice(0, 150))
  const more = await registrar.setHosts(name, rows)

  expect([most.status, more.errors[0]?.[0]]).toEqual(['OK', '3013288'])
  expect(await registrar.getHosts(name)).toHaveLength(150)
})

test('records equal in name, type and address are kept once, the first of them', async () => {
  await using registrar = await own()
  const row = { HostName: '@', RecordType: 'MX', Address: 'm.b.com' }

  await registrar.setHosts(
    name,
    [
      { ...row, MXPref: '10' },
      { ...row, HostName: '', Address: 'm.b.com.', MXPref: '20' },
      { HostName: 'T', RecordType: 'TXT', Address: 'Case' },
      { HostName: 't', RecordType: 'TXT', Address: 'Case' },
      { HostName: 't', RecordType: 'TXT', Address: 'case' },
    ],
    { EmailType: 'MX' },
  )

  expect(await registrar.getHosts(name)).toEqual([
    ['@', 'MX', 'm.b.com.', '10', '1800'],
    ['t', 'TXT', 'Case', '10', '1800'],
    ['t', 'TXT', 'case', '10', '1800'],
  ])
})

test('rows keep their id while they stay the same and get a new one when they change', async () => {
  await using registrar = await own()
  const rows = [
    { HostName: 'a', RecordType: 'A', Address: '192.0.2.1' },
    { HostName: 'b', RecordType: 'A', Address: '192.0.2.2' },
    { HostName: 'c', RecordType: 'CNAME', Address: 'b.com.' },
  ]
  await registrar.setHosts(name, rows)
  const before = registrar.sandbox.zone(name).hosts.map(({ hostId }) => hostId)

  await registrar.setHosts(name, [
    { HostName: 'c', RecordType: 'CNAME', Address: 'b.com', TTL: '1800' },
    { HostName: 'b', RecordType: 'A', Address: '192.0.2.2', TTL: '300' },
    { HostName: 'a', RecordType: 'A', Address: '192.0.2.1', TTL: '1800', MXPref: '10' },
  ])

  const after = registrar.sandbox.zone(name).hosts.map(({ hostId }) => hostId)
  expect([after[0], after[2]]).toEqual([before[0], before[2]])
  expect(before).not.toContain(after[1])
})

test('getHosts orders by type, then name, then id, whatever order was sent', async () => {
  await using registrar = await own()

  await registrar.setHosts(name, [
    { HostName: 'www', RecordType: 'TXT', Address: 'z' },
    { HostName: 'www', RecordType: 'TXT', Address: 'a' },
    { HostName: '_x', RecordType: 'TXT', Address: 'x' },
    { HostName: '@', RecordType: 'TXT', Address: 'x' },
    { HostName: 'www', RecordType: 'A', Address: '192.0.2.1' },
  ])

  const rows = await registrar.getHosts(name)
  expect(rows.map((row) => row.slice(0, 3).join(' '))).toEqual([
    'www A 192.0.2.1',
    '@ TXT x',
    '_x TXT x',
    'www TXT z',
    'www TXT a',
  ])
})

test('rows made in the panel against the rules can be sent back unchanged', async () => {
  const hosts = [
    { name: '@', type: 'CNAME', address: 'no-dot.com', ttl: 30 },
    { name: 'odd name', type: 'A', address: 'not an address' },
  ]
  await using registrar = await own({ hosts })

  const answer = await registrar.setHosts(name, [
    { HostName: '@', RecordType: 'CNAME', Address: 'no-dot.com', TTL: '30', MXPref: '10' },
    { HostName: 'odd name', RecordType: 'A', Address: 'not an address', TTL: '1800' },
    { HostName: 'new', RecordType: 'A', Address: '192.0.2.1' },
  ])

  expect(answer.status).toBe('OK')
  expect(registrar.sandbox.zone(name).hosts).toMatchObject([
    { name: 'new' },
    { name: 'odd name', address: 'not an address' },
    { name: '@', address: 'no-dot.com', ttl: 30 },
  ])
})

test('the dynamic DNS flag and SRV rows do not survive a setHosts', async () => {
  await using registrar = await start()
  const domain = 'home-observatory.net'
  const before = registrar.sandbox.zone(domain).hosts

  await registrar.setHosts(domain, [{ HostName: 'dome', RecordType: 'A', Address: '192.0.2.200', TTL: '60' }])

  const after = registrar.sandbox.zone(domain).hosts
  expect(before.map(({ type, isDdns }) => [type, isDdns])).toContainEqual(['A', true])
  expect(before.map(({ type }) => type)).toContain('SRV')
  expect(after.map(({ name, isDdns }) => [name, isDdns])).toEqual([['dome', false]])
})

test('a new MX preference is accepted, or ignored with keepsMxPref', async () => {
  const hosts = [{ name: '@', type: 'MX', address: 'm.b.com.', mxPref: 10 }]
  const domains: DomainSketch[] = [{ name, emailType: 'MX', hosts }]
  await using usual = await start({ domains })
  await using stubborn = await start({ domains, keepsMxPref: true })
  const rows = [{ HostName: '@', RecordType: 'MX', Address: 'm.b.com.', MXPref: '20' }]

  await usual.setHosts(name, rows, { EmailType: 'MX' })
  await stubborn.setHosts(name, rows, { EmailType: 'MX' })

  expect((await usual.getHosts(name))[0]?.[3]).toBe('20')
  expect((await stubborn.getHosts(name))[0]?.[3]).toBe('10')
})

test('a FreeDNS zone can start below a registered domain', async () => {
  await using registrar = await start({ domains: [{ name: '1605.carved.com', dns: 'free' }] })
  const zone = { SLD: '1605.carved', TLD: 'com' }

  await registrar.call('domains.dns.setHosts', {
    ...zone,
    HostName1: '@',
    RecordType1: 'A',
    Address1: '192.0.2.1',
  })

  const answer = await registrar.call('domains.dns.getHosts', zone)
  expect(answer.first('host')).toMatchObject({ '@Address': '192.0.2.1' })
})

test('the rows of the parking page have the titles of the panel, and keep them in a setHosts', async () => {
  await using registrar = await start()
  const domain = { SLD: 'quietharbour', TLD: 'org' }
  const titles = async () =>
    (await registrar.call('domains.dns.getHosts', domain))
      .list('host')
      .map((row) => [row['@Type'], row['@AssociatedAppTitle'], row['@FriendlyName']])
  const before = await titles()

  await registrar.setHosts('quietharbour.org', [
    { HostName: 'a', RecordType: 'A', Address: '192.0.2.1' },
    { HostName: 'www', RecordType: 'CNAME', Address: 'parkingpage.namecheap.com.' },
    { HostName: '@', RecordType: 'URL', Address: 'http://www.quietharbour.org/?from=@' },
  ])

  const parking = [
    ['CNAME', '', 'CNAME Record'],
    ['URL', 'URL Forwarding', 'URL Record'],
  ]
  expect(before).toEqual(parking)
  expect(await titles()).toEqual([['A', '', ''], ...parking])
})
