import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runsOf } from '../../../src/catalog/listing/search-index.ts'
import { fold } from '../../../src/files/file-path.ts'

test.each([
  ['Straße', 'STRASSE'],
  ['ΣΊΣΥΦΟΣ', 'σίσυφος'],
  ['e\u0301', '\u00c9'],
])('%s and %s are folded alike', (one, other) => {
  expect(fold(one)).toBe(fold(other))
})

test('every run of a part is a run of the text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (head, tail) => {
      const part = fold('needle-ü')
      const whole = new Set(runsOf(fold(head) + part + fold(tail)))
      return runsOf(part).every((run) => whole.has(run))
    }),
  )
})

test('a text of one or two bytes is one run', () => {
  expect(['A', 'AB', 'ABC', 'ABCD'].map((text) => runsOf(text).length)).toEqual([1, 1, 1, 2])
})
