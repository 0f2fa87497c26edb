import fc from 'fast-check'
import { expect, test } from 'vitest'
import { applyEdit } from '../../../src/dns/edits/apply-edit.ts'
import type { RecordInput } from '../../../src/dns/record.ts'
import { subtract, toRecords, type Zone } from '../../../src/dns/zone.ts'
import { anyEmailType, failureOf, oddRows, row, www, zone } from '../../support/zones.ts'

const replace = (records: RecordInput[], live: Zone, emailType?: string) =>
  applyEdit(live, { kind: 'replace', records, emailType })

test('an untouched row goes back as it came, whatever a caller makes of its spelling', () => {
  const rows = [
    row('Mail', 'CNAME', 'Host.Example.net', { ttl: '1799' }),
    row('v6', 'AAAA', '2001:0db8:0:0::1'),
    row('example.com', 'MXE', '192.0.2.7'),
    row('@', 'CAA', '0 issue ca.example.net'),
  ]

  const planned = replace(
    [
      { name: 'mail', type: 'cname', address: 'host.example.net.', ttl: 1799 },
      { name: 'v6', type: 'AAAA', address: '2001:db8::1' },
      { name: '@', type: 'MXE', address: '192.0.2.7' },
      { name: '@', type: 'CAA', address: '0 issue "ca.example.net"' },
    ],
    zone(rows, 'MXE'),
  )

  expect(planned.rows).toEqual(rows)
})

test('an MXE record of the zone may be named by the domain, as at the registrar', () => {
  const live = zone([row('example.com', 'MXE', '192.0.2.7', { ttl: '300' })], 'MXE')
  const mxe = { name: 'Example.com', type: 'MXE', address: '192.0.2.7' }

  expect(replace([mxe], live)).toBe(live)
  expect(applyEdit(live, { kind: 'ensure', present: [mxe], absent: [] })).toBe(live)
  expect(applyEdit(live, { kind: 'ensure', present: [], absent: [mxe] }).rows).toEqual([])
  expect(failureOf(() => replace([{ ...mxe, address: '192.0.2.8' }], live)).errors).toContainEqual({
    path: '/hosts/0/name',
    message: 'is the domain itself: write @',
  })
})

test('a list of more than 150 records is taken back as GET returned it, and refused with a new one', () => {
  const live = zone(Array.from({ length: 152 }, (_, n) => row(`h${n}`, 'A', '192.0.2.1')))
  const [, ...others] = toRecords(live)
  const added = { name: 'new', type: 'A', address: '192.0.2.1' }

  expect(toRecords(replace(toRecords(live), live))).toEqual(toRecords(live))
  expect(failureOf(() => replace([...others, added], live)).errors).toEqual([
    { path: '/hosts', message: 'must have at most 150 records' },
  ])
})

test('a changed TTL makes a new row', () => {
  const planned = replace([{ name: 'www', type: 'A', address: '192.0.2.1', ttl: 300 }], zone([www]))

  expect(planned.rows).toEqual([{ ...www, ttl: '300' }])
})

test('what GET returned is taken back and changes nothing, also where today’s rules would refuse it', () => {
  fc.assert(
    fc.property(oddRows, anyEmailType, fc.boolean(), (rows, emailType, shuffled) => {
      const live = zone(rows, emailType)
      const records = toRecords(live)

      const planned = replace(shuffled ? records.toReversed() : records, live)

      expect(planned.emailType).toBe(emailType)
      expect(planned.rows.length).toBe(rows.length)
      expect(subtract(planned.rows, rows)).toEqual([])
      // The very rows, not likenesses of them.
      expect(planned.rows.every((each) => rows.includes(each))).toBe(true)
    }),
    { numRuns: 2000 },
  )
})

