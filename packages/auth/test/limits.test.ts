import { expect, test } from 'vitest'
import { Domains, Folders, intersect, isInNetworks, Network, RecordLimit, wantedLimits } from '../src/limits.ts'

test.each(['', '*', '*.', '*.*.uk', 'a.*.uk', '.com', 'com', 'a b.com', 'a/b.com', '1.2.3.4', '-'])(
  'the users file takes no %j for a domain',
  (domain) => {
    expect(Domains.safeParse([domain]).success).toBe(false)
  },
)

test.each([
  ['*.Uk', '*.uk'],
  ['*.co.uk', '*.co.uk'],
  ['*.\u0440\u0444', '*.xn--p1ai'],
])('%j stands for all domains below a name of any length', (given, kept) => {
  expect(Domains.parse([given])).toEqual([kept])
})

test('who names too many domains is told how many there may be', () => {
  const many = Array.from({ length: 101 }, (_, at) => `d${at}.com`)

  expect(wantedLimits.domains.safeParse(many).error?.issues[0]?.message).toBe('must name at most 100 domains')
  expect(wantedLimits.domains.safeParse(many.slice(1)).success).toBe(true)
})

test('a list of domains is not empty: nobody is meant to see none', () => {
  expect(Domains.safeParse([]).success).toBe(false)
})

test.each(['', '/', '//', 'a//b/', '../', 'a/./b/', 'a\\b/', 'a\u0000/', `${'a'.repeat(1024)}/`])(
  'the users file takes no %j for a folder',
  (folder) => {
    expect(Folders.safeParse([folder]).success).toBe(false)
  },
)

test('folders are normalised, and one inside another adds nothing', () => {
  const folders = ['docs/sub/', '/docs', 'a\u0308/', 'docs/', 'docsx/']

  expect(Folders.parse(folders)).toEqual(['docs/', '\u00e4/', 'docsx/'])
})

test('there are 1 to 10 folders', () => {
  const eleven = Array.from({ length: 11 }, (_, at) => `f${at}/`)

  expect(Folders.safeParse([]).success).toBe(false)
  expect(Folders.safeParse(eleven).success).toBe(false)
  expect(Folders.safeParse(eleven.slice(1)).success).toBe(true)
})

test.each([
  [['docs/'], undefined, ['docs/']],
  [undefined, ['docs/'], ['docs/']],
  [['docs/', 'site/'], ['docs/a/', 'x/'], ['docs/a/']],
  [['docs/a/'], ['docs/', 'docs/a/b/'], ['docs/a/', 'docs/a/b/']],
  [['docs/'], ['docsx/'], []],
])('of the folders %j and %j both allow %j', (one, other, common) => {
  expect(intersect('folders', one, other)).toEqual(common)
})

test.each(['a.*.*', 'a*', 'a..b', '', 'a.@', 'a b', '.a', 'b\u00fc/x', 'a\u200db'])('%j is no name pattern', (name) => {
  expect(RecordLimit.safeParse({ name, types: ['A'] }).success).toBe(false)
})

test.each([
  ['B\u00fccher', 'xn--bcher-kva'],
  ['_acme-challenge.*.b\u00fccher', '_acme-challenge.*.xn--bcher-kva'],
  ['\uff11', '1'],
  ['@', '@'],
])('the name pattern %j is kept as %j, in the A-labels of zones', (given, kept) => {
  expect(RecordLimit.parse({ name: given, types: ['A'] }).name).toBe(kept)
})

test.each(['SRV', 'SOA', 'X', ''])('no token is limited to the type %j, which nobody can write', (type) => {
  expect(RecordLimit.safeParse({ name: 'a', types: [type] }).success).toBe(false)
})

test.each([
  ['192.0.2.7', ['192.0.2.0/24'], true],
  ['::ffff:192.0.2.7', ['192.0.2.0/24'], true],
  ['192.0.3.7', ['192.0.2.0/24'], false],
  ['192.0.2.7', ['2001:db8::/32', '192.0.2.7'], true],
  ['2001:db8::5', ['2001:db8::/32'], true],
  ['2001:db9::5', ['2001:db8::/32'], false],
  ['fe80::1%eth0', ['fe80::/10'], true],
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
  expect(intersect('domains', one, other)).toEqual(common)
})
