import { expect, test } from 'vitest'
import type { HostRecord } from '../../../web/api/schema.d.ts'
import { diffZones, isEmptyDiff, pairChanges } from '../../../web/zone/zone-diff.js'

const mx = (address: string, pref: number): HostRecord => ({
  id: `${address}${pref}`,
  name: '@',
  type: 'MX',
  address,
  ttl: 1800,
  mx_pref: pref,
})

test('a removed and an added record of one name and type are one changed record', () => {
  const before = mx('mx1.example.net', 10)
  const after = mx('mx2.example.net', 10)

  expect(pairChanges({ removed: [before], added: [after] })).toEqual({
    added: [],
    removed: [],
    changed: [{ before, after }],
  })
})

test('records with the same address are paired before others', () => {
  const removed = [mx('mx1.example.net', 10), mx('mx2.example.net', 20)]
  const added = [mx('mx2.example.net', 5)]

  const diff = pairChanges({ removed, added })

  expect(diff.changed).toEqual([{ before: removed[1], after: added[0] }])
  expect(diff.removed).toEqual([removed[0]])
})

test('equal zones differ in nothing, whatever the order of their records', () => {
  const hosts = [mx('mx1.example.net', 10), mx('mx2.example.net', 20)]

  expect(isEmptyDiff(diffZones(hosts, hosts.toReversed()))).toBe(true)
})

test('a record that occurs twice before and once after was removed once', () => {
  const twin = mx('mx1.example.net', 10)

  expect(diffZones([twin, twin], [twin]).removed).toEqual([twin])
})
