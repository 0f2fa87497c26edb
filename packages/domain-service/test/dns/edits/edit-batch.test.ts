import fc from 'fast-check'
import { expect, test } from 'vitest'
import { applyEdit } from '../../../src/dns/edits/apply-edit.ts'
import type { BatchEdit } from '../../../src/dns/edits/zone-edit.ts'
import { parseRow, type RecordPatch, type Row } from '../../../src/dns/record.ts'
import { subtract, toRecords, type Zone } from '../../../src/dns/zone.ts'
import { failureOf, oddRows, row, www, zone } from '../../support/zones.ts'

const idOf = (of: Row) => parseRow(of).record.id

const update = (of: Row, patch: RecordPatch, live: Zone) =>
  applyEdit(live, { kind: 'batch', update: [{ id: idOf(of), patch }], isSingle: true })

const batch = (edit: Omit<BatchEdit, 'kind'>, live: Zone) => applyEdit(live, { kind: 'batch', ...edit })

const mx = row('@', 'MX', 'mx.example.net.', { ttl: '300', mxPref: '20' })
const alias = row('a', 'CNAME', 'Host.Example.net', { ttl: '300' })

test.each([
  ['an address', www, { address: '192.0.2.9' }, { ...www, address: '192.0.2.9' }],
  ['a name', www, { name: 'WEB' }, { ...www, name: 'web' }],
  ['a TTL', alias, { ttl: 60 }, { ...alias, ttl: '60' }],
  ['a TTL to its default', alias, { ttl: null }, { ...alias, ttl: '1800' }],
  ['an MX preference', mx, { mx_pref: 0 }, { ...mx, mxPref: '0' }],
  ['an MX preference to its default', mx, { mx_pref: null }, { ...mx, mxPref: '10' }],
  ['the target of an MX', mx, { address: 'b.example.net' }, { ...mx, address: 'b.example.net.' }],
])('an update changes %s, and leaves the other bytes', (_name, live, patch, expected) => {
  const before = zone([live, row('z', 'TXT', 'z')], 'MX')

  const after = update(live, patch, before)

  expect(after.rows).toEqual([expected, before.rows[1]])
})

test.each([[{}], [{ address: '192.0.2.1', ttl: 1800, name: 'www', type: 'a' }], [{ mx_pref: 5 }]])(
  'the update %j of an A record that changes nothing keeps its row',
  (patch) => {
    const live = zone([www])

    expect(update(www, patch, live).rows).toEqual([www])
    expect(update(www, patch, live).rows[0]).toBe(www)
  },
)

test('an update blames only what it changes', () => {
  const odd = row('www', 'A', '999', { ttl: '5' })

  expect(update(odd, { ttl: 300 }, zone([odd])).rows).toEqual([{ ...odd, ttl: '300' }])
  expect(failureOf(() => update(odd, { ttl: 30 }, zone([odd]))).errors).toEqual([
    { path: '/ttl', message: expect.stringContaining('60') },
  ])
})

test.each([
  [www, { type: 'AAAA' }, '/type'],
  [www, { address: '::1' }, '/address'],
  [www, { name: 'a b' }, '/name'],
  [alias, { name: '@' }, '/name'],
  [row('_sip._tcp', 'SRV', '0 0 5060 a.'), { ttl: 300 }, '/type'],
])('the update of %o with %j is refused at its pointer', (live, patch, path) => {
  const failure = failureOf(() => update(live, patch, zone([live])))

  expect(failure).toMatchObject({ code: 'validation_failed', errors: [{ path }] })
})

test('an update of an id that is not there is record_not_found', () => {
  expect(
    failureOf(() =>
      applyEdit(zone([www]), {
        kind: 'batch',
        update: [{ id: '0'.repeat(12), patch: {} }],
        isSingle: true,
      }),
    ),
  ).toMatchObject({ status: 404, code: 'record_not_found' })
})

test('an update to a record that is there is record_exists', () => {
  const other = row('www', 'A', '192.0.2.2')

  expect(failureOf(() => update(www, { address: '192.0.2.2' }, zone([www, other])))).toMatchObject({
    status: 409,
    code: 'record_exists',
  })
})

test('a batch removes, updates and adds in one edit', () => {
  const old = row('old', 'A', '192.0.2.7')
  const live = zone([old, www, mx], 'MX')

  const after = batch(
    {
      remove: [idOf(old)],
      update: [{ id: idOf(mx), patch: { mx_pref: 5 } }],
      add: [{ name: 'new', type: 'A', address: '192.0.2.8', ttl: 60 }],
    },
    live,
  )

  expect(after.rows).toEqual([www, { ...mx, mxPref: '5' }, row('new', 'A', '192.0.2.8', { ttl: '60' })])
})

