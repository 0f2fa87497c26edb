import { writableTypes } from '@domains-and-files/auth'
import { expect, test } from 'vitest'
import { parseRow } from '../../src/dns/record.ts'
import { recordTypes } from '../../src/dns/record-types.ts'
import { etagOf, toRecords } from '../../src/dns/zone.ts'
import { row, www, zone } from '../support/zones.ts'

test('records are listed by name, type and address, with an MX preference on MX only', () => {
  const records = toRecords(
    zone([
      row('b', 'MX', 'mx2.example.net.', { mxPref: '0', ttl: '60' }),
      row('b', 'MX', 'mx1.example.net.', { mxPref: '5' }),
      www,
      row('', 'TXT', 'a.'),
      row('@', 'A', '192.0.2.2'),
    ]),
  )

  expect(records.map(({ id, ...rest }) => rest)).toEqual([
    { name: '@', type: 'A', address: '192.0.2.2', ttl: 1800 },
    { name: '@', type: 'TXT', address: 'a.', ttl: 1800 },
    { name: 'b', type: 'MX', address: 'mx1.example.net', ttl: 1800, mx_pref: 5 },
    { name: 'b', type: 'MX', address: 'mx2.example.net', ttl: 60, mx_pref: 0 },
    { name: 'www', type: 'A', address: '192.0.2.1', ttl: 1800 },
  ])
  expect(records.every(({ id }) => /^[0-9a-f]{12}$/.test(id))).toBe(true)
})

test('the id of a record does not depend on its TTL, the ETag of the zone does', () => {
  const other = { ...www, ttl: '60' }

  expect(parseRow(other).record.id).toBe(parseRow(www).record.id)
  expect(etagOf(zone([other]))).not.toBe(etagOf(zone([www])))
  expect(etagOf(zone([www], 'MX'))).not.toBe(etagOf(zone([www])))
  expect(etagOf(zone([www, row('a', 'A', '192.0.2.9')]))).toBe(etagOf(zone([row('a', 'A', '192.0.2.9'), www])))
})

test('API tokens can be limited to exactly the types that can be written', () => {
  expect([...writableTypes].sort()).toEqual([...recordTypes].sort())
})
