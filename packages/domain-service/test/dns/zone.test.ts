import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseRow, type Row } from '../../src/dns/record.ts'
import {
  changesOf,
  differenceOf,
  distinctRows,
  hasDelta,
  isDisjoint,
  isSameRows,
  keepEmailType,
  subtract,
  validateEmailType,
  withDelta,
} from '../../src/dns/zone.ts'
import { failureOf, oddRows, row, www, zone } from '../support/zones.ts'

/** One row of each key, as the registrar keeps them. */
const keyed = (rows: Row[]) => [...new Map(rows.map((each) => [parseRow(each).key, each])).values()]

test('the difference of two zones leads from one to the other, and is all that differs', () => {
  const property = fc.property(oddRows, oddRows, oddRows, (shared, one, other) => {
    const [before, after] = [zone(keyed([...shared, ...one])), zone(keyed([...shared, ...other]))]
    const delta = differenceOf(before, after)

    expect(isSameRows(withDelta(before, delta).rows, after.rows)).toBe(true)
    expect(hasDelta(after, delta)).toBe(true)
    expect(hasDelta(before, { added: delta.removed, removed: delta.added })).toBe(true)
    expect(isDisjoint(delta.added, before.rows) && isDisjoint(before.rows, delta.added)).toBe(true)
    expect(changesOf({ ...delta, after }).kept).toBe(before.rows.length - delta.removed.length)
  })
  fc.assert(property, { numRuns: 50 })
})

test('what is subtracted from rows and what is left are together the rows, in any order', () => {
  const property = fc.property(oddRows, oddRows, (rows, others) => {
    const left = subtract(rows, others)

    expect(isSameRows([...left, ...subtract(rows, left)], rows)).toBe(true)
    expect(isSameRows(rows.toReversed(), rows)).toBe(true)
    expect(isSameRows(distinctRows([...rows, ...rows]), distinctRows(rows))).toBe(true)
  })
  fc.assert(property, { numRuns: 50 })
})

const mx = row('@', 'MX', 'mx.example.net.')
const mxe = row('@', 'MXE', '192.0.2.7')

test.each([
  ['a first MX makes NONE MX', 'NONE', [], [mx], 'MX'],
  ['a first MXE makes NONE MXE', 'NONE', [], [mxe], 'MXE'],
  ['removing the last MX makes MX NONE', 'MX', [mx, www], [www], 'NONE'],
  ['removing the last MXE makes MXE NONE', 'MXE', [mxe], [], 'NONE'],
  ['an MX in place of the MXE makes MXE MX', 'MXE', [mxe], [mx], 'MX'],
  ['a record beside an MX keeps MX', 'MX', [mx], [mx, www], 'MX'],
  ['removing another record keeps MX without MX rows', 'MX', [www], [], 'MX'],
  ['a record other than MX keeps FWD', 'FWD', [], [www], 'FWD'],
  ['a record beside an MX that FWD has all the same keeps FWD', 'FWD', [mx], [mx, www], 'FWD'],
  ['a record beside its own MX keeps OX', 'OX', [mx], [mx, www], 'OX'],
  ['a first MX keeps GMAIL', 'GMAIL', [], [mx], 'GMAIL'],
  ['removing the last MX keeps GMAIL', 'GMAIL', [mx], [], 'GMAIL'],
  ['a record keeps a type outside the API', 'OTHER', [], [www], 'OTHER'],
])('%s', (_name, emailType, before, rows, expected) => {
  expect(keepEmailType({ before: { emailType, rows: before }, rows })).toBe(expected)
})

test.each([
  ['FWD becomes MX', 'FWD', [], [mx], 'MX'],
  ['NONE becomes FWD', 'NONE', [], [], 'FWD'],
  ['OX becomes MX', 'OX', [mx], [mx], 'MX'],
  ['an unknown type becomes FWD', undefined, [], [www], 'FWD'],
])('on request %s', (_name, emailType, before, rows, requested) => {
  expect(validateEmailType(requested, { before: { emailType, rows: before }, rows })).toBeUndefined()
})

test.each([
  ['a first MX in a FWD zone', 'FWD', [], [mx]],
  ['a first MXE in a FWD zone', 'FWD', [], [mxe]],
  ['a first MXE in an OX zone', 'OX', [mx], [mxe]],
  ['a record in a zone of unknown email type', undefined, [], [www]],
  ['a record beside MX in a zone of unknown email type', undefined, [mx], [mx, www]],
])('%s is a conflict', (_name, emailType, before, rows) => {
  expect(failureOf(() => keepEmailType({ before: { emailType, rows: before }, rows })).code).toBe('email_type_conflict')
})

test.each([
  ['requesting NONE beside MX', 'MX', [mx], [mx], 'NONE'],
  ['requesting FWD beside MX', 'NONE', [], [mx], 'FWD'],
  ['requesting MX beside MXE', 'NONE', [], [mxe], 'MX'],
  ['requesting MX without MX', 'NONE', [], [], 'MX'],
  ['requesting a type outside the API', 'NONE', [], [], 'POST'],
  ['requesting MXE without MXE', 'NONE', [], [www], 'MXE'],
])('%s is refused', (_name, emailType, before, rows, requested) => {
  expect(validateEmailType(requested, { before: { emailType, rows: before }, rows })).toContain('must be one of')
})