test('a batch may add a record in place of a removed one, with the TTL of that if none is given', () => {
  const live = zone([row('www', 'A', '192.0.2.1', { ttl: '60' })])

  const after = batch(
    {
      remove: [idOf(www)],
      add: [
        { name: 'www', type: 'CNAME', address: 'a.example.net' },
        { name: 'x', type: 'A', address: '192.0.2.1' },
      ],
    },
    live,
  )

  expect(after.rows.map(({ name, type, ttl }) => `${name} ${type} ${ttl}`)).toEqual(['www CNAME 1800', 'x A 1800'])
})

test('a batch names every fault by its pointer', () => {
  const failure = failureOf(() =>
    batch(
      {
        update: [
          { id: idOf(mx), patch: { mx_pref: 5 } },
          { id: idOf(www), patch: { ttl: 5, address: 'x' } },
        ],
        add: [
          { name: 'a b', type: 'A', address: '192.0.2.1' },
          { name: 'c', type: 'TXT', address: 'x' },
          { name: 'c', type: 'CNAME', address: 'c.example.net' },
        ],
      },
      zone([www, mx], 'MX'),
    ),
  )

  expect(failure.errors?.map(({ path }) => path)).toEqual([
    '/update/1/address',
    '/update/1/ttl',
    '/add/0/name',
    '/add/1/name',
    '/add/2/name',
  ])
})

test('a batch names every unknown id by its pointer', () => {
  const failure = failureOf(() =>
    batch({ remove: [idOf(www), 'gone'], update: [{ id: 'lost', patch: {} }] }, zone([www])),
  )

  expect(failure).toMatchObject({ status: 404, code: 'record_not_found' })
  expect(failure.errors?.map(({ path }) => path)).toEqual(['/remove/1', '/update/0/id'])
})

test('a batch names a record once', () => {
  const id = idOf(www)

  const failure = failureOf(() =>
    batch(
      {
        remove: [idOf(mx)],
        update: [
          { id, patch: {} },
          { id, patch: {} },
          { id: idOf(mx), patch: {} },
        ],
      },
      zone([www, mx], 'MX'),
    ),
  )

  expect(failure.errors?.map(({ path }) => path)).toEqual(['/update/1/id', '/update/2/id'])
})

test.each([
  ['CNAME beside A', www, { name: 'www', type: 'CNAME', address: 'a.example.net' }],
  ['A beside CNAME', alias, { name: 'A', type: 'A', address: '192.0.2.1' }],
  ['ALIAS beside A', www, { name: 'www', type: 'ALIAS', address: 'a.example.net' }],
  ['second redirect', row('r', 'URL', 'http://a.example/'), { name: 'r', type: 'FRAME', address: 'http://b.example/' }],
  ['second MXE', row('@', 'MXE', '192.0.2.1'), { name: '@', type: 'MXE', address: '192.0.2.2' }],
])('%s of a live record is record_conflict and names that record', (_name, live, record) => {
  const failure = failureOf(() =>
    applyEdit(zone([live], live.type === 'MXE' ? 'MXE' : 'NONE'), {
      kind: 'batch',
      add: [record],
      isSingle: true,
    }),
  )

  expect(failure).toMatchObject({ status: 409, code: 'record_conflict' })
  expect(failure.message).toContain(idOf(live))
})

test('removing every record that a batch can name empties the zone', () => {
  fc.assert(
    fc.property(oddRows, (rows) => {
      const live = zone(rows)

      const after = batch({ remove: toRecords(live).map(({ id }) => id) }, live)

      expect(after.rows).toEqual([])
    }),
    { numRuns: 200 },
  )
})

test('an update of every record with what it has changes nothing', () => {
  fc.assert(
    fc.property(oddRows, (rows) => {
      const writable = rows.filter(({ type }) => !['SRV', 'PTR'].includes(type))
      const live = zone([...new Map(writable.map((each) => [idOf(each), each])).values()])
      const records = toRecords(live)

      const after = batch({ update: records.map(({ id, ...patch }) => ({ id, patch })) }, live)

      expect(subtract(after.rows, live.rows)).toEqual([])
      expect(after.rows.length).toBe(live.rows.length)
    }),
    { numRuns: 500 },
  )
})
