import fc from 'fast-check'
import { expect, test } from 'vitest'
import { applyEdit } from '../../../src/dns/edits/apply-edit.ts'
import type { EnsureEdit } from '../../../src/dns/edits/zone-edit.ts'
import type { Zone } from '../../../src/dns/zone.ts'
import { failureOf, row, www, zone } from '../../support/zones.ts'

const ensure = (edit: Partial<EnsureEdit>, live: Zone) =>
  applyEdit(live, { kind: 'ensure', present: [], absent: [], ...edit })

const challenge = { name: '_acme-challenge', type: 'TXT', address: 'token-1' }
const live = row('_acme-challenge', 'TXT', 'token-1', { ttl: '60' })

test('a missing record is added, beside another value at its name', () => {
  const after = ensure({ present: [{ ...challenge, address: 'token-2', ttl: 60 }] }, zone([live]))

  expect(after.rows).toEqual([live, { ...live, address: 'token-2' }])
})

test.each([
  ['without a TTL', challenge],
  ['with the same TTL', { ...challenge, ttl: 60 }],
])('a record that is there is left alone when it is ensured %s', (_name, record) => {
  expect(ensure({ present: [record] }, zone([live, www])).rows).toEqual([live, www])
})

test('a TTL that is given replaces that of the live record', () => {
  const after = ensure({ present: [{ ...challenge, ttl: 300 }] }, zone([live, www]))

  expect(after.rows).toEqual([www, { ...live, ttl: '300' }])
})

test('an absent record is removed where it is found, and only that value', () => {
  const other = { ...live, address: 'token-2' }
  const absent = [challenge]

  expect(ensure({ absent }, zone([live, other])).rows).toEqual([other])
  expect(ensure({ absent }, zone([other])).rows).toEqual([other])
})

test('a record in both lists stays', () => {
  expect(ensure({ present: [challenge], absent: [challenge] }, zone([live])).rows).toEqual([live])
})

test('a record may take the place of an absent one', () => {
  const after = ensure(
    {
      present: [{ name: 'www', type: 'CNAME', address: 'a.example.net' }],
      absent: [{ name: 'www', type: 'A', address: '192.0.2.1' }],
    },
    zone([www]),
  )

  expect(after.rows.map(({ name, type }) => `${name} ${type}`)).toEqual(['www CNAME'])
})

test('more records than a zone may have are refused before anything else about them', () => {
  const present = Array.from({ length: 151 }, (_, n) => ({ ...challenge, address: `token-${n}`, ttl: 1 }))

  expect(failureOf(() => ensure({ present }, zone([]))).code).toBe('too_many_records')
  expect(failureOf(() => ensure({ present: present.slice(1) }, zone([]))).code).toBe('validation_failed')
})

test('a present record that the rules forbid is refused by its pointer', () => {
  const present = [challenge, { name: 'www', type: 'A', address: 'x' }]

  expect(failureOf(() => ensure({ present }, zone([]))).errors).toMatchObject([{ path: '/present/1/address' }])
})

const records = fc.uniqueArray(
  fc.record({
    name: fc.constantFrom('a', 'b', '*', '_acme-challenge'),
    type: fc.constantFrom('A', 'TXT'),
    address: fc.constantFrom('192.0.2.1', '192.0.2.2', '192.0.2.3'),
    ttl: fc.option(fc.constantFrom(60, 1800), { nil: undefined }),
  }),
  { selector: ({ name, type, address }) => `${name} ${type} ${address}`, maxLength: 8 },
)

test('an edit applied twice is the same as once, also after its way through JSON', () => {
  fc.assert(
    fc.property(records, records, records, (before, present, absent) => {
      const start = ensure({ present: before }, zone([]))
      const edit = { kind: 'ensure', present, absent } as const

      const once = applyEdit(start, edit)

      expect(applyEdit(once, JSON.parse(JSON.stringify(edit))).rows).toEqual(once.rows)
    }),
    { numRuns: 500 },
  )
})
