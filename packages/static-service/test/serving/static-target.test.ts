import { expect, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { cleanUrlTarget, cspOf, indexOf, notFoundPage, siteOf } from '../../src/serving/static-target.ts'

const secret = 'a secret of these tests that is long enough'
const policies = (env: Record<string, string>) =>
  readConfig({ JWT_SECRET: secret, ADMIN_USERNAME: 'x', ADMIN_PASSWORD: 'y', ...env }).static

test.each([
  ['docs', 'docs'],
  ['docs/a/b.html', 'docs'],
  ['docs/v2/a.html', 'docs/v2'],
  ['docs/v20/a.html', 'docs'],
  ['docs.html', undefined],
  ['other/docs/a', undefined],
])('%s belongs to the innermost site: %s', (path, expected) => {
  const { sites, ...rest } = policies({ STATIC_SITES: 'docs/, docs/v2/' })

  expect(siteOf(path, { sites, ...rest })?.directory).toBe(expected)
})

test('a site has an index, clean URLs and a page for missing paths; other directories have none', () => {
  const rules = policies({ STATIC_SITES: 'docs/' })

  const inside = [indexOf('docs/a', rules), cleanUrlTarget('docs/a', rules), notFoundPage('docs/a/b', rules)]
  const outside = [indexOf('a', rules), cleanUrlTarget('a', rules), notFoundPage('a', rules)]

  expect(inside).toEqual(['index.html', 'docs/a.html', 'docs/404.html'])
  expect(outside).toEqual([undefined, undefined, undefined])
})

test('a file at the path of a site is in the site around it, if any', () => {
  const nested = policies({ STATIC_SITES: '/,docs/', STATIC_SITE_CSP: 'sandbox' })

  expect([cspOf('docs', nested), cleanUrlTarget('docs', nested)]).toEqual(['sandbox', 'docs.html'])
  for (const [sites, path] of [
    ['docs/', 'docs'],
    ['docs/*', 'docs/a'],
  ] as const) {
    const rules = policies({ STATIC_SITES: sites, STATIC_CSP: 'off' })
    expect([cspOf(path, rules), cleanUrlTarget(path, rules)]).toEqual([undefined, undefined])
  }
})

test('the whole store can be a site', () => {
  const rules = policies({ STATIC_SITES: '/', STATIC_INDEX: 'home.htm' })

  expect([indexOf('', rules), notFoundPage('a/b', rules)]).toEqual(['home.htm', '404.html'])
})

test.each([
  [{}, /^sandbox/, /^default-src 'self'/],
  [{ STATIC_CSP: '' }, undefined, /^default-src 'self'/],
  [{ STATIC_CSP: 'off', STATIC_SITE_CSP: 'off' }, undefined, undefined],
  [{ STATIC_SITE_CSP: '' }, /^sandbox/, undefined],
  [{ STATIC_CSP: "default-src 'none'", STATIC_SITE_CSP: 'sandbox' }, /^default-src 'none'$/, /^sandbox$/],
])('each part of the store has its own policy: %j', (env, outside, inside) => {
  const rules = policies({ STATIC_SITES: 'docs/', ...env })

  for (const [path, expected] of [
    ['a.html', outside],
    ['docs/a.html', inside],
  ] as const) {
    if (expected) expect(cspOf(path, rules)).toMatch(expected)
    else expect(cspOf(path, rules)).toBeUndefined()
  }
})

test.each(['docs', 'docs/,app', '../', 'a//', 'tree/'])('STATIC_SITES=%s is refused', (sites) => {
  expect(() => policies({ STATIC_SITES: sites })).toThrow('STATIC_SITES')
})
