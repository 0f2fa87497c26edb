import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  encodePath,
  hasEncodedSlash,
  readDirectory,
  readPath,
  readUrlPath,
  readWrittenPath,
  urlOf,
} from '../../src/files/file-path.ts'

const longest = Array(5).fill('x'.repeat(204)).join('/')

const codeOf = (read: () => unknown) => {
  try {
    return read()
  } catch (error) {
    return (error as { code?: string }).code
  }
}

test.each([
  ['a/b.txt', 'a/b.txt'],
  ['e\u0301.txt', '\u00e9.txt'],
  ['%252e', '%252e'],
  ['A', 'A'],
  ['x'.repeat(255), 'x'.repeat(255)],
  ['', 'invalid_path'],
  ['/a', 'invalid_path'],
  ['a/', 'invalid_path'],
  ['a//b', 'invalid_path'],
  ['a/./b', 'invalid_path'],
  ['a/../b', 'invalid_path'],
  ['a\\b', 'invalid_path'],
  ...Array.from('\0\u001f\u007f\u0085\u009f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069', (character) => [
    `a${character}b`,
    'invalid_path',
  ]),
  [longest, longest],
  [`${longest}x`, 'invalid_path'],
  ['a\ud800b', 'invalid_path'],
  ['x'.repeat(256), 'invalid_path'],
  [Array(32).fill('a').join('/'), Array(32).fill('a').join('/')],
  [Array(33).fill('a').join('/'), 'invalid_path'],
  ['tree/a', 'reserved_path'],
  ['upload', 'reserved_path'],
  ['categories', 'reserved_path'],
  ['Upload', 'Upload'],
])('the path %j is %j', (text, expected) => {
  expect(codeOf(() => readPath(text))).toBe(expected)
})

test.each([
  ['', 'Invalid path: a segment is empty'],
  ['a/', 'Invalid path "a/": a segment is empty'],
  ['a//b', 'Invalid path "a//b": a segment is empty'],
  ['"/..', String.raw`Invalid path "\"/..": a segment is . or ..`],
  ['a\u202e\u0085\ud800', String.raw`Invalid path "a\u202e\u0085\ud800": it is not valid Unicode`],
  [`${'x'.repeat(300)}`, `Invalid path "${'x'.repeat(200)}…": a segment has more than 255 bytes`],
])('the refusal of the path %j says: %s', (text, detail) => {
  expect(() => readPath(text)).toThrow(detail)
})

test('the refusal of a path with %2F says how to send it', () => {
  expect(() => readUrlPath('/api/files/a%2Fb', 'a/b')).toThrow('No file at a/b: send its slashes as /, not as %2F')
})

describe('slashes at the ends', () => {
  test('a written path may start with one', () => {
    expect(readWrittenPath('/a/b')).toBe('a/b')
    expect(codeOf(() => readWrittenPath('//a'))).toBe('invalid_path')
  })

  test.each([
    ['', ''],
    ['/', ''],
    ['a/b/', 'a/b'],
    ['/a', 'a'],
    ['a//', 'invalid_path'],
  ])('the directory %j is %j', (text, expected) => {
    expect(codeOf(() => readDirectory(text))).toBe(expected)
  })
})

test('an encoded slash in the path of a URL names no file, in its query it does not matter', () => {
  expect(hasEncodedSlash('/static/a%2Fb')).toBe(true)
  expect(hasEncodedSlash('/static/a?x=%2f')).toBe(false)
  expect(codeOf(() => readUrlPath('/static/a%2Fb', 'a/b'))).toBe('file_not_found')
})

test('a URL encodes each segment', () => {
  const character = fc.constantFrom(...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)), 'ü', '😀')
  fc.assert(
    fc.property(fc.string({ unit: character }), (path) => {
      expect(encodePath(path)).toBe(path.split('/').map(encodeURIComponent).join('/'))
    }),
  )
  expect(encodePath('a b/ü?#.txt')).toBe('a%20b/%C3%BC%3F%23.txt')
  expect(urlOf('a b', 'https://example.com')).toBe('https://example.com/static/a%20b')
})
