import fc from 'fast-check'
import { expect, test } from 'vitest'
import { applyEdit } from '../../../src/dns/edits/apply-edit.ts'
import { parseRow, type RecordInput } from '../../../src/dns/record.ts'
import type { Zone } from '../../../src/dns/zone.ts'
import { failureOf, oddRows, row, www, zone } from '../../support/zones.ts'

const add = (record: RecordInput, live: Zone, emailType?: string) =>
  applyEdit(live, { kind: 'batch', add: [record], emailType, isSingle: true })

const remove = (id: string, live: Zone) => applyEdit(live, { kind: 'batch', remove: [id], isSingle: true })

test('a record beside odd rows is added: their faults are not its own', () => {
  fc.assert(
    fc.property(oddRows, (rows) => {
      const live = zone(
        rows.filter((each) => !['MX', 'MXE', 'CNAME'].includes(each.type)),
        'NONE',
      )

      const planned = add({ name: 'new-one', type: 'TXT', address: 'x' }, live)

      expect(planned.rows.slice(0, -1)).toEqual(live.rows)
      expect(planned.rows.at(-1)).toMatchObject({ name: 'new-one', type: 'TXT', address: 'x' })
    }),
    { numRuns: 500 },
  )
})

test('a record that is there is not added again, in whatever spelling', () => {
  const live = zone([row('a', 'CNAME', 'b.example.net.', { ttl: '60' })])

  const failure = failureOf(() => add({ name: 'A', type: 'cname', address: 'B.example.net' }, live))

  expect(failure).toMatchObject({ status: 409, code: 'record_exists' })
})

test('the 151st record is refused', () => {
  const live = zone(Array.from({ length: 150 }, (_, n) => row(`h${n}`, 'A', '192.0.2.1')))

  expect(failureOf(() => add({ name: 'x', type: 'A', address: '192.0.2.1' }, live))).toMatchObject({
    status: 422,
    code: 'too_many_records',
  })
})

test('a zone that has too many records, as other tools may leave it, can be changed, but not grow', () => {
  const rows = Array.from({ length: 152 }, (_, n) => row(`h${n}`, 'A', '192.0.2.1'))
  const [, ...rest] = rows
  const id = parseRow(row('h0', 'A', '192.0.2.1')).record.id

  const removed = applyEdit(zone(rows), { kind: 'batch', remove: [id] })
  const patched = applyEdit(zone(rows), { kind: 'batch', update: [{ id, patch: { ttl: 60 } }] })

  expect(removed.rows).toEqual(rest)
  expect(patched.rows).toHaveLength(152)
})

test('an email type alone is an edit', () => {
  const live = zone([www], 'FWD')

  const after = applyEdit(live, { kind: 'batch', emailType: 'NONE' })

  expect(after).toEqual({ ...live, emailType: 'NONE' })
})

test('a record is removed by its id', () => {
  const live = zone([www, row('a', 'A', '192.0.2.2')])

  expect(remove(parseRow(www).record.id, live).rows).toEqual([live.rows[1]])
  expect(failureOf(() => remove('000000000000', live))).toMatchObject({
    status: 404,
    code: 'record_not_found',
  })
})
