import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fold } from '../../../../src/catalog/fold.ts'
import { matchOf, trigramsOf } from '../../../../src/catalog/sqlite/search/trigrams.ts'

const rare = () => 0.01

test.each([
  ['Straße', 'STRASSE'],
  ['ΣΊΣΥΦΟΣ', 'σίσυφος'],
  ['e\u0301', '\u00c9'],
])('%s and %s are folded alike', (one, other) => {
  expect(fold(one)).toBe(fold(other))
})

test('every trigram of a substring is a trigram of the text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (head, tail) => {
      const part = 'needle-ü'
      const inner = trigramsOf(fold(part)).slice(0, -2) // The last two are cut short by the end of the text.
      const whole = new Set(trigramsOf(fold(part) + fold(tail)))
      expect(trigramsOf(fold(head) + fold(part)).length).toBeGreaterThan(0)
      return inner.every((trigram) => whole.has(trigram))
    }),
  )
})

test('a term of up to three bytes is answered by the index alone', () => {
  expect(matchOf({ folded: 'AB', shareOf: rare }).isExact).toBe(true)
  expect(matchOf({ folded: 'ABC', shareOf: rare }).isExact).toBe(true)
  expect(matchOf({ folded: 'ABCD', shareOf: rare }).isExact).toBe(false)
})

test('the rarest trigram leads, and common ones are omitted', () => {
  const [first = '', second = ''] = trigramsOf('ABCD')
  const shareOf = (trigram: string) => (trigram === second ? 0.001 : 0.9)

  const { match, share } = matchOf({ folded: 'ABCD', category: 'image', shareOf })

  expect(match).toBe(`"${second}" AND image`)
  expect(match).not.toContain(first)
  expect(share).toBe(0.001)
})