test.each([
  ['twice the same', [www, www], ['/hosts/0/name', '/hosts/1/name']],
  [
    'twice the same but for spelling and TTL',
    [row('a', 'CNAME', 'b.example.net'), row('A', 'CNAME', 'B.example.net.', { ttl: '60' })],
    ['/hosts/0/name', '/hosts/1/name'],
  ],
  ['CNAME beside TXT', [row('a', 'CNAME', 'b.example.net'), row('a', 'TXT', 'x')], ['/hosts/0/name', '/hosts/1/name']],
  [
    'two CNAMEs at a name',
    [row('a', 'CNAME', 'b.example.net'), row('a', 'CNAME', 'c.example.net')],
    ['/hosts/0/name', '/hosts/1/name'],
  ],
  [
    'ALIAS beside A',
    [row('@', 'ALIAS', 'b.example.net'), row('@', 'A', '192.0.2.1'), row('@', 'TXT', 'x')],
    ['/hosts/0/name', '/hosts/1/name'],
  ],
  [
    'ALIAS beside AAAA',
    [row('@', 'ALIAS', 'b.example.net'), row('@', 'AAAA', '::1')],
    ['/hosts/0/name', '/hosts/1/name'],
  ],
  [
    'two redirects at a name',
    [row('a', 'URL', 'http://b.example'), row('a', 'FRAME', 'http://c.example')],
    ['/hosts/0/name', '/hosts/1/name'],
  ],
  ['two MXE', [row('@', 'MXE', '192.0.2.1'), row('@', 'MXE', '192.0.2.2')], ['/hosts/0/type', '/hosts/1/type']],
  [
    'MX beside MXE',
    [row('@', 'MX', 'mx.example.net'), row('@', 'MXE', '192.0.2.2')],
    ['/hosts/0/type', '/hosts/1/type'],
  ],
  ['151 records', Array.from({ length: 151 }, (_, n) => row(`h${n}`, 'A', '192.0.2.1')), ['/hosts']],
])('a list with %s is refused', (_name, rows, paths) => {
  const drafts = rows.map(({ name, type, address, ttl }) => ({
    name,
    type,
    address,
    ttl: Number(ttl),
  }))

  const failure = failureOf(() => replace(drafts, zone([])))

  expect(failure.code).toBe('validation_failed')
  expect(failure.errors?.map(({ path }) => path)).toEqual(paths)
})

test('of two conflicting records only the new one gets the fault', () => {
  const live = zone([row('a', 'CNAME', 'b.example.net.')])

  const failure = failureOf(() =>
    replace(
      [
        { name: 'a', type: 'CNAME', address: 'b.example.net' },
        { name: 'a', type: 'TXT', address: 'x' },
      ],
      live,
    ),
  )

  expect(failure.errors).toEqual([
    { path: '/hosts/1/name', message: 'a CNAME must be alone at its name: see /hosts/0' },
  ])
})

test('150 records are taken', () => {
  const drafts = Array.from({ length: 150 }, (_, n) => ({
    name: `h${n}`,
    type: 'A',
    address: '192.0.2.1',
  }))

  expect(replace(drafts, zone([])).rows).toHaveLength(150)
})

test('a record without ttl and mx_pref keeps those of the live record', () => {
  const mx = row('@', 'MX', 'mx.example.net.', { ttl: '300', mxPref: '50' })

  const after = replace(
    [
      { name: '@', type: 'MX', address: 'MX.example.net' },
      { name: '@', type: 'MX', address: 'mx2.example.net' },
    ],
    zone([mx], 'MX'),
  )

  expect(after.rows).toEqual([mx, row('@', 'MX', 'mx2.example.net.')])
})

test('a new TTL keeps the MX preference, and a new preference the TTL', () => {
  const mx = row('@', 'MX', 'mx.example.net.', { ttl: '300', mxPref: '50' })
  const record = { name: '@', type: 'MX', address: 'mx.example.net' }

  expect(replace([{ ...record, ttl: 60 }], zone([mx], 'MX')).rows).toEqual([{ ...mx, ttl: '60' }])
  expect(replace([{ ...record, mx_pref: 0 }], zone([mx], 'MX')).rows).toEqual([{ ...mx, mxPref: '0' }])
})

test('what GET returned without ttl and mx_pref is accepted and changes nothing', () => {
  fc.assert(
    fc.property(oddRows, anyEmailType, (rows, emailType) => {
      const live = zone(rows, emailType)
      const records = toRecords(live).map(({ name, type, address }) => ({ name, type, address }))

      const after = replace(records, live)

      expect(after.emailType).toBe(emailType)
      expect(after.rows.length).toBe(rows.length)
      expect(subtract(after.rows, rows)).toEqual([])
    }),
    { numRuns: 1000 },
  )
})

test('an mx_pref beside a type other than MX is ignored', () => {
  const records = [{ name: 'www', type: 'A', address: '192.0.2.1', mx_pref: 70_000 }]

  expect(replace(records, zone([www])).rows).toEqual([www])
})

test('faults of a zone file name the line of the record', () => {
  const failure = failureOf(() =>
    applyEdit(zone([]), {
      kind: 'replace',
      records: [
        { name: 'a', type: 'A', address: '192.0.2.1' },
        { name: 'b', type: 'A', address: 'x' },
      ],
      lines: [3, 17],
    }),
  )

  expect(failure.errors).toEqual([{ path: '/line/17', message: expect.stringContaining('IPv4') }])
})
