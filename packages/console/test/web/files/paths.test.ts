import { expect, test } from 'vitest'
import { nameOf, nextName, parentOf } from '../../../web/files/paths.js'

test.each([
  ['a/b/c.txt', 'a/b/', 'c.txt'],
  ['a/b/', 'a/', 'b'],
  ['c.txt', '', 'c.txt'],
])('%s lies in %j and is called %s', (path, parent, name) => {
  expect([parentOf(path), nameOf(path)]).toEqual([parent, name])
})

test.each([
  ['photo.jpg', 'photo (2).jpg'],
  ['a.b/README', 'a.b/README (2)'],
  ['.env', '.env (2)'],
  ['photo (9).tar.gz', 'photo (9).tar (2).gz'],
  ['docs (9)/', 'docs (10)/'],
])('%s is kept beside an existing one as %s', (path, numbered) => {
  expect(nextName(path)).toBe(numbered)
})
