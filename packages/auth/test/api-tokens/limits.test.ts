import { expect, test } from 'vitest'
import { isInNetworks, Network } from '../../src/api-tokens/networks.ts'
import { RecordLimit } from '../../src/api-tokens/record-limits.ts'
import { type Caller, intersectDomains } from '../../src/authorization.ts'
import { mayReadRrset, mayWriteRrset, requireRrsetWrites } from '../../src/index.ts'

const limits = [
  { name: '_acme-challenge', types: ['TXT'] },
  { name: '_acme-challenge.*', types: ['TXT'] },
  { name: 'home', types: ['A', 'AAAA'] },
]
const limited: Caller = {
  username: 'adam',
  role: 'editor',
  token: { id: '1', name: 'ci', records: limits, readsAll: false },
}

test.each([
  ['_acme-challenge', 'TXT', true],
  ['_ACME-Challenge', 'txt', true],
  ['_acme-challenge.www', 'TXT', true],
  ['_acme-challenge.a.b', 'TXT', true],
  ['_acme-challenge', 'A', false],
  ['www._acme-challenge', 'TXT', false],
  ['x_acme-challenge', 'TXT', false],
  ['_acme-challengex', 'TXT', false],
  ['home', 'AAAA', true],
  ['home', 'TXT', false],
  ['home.x', 'A', false],
  ['@', 'TXT', false],
])('a token limited to records may read and write %s %s: %s', (name, type, may) => {
  expect(mayWriteRrset(limited, name, type)).toBe(may)
  expect(mayReadRrset(limited, name, type)).toBe(may)
})

test.each([
  ['*', 'www', true],
  ['*', 'a.b', true],
  ['*', '@', false],
  ['@', '@', true],
  ['@', 'www', false],
  ['*.home', 'a.home', true],
  ['*.home', 'a.b.home', true],
  ['*.home', 'home', false],
  ['a.*.b', 'a.x.b', true],
  ['a.*.b', 'a.x.y.b', true],
  ['a.*.b', 'a.b', false],
])('the pattern %s covers %s: %s', (pattern, name, covers) => {
  const token = { id: '1', name: 'x', records: [{ name: pattern, types: ['A'] }], readsAll: false }

  expect(mayWriteRrset({ ...limited, token }, name, 'A')).toBe(covers)
})

test('a token with a role and records reads everything', () => {
  const caller: Caller = {
    ...limited,
    token: { id: '1', name: 'ci', records: limits, readsAll: true },
  }

  expect([mayReadRrset(caller, 'www', 'A'), mayWriteRrset(caller, 'www', 'A')]).toEqual([
    true,
    false,
  ])
})

test('a viewer writes nothing, an editor without limits everything', () => {
  expect(mayWriteRrset({ username: 'vera', role: 'viewer' }, 'www', 'A')).toBe(false)
  expect(mayWriteRrset({ username: 'edda', role: 'editor' }, 'www', 'A')).toBe(true)
})

test('the refusal says what the token may do', () => {
  const write = () => requireRrsetWrites(limited, [{ name: 'www', type: 'A' }])

  expect(write).toThrow(
    'This token may read and write only _acme-challenge TXT, _acme-challenge.* TXT, home A/AAAA, not www A',
  )
})

test.each(['a.*.*', 'a*', 'a..b', '', 'a.@', 'a b', '.a'])('%j is no name pattern', (name) => {
  expect(RecordLimit.safeParse({ name, types: ['A'] }).success).toBe(false)
})

test.each([
  ['192.0.2.7', ['192.0.2.0/24'], true],
  ['::ffff:192.0.2.7', ['192.0.2.0/24'], true],
  ['192.0.3.7', ['192.0.2.0/24'], false],
  ['192.0.2.7', ['2001:db8::/32', '192.0.2.7'], true],
  ['2001:db8::5', ['2001:db8::/32'], true],
  ['2001:db9::5', ['2001:db8::/32'], false],
  ['192.0.2.7', ['::/0'], false],
  ['nonsense', ['0.0.0.0/0'], false],
])('%s is in %j: %s', (address, networks, isIn) => {
  expect(isInNetworks(address, networks)).toBe(isIn)
})

test.each(['192.0.2.0/33', '::/129', 'example.com', '192.0.2.0/', '192.0.2/24', 'fe80::1%eth0/64'])(
  '%s is no network',
  (text) => {
    expect(Network.safeParse(text).success).toBe(false)
  },
)

test.each([
  [undefined, undefined, undefined],
  [['a.com'], undefined, ['a.com']],
  [undefined, ['a.com'], ['a.com']],
  [['a.com', 'b.com'], ['b.com', 'c.com'], ['b.com']],
  [['*.co.uk'], ['x.co.uk', 'co.uk'], ['x.co.uk']],
  [['*.x.co.uk'], ['*.co.uk'], ['*.x.co.uk']],
  [['a.com'], ['b.com'], []],
])('the domains common to %j and %j are %j', (one, other, common) => {
  expect(intersectDomains(one, other)).toEqual(common)
})
