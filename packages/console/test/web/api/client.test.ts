import { expect, test } from 'vitest'
import { encodePath } from '../../../web/api/client.js'

test.each([
  ['docs/a b?#%.txt', 'docs/a%20b%3F%23%25.txt'],
  ['a..b/.c/...', 'a..b/.c/...'],
  ['docs/', 'docs/'],
  ['', ''],
])('%s is asked for as %s', (path, encoded) => {
  expect(encodePath(path)).toBe(encoded)
})

test.each(['..', '../users/alice', 'docs/../../users', 'docs/.', './docs'])(
  '%s, which a browser would resolve, is asked for nowhere',
  (path) => {
    expect(() => encodePath(path)).toThrow(`no path: ${path}`)
  },
)
