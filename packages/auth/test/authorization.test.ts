import { expect, test } from 'vitest'
import { allowsDomain } from '../src/index.ts'
import { Domains } from '../src/users/user.ts'

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

test.each(['', '*', '*.', '*.*.uk', 'a.*.uk', '.com', 'com', 'a b.com', 'a/b.com', '1.2.3.4', '-'])(
  'the users file takes no %j for a domain',
  (domain) => {
    expect(Domains.safeParse([domain]).success).toBe(false)
  },
)

test('a list of domains is not empty: nobody is meant to see none', () => {
  expect(Domains.safeParse([]).success).toBe(false)
})
