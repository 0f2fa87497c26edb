import { expect, test } from 'vitest'
import { chooseGiven, differenceOf } from '../../../src/integrations/registrar-door/merge.ts'
import type { ClientZone, GivenZone } from '../../../src/ledger/given-zones.ts'

const zoneOf = (letters: string): ClientZone => ({
  emailType: 'NONE',
  records: [...letters].map((name) => ({ name, type: 'TXT', address: name, ttl: 60 })),
})

/**
 * `ab`: a zone that was read; `ab*`: one that others have used up; `ab-z`: a list without an answer that was refused since; `ab+z`: one that was read as a write will have made it of z;
 * `ab!z`: a list that was compared with z and is done; `ab?z`: one that may not be; `ab~z`: one whose client was not told.
 */
function givenOf(text: string, id: number): GivenZone {
  const [, letters = '', sign = '', base] = /^([a-z]*)([-!?+~*]?)([a-z]*)$/.exec(text) ?? []
  return {
    id,
    kind: kinds.get(sign) ?? 'read',
    copies: sign === '*' ? 0 : sign === '-' ? -1 : 1,
    zone: zoneOf(letters),
    base: '-!?+~'.includes(sign || ' ') ? zoneOf(base ?? '') : undefined,
  }
}

const kinds = new Map<string, GivenZone['kind']>([
  ['!', 'done'],
  ['?', 'unfinished'],
  ['~', 'unanswered'],
  ['-', 'unanswered'],
])

test.each([
  // [zones that were given, oldest first; the submitted list; which one explains it; with what it is compared]
  ['the only one', ['a'], 'b', 0, 'a'],
  ['fewest removals', ['ab', 'a'], 'ac', 1, 'a'],
  ['fewest removals, though older', ['a', 'abx'], 'ac', 0, 'a'],
  ['of equal ones the one with the fewest additions', ['zabc', 'zbc'], 'zac', 0, 'zabc'],
  ['of equal ones the newest', ['a', 'b'], 'c', 1, 'b'],
  ['of two reads of one zone one is left', ['z', 'za!z'], 'zb', 0, 'z'],
  ['a client that goes back without reading', ['zc!z'], 'z', 0, 'zc'],
  ['a read that nobody used is no way back to it', ['z', 'zc!z'], 'z', 1, 'zc'],
  ['nor after a read', ['z', 'z*', 'zc!z', 'zc', 'zc'], 'z', 4, 'zc'],
  ['a way to another zone without reading', ['z', 'zab!z'], 'zb', 1, 'zab'],
  ['a record that is added again after a read', ['zc', 'z!zc', 'z', 'z'], 'zc', 3, 'z'],
  ['a removal that others have made is no reason', ['zm', 'zm*', 'zk!zm', 'zk'], 'z', 3, 'zk'],
  ['a record that only a later zone has shows that this is known', ['za', 'zabx'], 'zax', 1, 'zabx'],
  ['a record of a later zone, though that means a removal', ['za', 'zabx'], 'zaxn', 1, 'zabx'],
  ['a zone that others have used up explains nothing', ['z*', 'zc!z'], 'zb', 1, 'zc'],
  ['what a read shows was read', ['zab', 'zb!zab', 'zb', 'zba!zab'], 'zba', 2, 'zb'],
  ['a client that read twice and goes on without', ['z', 'za!z', 'zab!za'], 'zb', 2, 'zab'],
  ['reads before lists', ['za!z', 'zab!za', 'zab'], 'za', 2, 'zab'],
  ['reads before lists, though they remove more', ['z!', 'zd!z', 'zdx'], 'z', 2, 'zdx'],
  ['a list of a process that knew less removes nothing', ['zab', 'zx!z'], 'za', 0, 'zab'],
  ['what another process of the token removed is not added', ['zabc', 'zbc!zabc'], 'zac', 0, 'zabc'],
  ['nor what it is removing', ['zabc', 'zbc+zabc'], 'zac', 0, 'zabc'],
  ['a client that goes back two lists without reading', ['zc!z', 'zcd!zc'], 'z', 0, 'zc'],
  ['the same list again', ['za!z'], 'za', 0, 'za'],
  ['the same list again, after others wrote', ['za!z', 'zax'], 'za', 1, 'zax'],
  ['a repeat, after others wrote', ['za~z', 'zax'], 'za', 0, 'za'],
  ['a repeat of what may not be done', ['zc?z'], 'zc', 0, 'z'],
  ['another list after what may not be done', ['zc?z'], 'z', 0, 'zc'],
  ['a further record after what may not be done', ['zc?z'], 'zcd', 0, 'z'],
  ['a further one, and the unfinished one taken back', ['zc?z'], 'zd', 0, 'zc'],
  ['a removal that may not be done, repeated with a record', ['z?zc'], 'zd', 0, 'zc'],
  ['a removal that may not be done, taken back', ['z?zc'], 'zc', 0, 'z'],
  ['a repeat of what may not be done, after a read', ['zc?z', 'zcx'], 'zc', 0, 'z'],
  ['a repeated record that was there before', ['zc!z', 'z!zc', 'zc?z'], 'zc', 2, 'z'],
  ['a repeated removal of what an earlier list has added', ['zc!z', 'z?zc'], 'z', 1, 'zc'],
  ['a read that shows what is done meanwhile', ['zc~z', 'zc+z'], 'zcd', 1, 'zc'],
  ['a read that shows what another list takes back', ['za?z', 'za+z', 'z?za'], 'zab', 1, 'za'],
  ['a repeat that was refused since', ['zab-zb', 'za!zab', 'zadx'], 'zab', 0, 'za'],
  ['a repeat of what was taken back since', ['za~z', 'z!za', 'z'], 'za', 0, 'z'],
])('%s: of %j, %s is explained by number %i', (_case, given, list, index, base) => {
  const zones = given.map((text, at) => givenOf(text, at))

  const chosen = chooseGiven(zones, zoneOf(list))

  expect(chosen?.used.id).toBe(index)
  expect(chosen?.base).toEqual(zoneOf(base))
})

