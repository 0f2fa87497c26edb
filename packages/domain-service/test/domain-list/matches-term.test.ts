import { expect, test } from 'vitest'
import { matchesTerm } from '../../src/domain-list/domain-list.ts'

test.each([
  ['shop.example.com', 'SHOP', true],
  ['shop.example.com', 'op.ex', true],
  ['shop.example.com', 'shopping', false],
  ['xn--bcker-gra.de', 'bäck', true],
  ['xn--bcker-gra.de', 'XN--B', true],
  ['shop.example.com', undefined, true],
])('%s matches the term %j: %s', (name, term, expected) => {
  expect(matchesTerm({ name }, term)).toBe(expected)
})
