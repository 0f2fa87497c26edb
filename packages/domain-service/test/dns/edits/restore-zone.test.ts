import { HttpError } from '@domains-and-files/http'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { applyEdit } from '../../../src/dns/edits/apply-edit.ts'
import type { RevertEdit } from '../../../src/dns/edits/zone-edit.ts'
import { parseRow, type Row } from '../../../src/dns/record.ts'
import { subtract, type Zone } from '../../../src/dns/zone.ts'
import { failureOf, oddRows, row, www, zone } from '../../support/zones.ts'

test('a zone of the past comes back with its rows as they were and its email type', () => {
  const past = {
    rows: [row('Old', 'CNAME', 'x.example.net'), row('odd', 'A', '999')],
    emailType: 'FWD',
  }
  const live = zone([www, row('old', 'CNAME', 'x.example.net.')], 'NONE')

  const planned = applyEdit(live, { kind: 'restore', ...past })

  expect(planned.emailType).toBe('FWD')
  expect(planned.rows).toEqual([live.rows[1], past.rows[1]])
})

test('a former zone of unknown email type keeps the present one', () => {
  expect(applyEdit(zone([www], 'FWD'), { kind: 'restore', rows: [] })).toMatchObject({
    rows: [],
    emailType: 'FWD',
  })
})

test.each([undefined, 'NONE'])('rows that are all there are restored beside the email type %s', (emailType) => {
  const live = zone([row('@', 'MX', 'mx.example.net.')], emailType)

  expect(applyEdit(live, { kind: 'restore', rows: [row('@', 'MX', 'mx.example.net')] })).toEqual(live)
})

test('nothing is restored where no email type is known', () => {
  const failure = failureOf(() => applyEdit(zone([www], undefined), { kind: 'restore', rows: [] }))

  expect(failure).toMatchObject({ status: 409, code: 'email_type_conflict' })
})

const added = row('new', 'A', '192.0.2.5')
const removed = row('Old', 'A', '192.0.2.6', { ttl: '77' })
const change: RevertEdit = {
  kind: 'revert',
  added: [added],
  removed: [removed],
  emailTypeBefore: 'NONE',
  emailTypeAfter: 'NONE',
}

test('a revert takes back one change and keeps later ones', () => {
  const later = row('later', 'TXT', 'x')

  const after = applyEdit(zone([www, added, later]), change)

  expect(after.rows).toEqual([www, later, removed])
})

test.each([
  ['its record was removed', [www]],
  ['its record has another TTL', [{ ...added, ttl: '60' }]],
  ['the removed record was added again', [added, { ...removed, ttl: '60' }]],
  ['a later CNAME has the name', [added, row('old', 'CNAME', 'a.example.net.')]],
])('a revert is a conflict where %s since', (_name, rows) => {
  expect(failureOf(() => applyEdit(zone(rows), change))).toMatchObject({
    status: 409,
    code: 'revert_conflict',
  })
})

test('a revert is refused where the zone would have more than 150 records, unless it has them already', () => {
  const others = Array.from({ length: 149 }, (_, n) => row(`h${n}`, 'A', '192.0.2.1'))
  const bigger = { ...change, removed: [removed, row('older', 'A', '192.0.2.1')] }

  const failure = failureOf(() => applyEdit(zone([...others, added]), bigger))
  const swapped = applyEdit(zone([...others, www, www, added]), change)

  expect(failure).toMatchObject({ status: 422, code: 'too_many_records' })
  expect(swapped.rows).toHaveLength(152)
})

const mx = row('@', 'MX', 'mx.example.net.')
const firstMx: RevertEdit = {
  kind: 'revert',
  added: [mx],
  removed: [],
  emailTypeBefore: 'FWD',
  emailTypeAfter: 'MX',
}

test.each([
  ['returns with the records', [mx], 'MX', 'FWD'],
  ['suits records that were added later', [mx, row('@', 'MX', 'b.example.net.')], 'MX', 'MX'],
  ['stays where it is the former one already', [mx], 'FWD', 'FWD'],
])('the email type of a revert %s', (_name, rows, present, expected) => {
  expect(applyEdit(zone(rows, present), firstMx).emailType).toBe(expected)
})

test('a revert is a conflict where the email type was changed since', () => {
  expect(failureOf(() => applyEdit(zone([mx], 'GMAIL'), firstMx)).code).toBe('revert_conflict')
})

test('a revert of what an edit did gives the zone before it, for any edit', () => {
  fc.assert(
    fc.property(oddRows, oddRows, (before, after) => {
      const [first, last] = [unique(before), unique(after)]
      fc.pre(first.length <= 150 && last.length <= 150)
      const reverted = attempt(() =>
        applyEdit(zone(last), {
          kind: 'revert',
          added: subtract(last, first),
          removed: subtract(first, last),
          emailTypeBefore: 'NONE',
          emailTypeAfter: 'NONE',
        }),
      )
      // Odd zones may contradict themselves; then the revert says so.
      if (reverted === undefined) return
      expect(subtract(reverted.rows, first)).toEqual([])
      expect(reverted.rows.length).toBe(first.length)
    }),
    { numRuns: 500 },
  )
})

const unique = (rows: Row[]) =>
  [...new Map(rows.map((each) => [parseRow(each).key, each])).values()].filter(
    ({ type }) => type !== 'MX' && type !== 'MXE',
  )

function attempt(run: () => Zone): Zone | undefined {
  try {
    return run()
  } catch (error) {
    if (error instanceof HttpError && error.code === 'revert_conflict') return undefined
    throw error
  }
}
