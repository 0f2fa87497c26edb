import { HttpError } from '@domains-and-files/http'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { resolveEmailType } from '../../src/dns/email-type.ts'
import {
  etagOf,
  type Row,
  recordTypes,
  subtract,
  toRecord,
  toRecords,
  type Zone,
} from '../../src/dns/record.ts'
import { addRecord, removeRecord, replaceWith, restore } from '../../src/dns/zone-edits.ts'

const row = (name: string, type: string, address: string, rest: Partial<Row> = {}): Row => ({
  name,
  type,
  address,
  ttl: '1800',
  mxPref: '10',
  dynamic: false,
  ...rest,
})
const zone = (rows: Row[], ...rest: [emailType?: string | undefined]): Zone => ({
  domain: 'example.com',
  usesRegistrarDns: true,
  emailType: rest.length > 0 ? rest[0] : 'NONE',
  rows,
})

function failureOf(run: () => unknown): HttpError {
  try {
    run()
  } catch (error) {
    if (error instanceof HttpError) return error
    throw error
  }
  throw new Error('it was done')
}

const www = row('www', 'A', '192.0.2.1')

test('records are told in one order, with what belongs to them', () => {
  const told = toRecords(
    zone([
      row('b', 'MX', 'mx2.example.net.', { mxPref: '0', ttl: '60' }),
      www,
      row('', 'TXT', 'a.'),
      row('@', 'A', '192.0.2.2'),
    ]),
  )

  expect(told.map(({ id, ...rest }) => rest)).toEqual([
    { name: '@', type: 'A', address: '192.0.2.2', ttl: 1800 },
    { name: '@', type: 'TXT', address: 'a.', ttl: 1800 },
    { name: 'b', type: 'MX', address: 'mx2.example.net', ttl: 60, mx_pref: 0 },
    { name: 'www', type: 'A', address: '192.0.2.1', ttl: 1800 },
  ])
  expect(told.every(({ id }) => /^[0-9a-f]{12}$/.test(id))).toBe(true)
})

test('the id of a record does not depend on its TTL, the ETag of the zone does', () => {
  const other = { ...www, ttl: '60' }

  expect(toRecord(other, 'example.com').id).toBe(toRecord(www, 'example.com').id)
  expect(etagOf(zone([other]))).not.toBe(etagOf(zone([www])))
  expect(etagOf(zone([www], 'MX'))).not.toBe(etagOf(zone([www])))
  expect(etagOf(zone([www, row('a', 'A', '192.0.2.9')]))).toBe(
    etagOf(zone([row('a', 'A', '192.0.2.9'), www])),
  )
})

test('an untouched row goes back as it came, whatever a caller makes of its spelling', () => {
  const rows = [
    row('Mail', 'CNAME', 'Host.Example.net', { ttl: '1799' }),
    row('v6', 'AAAA', '2001:0db8:0:0::1'),
    row('example.com', 'MXE', '192.0.2.7'),
    row('@', 'CAA', '0 issue ca.example.net'),
  ]

  const planned = replaceWith(
    [
      { name: 'mail', type: 'cname', address: 'host.example.net.', ttl: 1799 },
      { name: 'v6', type: 'AAAA', address: '2001:db8::1' },
      { name: '@', type: 'MXE', address: '192.0.2.7' },
      { name: '@', type: 'CAA', address: '0 issue "ca.example.net"' },
    ],
    undefined,
  )(zone(rows, 'MXE'))

  expect(planned.rows).toEqual(rows)
})

test('a changed TTL makes a new row', () => {
  const planned = replaceWith(
    [{ name: 'www', type: 'A', address: '192.0.2.1', ttl: 300 }],
    undefined,
  )(zone([www]))

  expect(planned.rows).toEqual([{ ...www, ttl: '300' }])
})

const oddRows = fc.array(
  fc.record<Row>({
    name: fc.oneof(
      fc.constantFrom(
        '@',
        '',
        'www',
        'WWW',
        '-bad-',
        'a..b',
        'www.example.com',
        'x'.repeat(80),
        '*',
      ),
      fc.string({ unit: 'binary', maxLength: 12 }),
    ),
    type: fc.constantFrom<string>(...recordTypes, 'SRV', 'a', 'PTR'),
    address: fc.oneof(
      fc.constantFrom(
        '1.2.3.4',
        '999',
        'host.example.net.',
        'host.example.net',
        '',
        ' ',
        '0 issue "x"',
        '0 issue x',
        '2001:DB8::1',
        'http://u:p@x/',
        '"',
      ),
      fc.string({ unit: 'binary', maxLength: 30 }),
    ),
    ttl: fc.constantFrom('1800', '1', '', '99999', '1799', '0'),
    mxPref: fc.constantFrom('10', '0', '', '70000', '5'),
    dynamic: fc.boolean(),
  }),
  { maxLength: 30 },
)
const emailTypes = fc.constantFrom('NONE', 'MX', 'MXE', 'FWD', 'OX', 'GMAIL', 'OTHER', undefined)

