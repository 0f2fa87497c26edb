import { expect, test } from 'vitest'
import { applyEdit } from '../../src/dns/apply-edit.ts'
import { row, www, zone } from '../support/zones.ts'

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