test.each([
  ['another address of a record', 1, 'www'],
  ['another value of a challenge', 0, '_acme-challenge'],
])('%s that the older zone does not have is explained by number %i', (_case, index, name) => {
  const withRecord = (address?: string): ClientZone => ({
    records: [...zoneOf('z').records, ...(address ? [{ name, type: 'TXT', address }] : [])],
  })
  const given = [withRecord(), withRecord('1')].map((zone, id): GivenZone => ({ id, kind: 'read', copies: 1, zone }))

  const chosen = chooseGiven(given, withRecord('2'))

  expect(chosen?.used.id).toBe(index)
})

test('a value that comes back is explained by the zone that has the other value, not by an older one', () => {
  const withValue = (address: string, letters = ''): ClientZone => ({
    records: [record('www', 'TXT', address), ...zoneOf(letters).records],
  })
  const given: GivenZone[] = [
    { id: 0, kind: 'read', copies: 1, zone: withValue('1', 'o') },
    { id: 1, kind: 'read', copies: 1, zone: withValue('2') },
    { id: 2, kind: 'done', copies: 1, zone: withValue('2', 'o'), base: withValue('2') },
  ]

  const chosen = chooseGiven(given, withValue('1'))

  expect(chosen?.used.id).toBe(1)
})

test.each([
  ['at once', ['za~z'], false],
  ['after others read', ['za~z', 'zab'], true],
  ['after others wrote', ['za~z', 'zb!z'], true],
])('a repeat %s of %j may come again: %s', (_case, given, mayRepeat) => {
  const zones = given.map((text, at) => givenOf(text, at))

  expect(chooseGiven(zones, zoneOf('za'))).toMatchObject({
    used: { id: 0 },
    mayRepeat,
  })
})

// In one history a list came again since its answer was lost, and b was removed by another process, which must stay. In
// the other one its client has removed b itself and adds it again.
test.each([
  ['others removed', ['zab~zb', 'za!zab', 'za'], true],
  ['a read does not show', ['zb', 'zab~z', 'z'], true],
  ['nobody removed', ['zab~zb', 'zabc!zab', 'zabc'], false],
])('a repeat with a record that %s is unclear: %j, %s', (_case, given, isUnclear) => {
  const zones = given.map((text, at) => givenOf(text, at))

  expect(chooseGiven(zones, zoneOf('zab'))).toMatchObject({ isUnclear })
})

test('nothing given explains nothing', () => {
  expect(chooseGiven([], zoneOf('a'))).toBeUndefined()
})

const record = (name: string, type: string, address: string, more = {}) => ({
  name,
  type,
  address,
  ...more,
})
const base: ClientZone = {
  emailType: 'MX',
  records: [
    record('www', 'CNAME', 'a.example.net', { ttl: 300 }),
    record('@', 'CAA', '0 issue "x.example"', { ttl: 300 }),
    record('v6', 'AAAA', '2001:db8::1', { ttl: 300 }),
    record('@', 'MX', 'mx.example.net', { ttl: 300, mx_pref: 5 }),
  ],
}

test('other spellings of a record, and what a list leaves open, are no difference', () => {
  const submitted: ClientZone = {
    records: [
      record('WWW', 'cname', 'A.example.net.'),
      record('@', 'CAA', '0 issue x.example', { ttl: 300 }),
      record('v6', 'AAAA', '2001:DB8:0::1'),
      record('@', 'MX', 'mx.example.net.'),
      record('@', 'MX', 'mx.example.net'),
    ],
  }

  const { edit } = differenceOf(base, submitted)

  expect(edit).toEqual({ kind: 'ensure', present: [], absent: [] })
})

test('a difference is what was added, changed and removed, and another email type', () => {
  const [www, , v6, mx] = base.records
  const submitted: ClientZone = {
    emailType: 'OX',
    records: [{ ...www, ttl: 60 }, v6, { ...mx, mx_pref: 9 }, record('n', 'TXT', 'new')].flatMap((each) =>
      each?.name && each.type && each.address ? record(each.name, each.type, each.address, each) : [],
    ),
  }

  const { edit, indexes } = differenceOf(base, submitted)

  expect(edit).toEqual({
    kind: 'ensure',
    present: [
      record('www', 'CNAME', 'a.example.net', { ttl: 60 }),
      record('@', 'MX', 'mx.example.net', { ttl: 300, mx_pref: 9 }),
      record('n', 'TXT', 'new'),
    ],
    absent: [record('@', 'CAA', '0 issue "x.example"')],
    emailType: 'OX',
  })
  expect(indexes).toEqual([0, 2, 3])
})