test('what GET returned is taken back and changes nothing, also where today’s rules would refuse it', () => {
  fc.assert(
    fc.property(oddRows, emailTypes, fc.boolean(), (rows, emailType, shuffled) => {
      const live = zone(rows, emailType)
      const told = toRecords(live)

      const planned = replaceWith(shuffled ? told.toReversed() : told, undefined)(live)

      expect(planned.emailType).toBe(emailType)
      expect(planned.rows.length).toBe(rows.length)
      expect(subtract(planned.rows, rows, live.domain)).toEqual([])
      // The very rows, not likenesses of them.
      expect(planned.rows.every((each) => rows.includes(each))).toBe(true)
    }),
    { numRuns: 2000, interruptAfterTimeLimit: 10_000 },
  )
})

test('a record beside odd rows is added, and blamed for nothing that they are', () => {
  fc.assert(
    fc.property(oddRows, (rows) => {
      const live = zone(
        rows.filter((each) => !['MX', 'MXE', 'CNAME'].includes(each.type)),
        'NONE',
      )

      const planned = addRecord({ name: 'new-one', type: 'TXT', address: 'x' }, undefined)(live)

      expect(planned.rows.slice(0, -1)).toEqual(live.rows)
      expect(planned.rows.at(-1)).toMatchObject({ name: 'new-one', type: 'TXT', address: 'x' })
    }),
    { numRuns: 500, interruptAfterTimeLimit: 10_000 },
  )
})

test.each([
  ['twice the same', [www, www], ['/hosts/0/name', '/hosts/1/name']],
  [
    'twice the same but for spelling and TTL',
    [row('a', 'CNAME', 'b.example.net'), row('A', 'CNAME', 'B.example.net.', { ttl: '60' })],
    ['/hosts/0/name', '/hosts/1/name'],
  ],
  [
    'CNAME beside TXT',
    [row('a', 'CNAME', 'b.example.net'), row('a', 'TXT', 'x')],
    ['/hosts/0/name', '/hosts/1/name'],
  ],
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
  [
    'two MXE',
    [row('@', 'MXE', '192.0.2.1'), row('@', 'MXE', '192.0.2.2')],
    ['/hosts/0/type', '/hosts/1/type'],
  ],
  [
    'MX beside MXE',
    [row('@', 'MX', 'mx.example.net'), row('@', 'MXE', '192.0.2.2')],
    ['/email_type'],
  ],
  [
    '151 records',
    Array.from({ length: 151 }, (_, n) => row(`h${n}`, 'A', '192.0.2.1')),
    ['/hosts'],
  ],
])('a list with %s is refused', (_name, rows, paths) => {
  const drafts = rows.map(({ name, type, address, ttl }) => ({
    name,
    type,
    address,
    ttl: Number(ttl),
  }))

  const failure = failureOf(() => replaceWith(drafts, undefined)(zone([])))

  expect(failure.code).toBe('validation_failed')
  expect(failure.errors?.map(({ path }) => path)).toEqual(paths)
})

