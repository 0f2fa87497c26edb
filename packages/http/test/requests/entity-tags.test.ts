import { expect, test } from 'vitest'
import { includesTag, isCurrent, isNotModified, readIfMatch, readIfNoneMatch } from '../../src/index.ts'

// RFC 9110, 8.8.3.2: the field, and whether it names "a" by strong and by weak comparison.
test.each([
  ['"a"', true, true],
  ['W/"a"', false, true],
  ['"b", "a"', true, true],
  ['"b",W/"a"', false, true],
  ['\t"b" ,\t"a"\t', true, true],
  [',,"a",', true, true],
  ['*', true, true],
  [' * ', true, true],
  ['"b"', false, false],
  ['w/"a"', false, false],
  ['foo"a"', false, false],
  ['"a"foo', false, false],
  ['foo "a"', false, false],
  ['W/ "a"', false, false],
  ['a', false, false],
  ['"a', false, false],
  ['"b,"a"', true, true],
  ['foo, "a"', true, true],
  ['"x, "a", y"', true, true],
  ['"*"', false, false],
  ['', false, false],
])('%j is compared element by element', (field, strong, weak) => {
  expect(includesTag(readIfMatch(field), '"a"')).toBe(strong)
  expect(includesTag(readIfNoneMatch(field), '"a"')).toBe(weak)
  expect(isCurrent(field, '"a"')).toBe(weak)
})

test('a comma inside a tag does not end it', () => {
  expect(readIfMatch('"a,b", "c"')).toEqual(['"a,b"', '"c"'])
})

test('without If-None-Match no response is current', () => {
  expect(isCurrent(undefined, '"a"')).toBe(false)
})

test('a long list is read in linear time', () => {
  const field = `${'"x", '.repeat(3000)}"a"`
  expect(isCurrent(field, '"a"')).toBe(true)
})

// RFC 9110, 13.2.2: If-Match first.
test.each([
  [undefined, undefined, false],
  [undefined, '"a"', true],
  ['"a"', undefined, false],
  ['*', '"b"', false],
  ['"b", "a"', 'W/"a"', true],
])('with If-Match %j and If-None-Match %j a resource is not modified: %j', (ifMatch, ifNoneMatch, expected) => {
  const headers = { 'if-match': ifMatch, 'if-none-match': ifNoneMatch }

  expect(isNotModified({ headers }, '"a"')).toBe(expected)
})

test.each(['"b"', 'W/"a"', 'a'])('with If-Match %j a resource is refused', (ifMatch) => {
  const headers = { 'if-match': ifMatch, 'if-none-match': '"a"' }

  expect(() => isNotModified({ headers }, '"a"')).toThrow(expect.objectContaining({ code: 'precondition_failed' }))
})
