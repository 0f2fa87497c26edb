import { expect, test } from 'vitest'
import { chooseGiven, differenceOf } from '../../../src/integrations/registrar-door/merge.ts'
import type { GivenZone, KnownZone } from '../../../src/ledger/given-zones.ts'

const zoneOf = (letters: string): KnownZone => ({
  emailType: 'NONE',
  records: [...letters].map((name) => ({ name, type: 'TXT', address: name, ttl: 60 })),
})

/**
 * `ab`: a zone that was read; `ab+z`: one that was read as a write will have made it of z; `ab!`: one that was submitted;
 * `ab?z`: one whose write, compared with z, may not be done.
 */
function givenOf(text: string, id: number): GivenZone {
  const [, letters = '', sign, base] = /^([a-z]*)([!?+]?)([a-z]*)$/.exec(text) ?? []
  return {
    id,
    isSubmitted: sign === '!' || sign === '?',
    zone: zoneOf(letters),
    base: sign === '?' || sign === '+' ? zoneOf(base ?? '') : undefined,
  }
}

test.each([
  // [zones that were given, oldest first; the submitted list; which one explains it; with what it is compared]
  ['the only one', ['a'], 'b', 0, 'a'],
  ['fewest removals', ['ab', 'a'], 'ac', 1, 'a'],
  ['fewest removals, though older', ['a', 'abx'], 'ac', 0, 'a'],
  ['of equal ones the newest', ['a', 'b'], 'c', 1, 'b'],
  ['of two reads of one zone one is left', ['z', 'za!'], 'zb', 0, 'z'],
  ['a client that goes back without reading', ['zc!'], 'z', 0, 'zc'],
  ['a read that nobody used shields a way back to exactly it', ['z', 'zc!'], 'z', 0, 'z'],
  ['but not a way to another zone', ['z', 'zab!'], 'zb', 1, 'zab'],
  [
    'a record that only a later zone has shows that this is known',
    ['za!', 'zabx'],
    'zax',
    1,
    'zabx',
  ],
  ['its own list is left behind by what it added later', ['za!', 'zab!', 'zab'], 'za', 2, 'zab'],
  ['all that it added goes at once', ['zc!', 'zcd!', 'zcd'], 'z', 2, 'zcd'],
  ['what another process of the token removed is not added', ['zabc', 'zbc!'], 'zac', 0, 'zabc'],
  ['nor what it is removing', ['zabc', 'zbc+zabc'], 'zac', 0, 'zabc'],
  [
    'the list of another process that came before is of this token, too',
    ['za!', 'zb!', 'zab'],
    'zb',
    2,
    'zab',
  ],
  ['unless it has not read since', ['zc!', 'zcd!'], 'z', 0, 'zc'],
  ['with others’ records in between', ['z!', 'zd!', 'zdx'], 'z', 0, 'z'],
  ['the same list again is its own', ['za!'], 'za', 0, 'za'],
  ['the same list again, after others wrote', ['za!', 'zax'], 'za', 0, 'za'],
  ['a repeat of what may not be done', ['zc?z'], 'zc', 0, 'z'],
  ['another list after what may not be done', ['zc?z'], 'z', 0, 'zc'],
  ['a further record after what may not be done', ['zc?z'], 'zcd', 0, 'z'],
  ['a further one, and the unfinished one taken back', ['zc?z'], 'zd', 0, 'zc'],
  ['a removal that may not be done, repeated with a record', ['z?zc'], 'zd', 0, 'zc'],
  ['a removal that may not be done, taken back', ['z?zc'], 'zc', 0, 'z'],
  ['a repeat of what may not be done, after a read', ['zc?z', 'zcx'], 'zc', 0, 'z'],
])('%s: of %j, %s is explained by number %i', (_case, given, list, index, base) => {
  const zones = given.map((text, at) => givenOf(text, at))

  const chosen = chooseGiven(zones, zoneOf(list), 'example.com')

  expect(chosen?.used.id).toBe(index)
  expect(chosen?.base).toEqual(zoneOf(base))
})

test('nothing given explains nothing', () => {
  expect(chooseGiven([], zoneOf('a'), 'example.com')).toBeUndefined()
})

const record = (name: string, type: string, address: string, more = {}) => ({
  name,
  type,
  address,
  ...more,
})
const base: KnownZone = {
  emailType: 'MX',
  records: [
    record('www', 'CNAME', 'a.example.net', { ttl: 300 }),
    record('@', 'CAA', '0 issue "x.example"', { ttl: 300 }),
    record('v6', 'AAAA', '2001:db8::1', { ttl: 300 }),
    record('@', 'MX', 'mx.example.net', { ttl: 300, mx_pref: 5 }),
  ],
}

test('other spellings of a record, and what a list leaves open, are no difference', () => {
  const submitted: KnownZone = {
    records: [
      record('WWW', 'cname', 'A.example.net.'),
      record('@', 'CAA', '0 issue x.example', { ttl: 300 }),
      record('v6', 'AAAA', '2001:DB8:0::1'),
      record('@', 'MX', 'mx.example.net.'),
      record('@', 'MX', 'mx.example.net'),
    ],
  }

  const { edit } = differenceOf(base, submitted, 'example.com')

  expect(edit).toEqual({ kind: 'ensure', present: [], absent: [] })
})

test('a difference is what was added, changed and removed, and another email type', () => {
  const [www, , v6, mx] = base.records
  const submitted: KnownZone = {
    emailType: 'OX',
    records: [{ ...www, ttl: 60 }, v6, { ...mx, mx_pref: 9 }, record('n', 'TXT', 'new')].flatMap(
      (each) =>
        each?.name && each.type && each.address
          ? record(each.name, each.type, each.address, each)
          : [],
    ),
  }

  const { edit, indexes } = differenceOf(base, submitted, 'example.com')

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