test('only the new one of a clash is blamed', () => {
  const live = zone([row('a', 'CNAME', 'b.example.net.')])

  const failure = failureOf(() =>
    replaceWith(
      [
        { name: 'a', type: 'CNAME', address: 'b.example.net' },
        { name: 'a', type: 'TXT', address: 'x' },
      ],
      undefined,
    )(live),
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

  expect(replaceWith(drafts, undefined)(zone([])).rows).toHaveLength(150)
})

test('a record that is there is not added again, in whatever spelling', () => {
  const live = zone([row('a', 'CNAME', 'b.example.net.', { ttl: '60' })])

  const failure = failureOf(() =>
    addRecord({ name: 'A', type: 'cname', address: 'B.example.net' }, undefined)(live),
  )

  expect(failure).toMatchObject({ status: 409, code: 'record_exists' })
})

test('the 151st record is refused', () => {
  const live = zone(Array.from({ length: 150 }, (_, n) => row(`h${n}`, 'A', '192.0.2.1')))

  expect(
    failureOf(() => addRecord({ name: 'x', type: 'A', address: '192.0.2.1' }, undefined)(live)),
  ).toMatchObject({ status: 422, code: 'too_many_records' })
})

test('a record is removed by its id', () => {
  const live = zone([www, row('a', 'A', '192.0.2.2')])

  expect(removeRecord(toRecord(www, live.domain).id)(live).rows).toEqual([live.rows[1]])
  expect(failureOf(() => removeRecord('000000000000')(live))).toMatchObject({
    status: 404,
    code: 'record_not_found',
  })
})

test('a zone of the past comes back with its rows as they were and its email type', () => {
  const past = {
    rows: [row('Old', 'CNAME', 'x.example.net'), row('odd', 'A', '999')],
    emailType: 'FWD',
  }
  const live = zone([www, row('old', 'CNAME', 'x.example.net.')], 'NONE')

  const planned = restore(past)(live)

  expect(planned.emailType).toBe('FWD')
  expect(planned.rows).toEqual([live.rows[1], past.rows[1]])
})

const mx = row('@', 'MX', 'mx.example.net.')
const mxe = row('@', 'MXE', '192.0.2.7')

test.each([
  ['a first MX in a NONE zone', 'NONE', [], [mx], undefined, { emailType: 'MX' }],
  ['a first MXE in a NONE zone', 'NONE', [], [mxe], undefined, { emailType: 'MXE' }],
  ['the last MX removed', 'MX', [mx, www], [www], undefined, { emailType: 'NONE' }],
  ['the last MXE removed', 'MXE', [mxe], [], undefined, { emailType: 'NONE' }],
  ['MX instead of MXE', 'MXE', [mxe], [mx], undefined, { emailType: 'MX' }],
  ['MX kept', 'MX', [mx], [mx, www], undefined, { emailType: 'MX' }],
  ['an MX zone without MX stays', 'MX', [www], [], undefined, { emailType: 'MX' }],
  ['FWD without MX stays', 'FWD', [], [www], undefined, { emailType: 'FWD' }],
  ['OX stays with its own MX', 'OX', [mx], [mx, www], undefined, { emailType: 'OX' }],
  ['GMAIL stays without MX', 'GMAIL', [mx], [], undefined, { emailType: 'GMAIL' }],
  ['a type that we do not know stays', 'OTHER', [], [www], undefined, { emailType: 'OTHER' }],
  ['none read, none wanted', undefined, [], [www], undefined, { emailType: 'NONE' }],
  ['none read, MX there', undefined, [mx], [mx, www], undefined, { emailType: 'MX' }],
  ['FWD asked to become MX', 'FWD', [], [mx], 'MX', { emailType: 'MX' }],
  ['NONE asked to become FWD', 'NONE', [], [], 'FWD', { emailType: 'FWD' }],
  ['OX asked to become MX', 'OX', [mx], [mx], 'MX', { emailType: 'MX' }],
])('email type: %s', (_name, emailType, before, rows, asked, expected) => {
  expect(resolveEmailType({ asked, before: { emailType, rows: before }, rows })).toEqual(expected)
})

test.each([
  ['a first MX in a FWD zone', 'FWD', [], [mx], undefined, 'conflict'],
  ['a first MXE in a FWD zone', 'FWD', [], [mxe], undefined, 'conflict'],
  ['a first MXE in an OX zone', 'OX', [mx], [mxe], undefined, 'conflict'],
  ['MX and MXE together', 'NONE', [], [mx, mxe], undefined, 'fault'],
  ['NONE asked beside MX', 'MX', [mx], [mx], 'NONE', 'fault'],
  ['FWD asked beside MX', 'NONE', [], [mx], 'FWD', 'fault'],
  ['MX asked beside MXE', 'NONE', [], [mxe], 'MX', 'fault'],
  ['MX asked without MX', 'NONE', [], [], 'MX', 'fault'],
  ['MXE asked without MXE', 'NONE', [], [www], 'MXE', 'fault'],
])('email type: %s is refused', (_name, emailType, before, rows, asked, kind) => {
  expect(resolveEmailType({ asked, before: { emailType, rows: before }, rows })).toHaveProperty(
    kind,
  )
})
