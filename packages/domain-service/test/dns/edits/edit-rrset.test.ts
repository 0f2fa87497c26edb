import { expect, test } from 'vitest'
import { applyEdit } from '../../../src/dns/edits/apply-edit.ts'
import type { SetRrsetEdit } from '../../../src/dns/edits/zone-edit.ts'
import { findRrset, toRrsets, type Zone } from '../../../src/dns/zone.ts'
import { failureOf, row, www, zone } from '../../support/zones.ts'

const set = (edit: Omit<SetRrsetEdit, 'kind'>, live: Zone) => applyEdit(live, { kind: 'setRrset', ...edit })

const mails = [
  row('@', 'MX', 'mx2.example.net.', { mxPref: '20', ttl: '600' }),
  row('@', 'MX', 'mx1.example.net.', { mxPref: '10', ttl: '300' }),
]

test('records of one name and type are one RRset, with the lowest TTL', () => {
  const live = zone([www, ...mails, row('WWW', 'A', '192.0.2.2')], 'MX')

  expect(toRrsets(live)).toEqual([
    {
      name: '@',
      type: 'MX',
      ttl: 300,
      values: ['10 mx1.example.net', '20 mx2.example.net'],
      mixed_ttl: true,
    },
    { name: 'www', type: 'A', ttl: 1800, values: ['192.0.2.1', '192.0.2.2'] },
  ])
  expect(findRrset(live, 'WWW', 'a')?.values).toEqual(['192.0.2.1', '192.0.2.2'])
  expect(findRrset(live, 'www', 'AAAA')).toBeUndefined()
})

test('an RRset is set: values that are there keep their rows, others go', () => {
  const other = row('www', 'TXT', 'x')
  const live = zone([www, row('www', 'A', '192.0.2.2'), other])

  const after = set({ name: 'WWW', type: 'a', values: ['192.0.2.1', '192.0.2.3'] }, live)

  expect(after.rows).toEqual([other, www, row('www', 'A', '192.0.2.3')])
  expect(after.rows[1]).toBe(www)
})

test('an RRset of the domain’s MXE record is at @ only', () => {
  const mxe = { type: 'MXE', values: ['192.0.2.7'] }
  const live = zone([row('example.com', 'MXE', '192.0.2.7')], 'MXE')

  expect(set({ name: '@', ...mxe }, live)).toBe(live)
  expect(failureOf(() => set({ name: 'example.com', ...mxe }, live)).errors).toContainEqual({
    path: '/path/name',
    message: 'is the domain itself: write @',
  })
})

test('the same RRset again changes nothing', () => {
  const live = zone(mails, 'MX')

  const after = set({ name: '@', type: 'MX', values: ['10 MX1.example.net.', '20 mx2.example.net'] }, live)

  expect(after).toBe(live)
})

test('the TTL of an RRset is that of all its records', () => {
  const after = set(
    { name: '@', type: 'MX', ttl: 60, values: ['10 mx1.example.net', '5 mx3.example.net'] },
    zone(mails, 'MX'),
  )

  expect(after.rows.map(({ ttl, mxPref }) => `${mxPref} ${ttl}`)).toEqual(['10 60', '5 60'])
})

test.each([
  ['takes the lowest TTL of values that stay', ['.1', '.2', '.9'], ['60', '300', '60']],
  ['is 1800 where none stays', ['.9'], ['1800']],
])('without ttl, a new value %s', (_name, hosts, ttls) => {
  const values = hosts.map((host) => `192.0.2${host}`)
  const live = zone([row('www', 'A', '192.0.2.1', { ttl: '60' }), row('www', 'A', '192.0.2.2', { ttl: '300' })])

  expect(set({ name: 'www', type: 'A', values }, live).rows.map(({ ttl }) => ttl)).toEqual(ttls)
})

test('an MX RRset in a zone of email type NONE makes it MX', () => {
  expect(set({ name: '@', type: 'MX', values: ['0 mx.example.net'] }, zone([]))).toMatchObject({
    emailType: 'MX',
    rows: [{ mxPref: '0', address: 'mx.example.net.' }],
  })
})

test.each([
  [{ name: 'a b', type: 'A', values: ['192.0.2.1', '192.0.2.2'] }, ['/path/name']],
  [{ name: '@', type: 'CNAME', values: ['a.example.net'] }, ['/path/name']],
  [{ name: 'a', type: 'SRV', values: ['x'] }, ['/path/type']],
  [{ name: 'a', type: 'A', ttl: 5, values: ['192.0.2.1', '192.0.2.2'] }, ['/ttl']],
  [{ name: 'a', type: 'A', values: ['192.0.2.1', 'x', '::1'] }, ['/values/1', '/values/2']],
  [{ name: 'a', type: 'A', values: ['192.0.2.1', '192.0.2.1'] }, ['/values/0', '/values/1']],
  [{ name: 'a', type: 'CNAME', values: ['a.example', 'b.example'] }, ['/values/0', '/values/1']],
  [{ name: 'a', type: 'MX', values: ['mx.example.net', '10 mx.example.org'] }, ['/values/0']],
  [
    { name: 'a', type: 'MX', ttl: 5, values: ['70000 mx.example.net', 'mx.example.org'] },
    ['/ttl', '/values/0', '/values/1'],
  ],
])('the RRset %j is refused at %j', (edit, paths) => {
  const failure = failureOf(() => set(edit, zone([])))

  expect(failure.code).toBe('validation_failed')
  expect(failure.errors?.map(({ path }) => path)).toEqual(paths)
})

test('an RRset that cannot be beside a live record is record_conflict', () => {
  expect(failureOf(() => set({ name: 'www', type: 'CNAME', values: ['a.example.net'] }, zone([www])))).toMatchObject({
    status: 409,
    code: 'record_conflict',
  })
})

test('an RRset is removed whole, and removing it again changes nothing', () => {
  const live = zone([...mails, www], 'MX')

  const after = applyEdit(live, { kind: 'removeRrset', name: '@', type: 'mx' })

  expect(after).toMatchObject({ rows: [www], emailType: 'NONE' })
  expect(applyEdit(after, { kind: 'removeRrset', name: '@', type: 'MX' }).rows).toEqual([www])
})

test('an RRset of a name that no record can have is removed where the panel made it', () => {
  const odd = row('-odd', 'A', '192.0.2.9')

  expect(applyEdit(zone([odd, www]), { kind: 'removeRrset', name: '-ODD', type: 'A' }).rows).toEqual([www])
})
