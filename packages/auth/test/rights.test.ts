import { expect, test } from 'vitest'
import { allowsDomain, allowsPath, mayReadRrset, mayWriteRrset, requireRrsetWrites } from '../src/index.ts'
import { Domains } from '../src/limits.ts'
import type { Rights } from '../src/rights.ts'

const vera = { domains: Domains.parse(['Example.com', '*.co.uk', 'm\u00fcnchen.de']) }

test.each([
  ['example.com', true],
  ['EXAMPLE.com', true],
  ['www.example.com', false],
  ['badexample.com', false],
  ['example.com.evil.net', false],
  ['a.co.uk', true],
  ['a.b.co.uk', true],
  ['co.uk', false],
  ['aco.uk', false],
  ['.co.uk', false],
  ['*.co.uk', false],
  ['m\u00fcnchen.de', true],
  ['M\u00dcNCHEN.de', true],
  ['xn--mnchen-3ya.de', true],
  ['', false],
  ['example.com/', false],
  ['example.com:80', false],
  ['user@example.com', false],
])('who is limited to some domains may see %j: %s', (domain, isAllowed) => {
  expect(allowsDomain(vera, domain)).toBe(isAllowed)
})

test('who is not limited may see every domain', () => {
  expect(allowsDomain({}, 'example.com')).toBe(true)
})

test.each([
  ['docs/a.txt', true],
  ['docs/', true],
  ['docs', false],
  ['docsx/a.txt', false],
  ['Docs/a.txt', false],
  ['a.txt', false],
  ['', false],
])('who is limited to the folder docs/ may see %j: %s', (path, isAllowed) => {
  expect(allowsPath({ folders: ['docs/'] }, path)).toBe(isAllowed)
  expect(allowsPath({ folders: [] }, path)).toBe(false)
  expect(allowsPath({}, path)).toBe(true)
})

const limits = [
  { name: '_acme-challenge', types: ['TXT'] },
  { name: '_acme-challenge.*', types: ['TXT'] },
  { name: 'home', types: ['A', 'AAAA'] },
]
const limited: Rights = { role: 'editor', records: limits }

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
  const records = [{ name: pattern, types: ['A'] }]

  expect(mayWriteRrset({ role: 'editor', records }, name, 'A')).toBe(covers)
})

test('a token with a role and records reads everything', () => {
  const rights: Rights = { ...limited, readsAll: true }

  expect([mayReadRrset(rights, 'www', 'A'), mayWriteRrset(rights, 'www', 'A')]).toEqual([true, false])
})

test('a viewer writes nothing, an editor without limits everything', () => {
  expect(mayWriteRrset({ role: 'viewer' }, 'www', 'A')).toBe(false)
  expect(mayWriteRrset({ role: 'editor' }, 'www', 'A')).toBe(true)
})

test('the refusal of a write without the role editor names the role', () => {
  expect(() => requireRrsetWrites({ role: 'viewer' }, [{ name: 'www', type: 'A' }])).toThrow(
    'This needs the role editor, which your user or API token lacks',
  )
})

test('the refusal says what the token may do', () => {
  const write = () => requireRrsetWrites(limited, [{ name: 'www', type: 'A' }])

  expect(write).toThrow(
    'This token may read and write only _acme-challenge TXT, _acme-challenge.* TXT, home A/AAAA, not www A',
  )
})
