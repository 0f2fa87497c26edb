import { expect, test } from 'vitest'
import { hrefToPath, nameOf, numberedPath, parentOf, pathFault } from '../../../web/files/paths.js'

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
])('%s is kept beside an existing one as %s', (path, numbered) => {
  expect(numberedPath(path, 2)).toBe(numbered)
})

test.each(['', 'a//b', 'a/../b', './a', 'a\\b', 'tree/a', `${'a/'.repeat(32)}b`, 'a'.repeat(256)])(
  'the path %j is refused before it is sent',
  (path) => {
    expect(pathFault(path)).toBeTypeOf('string')
  },
)

test('an ordinary path is fine, and its address keeps the slashes', () => {
  expect(pathFault('img/Über uns #1.png')).toBeUndefined()
  expect(hrefToPath('img/Über #1.png')).toBe('#/files/img/%C3%9Cber%20%231.png')
})
