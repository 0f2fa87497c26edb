import { parse as parseDisposition } from 'content-disposition'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { asPrivate, describeFile, representationOf } from '../../src/serving/served-file.ts'
import { type StaticService, startStatic } from '../support/static-start.ts'

let service: StaticService
let indexed: StaticService

beforeAll(async () => {
  service = await startStatic()
  indexed = await startStatic({ STATIC_INDEX: 'index.html' })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await indexed[Symbol.asyncDispose]()
})

const sandbox = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"

describe('what is served cannot harm the site that shows it', () => {
  test.each([
    ['page.html', sandbox],
    ['page.htm', sandbox],
    ['page.xhtml', sandbox],
    ['drawing.svg', sandbox],
    ['drawing.SVG', sandbox],
    ['feed.xml', sandbox],
    ['feed.rss', sandbox],
    ['feed.atom', sandbox],
    ['sheet.xsl', sandbox],
    ['sheet.xslt', sandbox],
    ['formula.mathml', sandbox],
    ['logo.png', undefined],
    ['script.js', undefined],
    ['notes.txt', undefined],
    ['paper.pdf', undefined],
    ['unknown.zzz', undefined],
  ])('%s', async (path, policy) => {
    await service.put(path, 'x')

    const { headers } = await service.ask(`/static/${path}`)

    expect(headers['content-security-policy']).toBe(policy)
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'cross-origin',
      'access-control-allow-origin': '*',
    })
    expect(headers['set-cookie']).toBeUndefined()
  })

  test('a part, a 304 and a HEAD have the same policy', async () => {
    const { digest } = await service.put('page.html', '<p>hello')

    const answers = await Promise.all([
      service.ask('/static/page.html', { Range: 'bytes=0-2' }),
      service.ask('/static/page.html', { 'If-None-Match': `"${digest}"` }),
      service.ask('/static/page.html', {}, 'HEAD'),
    ])

    expect(answers.map(({ status }) => status)).toEqual([206, 304, 200])
    expect(answers.map(({ headers }) => headers['content-security-policy'])).toEqual(Array(3).fill(sandbox))
  })

  test('who hosts pages sets another policy, or none', async () => {
    await using strict = await startStatic({ STATIC_CSP: "default-src 'self'" })
    await using open = await startStatic({ STATIC_CSP: 'off' })
    await strict.put('page.html', 'x')
    await open.put('page.html', 'x')

    const set = await strict.ask('/static/page.html')
    const none = await open.ask('/static/page.html')

    expect(set.headers['content-security-policy']).toBe("default-src 'self'")
    expect(none.headers['content-security-policy']).toBeUndefined()
  })

  test('a page of any origin may read an answer, also a failure, though the API is for some', async () => {
    await using some = await startStatic({ CORS_ORIGIN: 'https://example.com' })
    await some.put('a.png', 'x')
    const origin = { Origin: 'https://example.com' }

    const found = await some.ask('/static/a.png', origin)
    const absent = await some.ask('/static/b.png', origin)

    expect([found.status, absent.status]).toEqual([200, 404])
    expect([found, absent].map(({ headers }) => headers['access-control-allow-origin'])).toEqual(['*', '*'])
    expect(found.headers.vary).toBeUndefined()
    expect(found.headers['access-control-expose-headers']).toContain('content-range')
  })
})

test('what is prepared for everybody and for one reader stays apart', () => {
  const row = { path: 'a.txt', name: 'a.txt', digest: 'a'.repeat(64), size: 1 }
  const dated = { ...row, contentType: 'text/plain', updatedAt: '2027-01-15T09:30:00.000Z' }
  const rules = { sites: [], cacheControl: 'public' }
  const file = describeFile(dated as never, rules as never) // Only what headers need.
  const cachingOf = (each: typeof file) => representationOf(each, 'identity', true).common['cache-control']

  expect(cachingOf(file)).toBe('public')
  expect(cachingOf(asPrivate(file, { 'cache-control': 'private' }))).toBe('private')
  expect(cachingOf(file)).toBe('public')
})

describe('how long an answer may be kept', () => {
  const forEver = 'public, max-age=31536000, immutable'
  const checked = 'public, max-age=0, must-revalidate'

  test.each([
    ['the first 8 digits', (digest: string) => `?v=${digest.slice(0, 8)}`, forEver],
    ['the whole digest', (digest: string) => `?v=${digest}`, forEver],
    ['in upper case', (digest: string) => `?v=${digest.slice(0, 10).toUpperCase()}`, forEver],
    ['beside other parameters', (digest: string) => `?a=b&v=${digest.slice(0, 12)}&c`, forEver],
    ['too few digits', (digest: string) => `?v=${digest.slice(0, 7)}`, checked],
    ['digits of another content', () => '?v=0000000000', checked],
    ['digits from its middle', (digest: string) => `?v=${digest.slice(8, 20)}`, checked],
    ['more than the digest', (digest: string) => `?v=${digest}0`, checked],
    ['no digits', () => '?v=', checked],
    ['said twice', (digest: string) => `?v=${digest}&v=${digest}`, checked],
    ['no version', () => '', checked],
  ])('%s', async (_what, query, expected) => {
    const { digest } = await service.put('a.css', 'x')

    const answer = await service.ask(`/static/a.css${query(digest)}`)
    const known = { 'If-None-Match': `"${digest}"` }
    const unchanged = await service.ask(`/static/a.css${query(digest)}`, known)

    expect([answer.status, answer.headers['cache-control']]).toEqual([200, expected])
    expect([unchanged.status, unchanged.headers['cache-control']]).toEqual([304, expected])
  })

  test('is a setting', async () => {
    await using some = await startStatic({ STATIC_CACHE_CONTROL: 'public, max-age=60' })
    await some.put('a.css', 'x')

    const answer = await some.ask('/static/a.css')

    expect(answer.headers['cache-control']).toBe('public, max-age=60')
  })

  test('a failure is not kept, whatever version was asked for', async () => {
    const { digest } = await service.put('a.css', 'x')

    const answer = await service.ask(`/static/a.css?v=${digest}`, { 'If-Match': '"0"' })

    expect([answer.status, answer.headers['cache-control']]).toEqual([412, 'no-store'])
  })
})

describe('a download has the name of its file', () => {
  test.each([
    'report.pdf',
    'two words.txt',
    'quo"ted.txt',
    'semi;colon, comma.txt',
    '100%.txt',
    '%41.txt',
    'naïve.txt',
    'résumé – final.pdf',
    '日本語.txt',
    'файл.txt',
    '🙂.png',
    "it's (1)*.txt",
  ])('%s', async (name) => {
    await service.put(`deep/${name}`, 'x')

    const answer = await service.ask(`/static/deep/${encodeURIComponent(name)}?download`)

    const field = answer.headers['content-disposition'] ?? ''
    expect(field).toMatch(/^attachment; filename[*]?=[\x20-\x7e]+$/)
    expect(parseDisposition(field)).toMatchObject({
      type: 'attachment',
      parameters: { filename: name },
    })
  })

  test('and is told to be one only when that is asked for', async () => {
    await service.put('a.txt', 'x')

    const shown = await service.ask('/static/a.txt')
    const saved = await service.ask('/static/a.txt?download=1')

    expect(shown.headers['content-disposition']).toBeUndefined()
    expect(saved.headers['content-disposition']).toBe('attachment; filename=a.txt')
  })
})

describe('a directory', () => {
  test.each(['docs', 'docs/', 'docs/deep', 'docs/deep/', ''])('%s is a 404', async (path) => {
    await service.put('docs/index.html', 'home')
    await service.put('docs/deep/a.txt', 'x')

    const answer = await service.ask(`/static/${path}`)

    expect(answer.status).toBe(404)
    expect(JSON.parse(answer.body.toString())).toMatchObject({ code: 'file_not_found' })
  })

  test.each([
    ['', 200, 'root'],
    ['docs/', 200, 'home'],
    ['docs/index.html', 200, 'home'],
    ['docs/deep/', 404, undefined],
    ['docs/deep', 404, undefined],
    ['docs/deep/a.txt/', 404, undefined],
    ['none/', 404, undefined],
    ['a//', 400, undefined],
    ['../', 400, undefined],
    ['docs/%2e%2e/', 400, undefined],
  ])('%s with STATIC_INDEX is a %i', async (path, status, content) => {
    await indexed.put('index.html', 'root')
    await indexed.put('docs/index.html', 'home')
    await indexed.put('docs/deep/a.txt', 'x')

    const answer = await indexed.ask(`/static/${path}`)

    expect(answer.status).toBe(status)
    expect(answer.body.toString()).toContain(content ?? 'request_id')
  })

  test.each([
    ['/static/docs', './docs/'],
    ['/static/docs?a=b?c', './docs/?a=b?c'],
    ['/static/two%20words', './two%20words/'],
  ])('%s with STATIC_INDEX leads to %s, from where links in it count', async (target, location) => {
    await indexed.put('docs/index.html', 'x')
    await indexed.put('two words/index.html', 'x')

    const answer = await indexed.ask(target)

    expect([answer.status, answer.headers.location]).toEqual([302, location])
  })
})

describe('HEAD', () => {
  test.each(['/static/a.txt', '/static/empty.txt', '/static/absent.txt', '/static/%00'])(
    'of %s has the headers of GET, and no body',
    async (target) => {
      await service.put('a.txt', 'hello')
      await service.put('empty.txt', '')
      const id = { 'X-Request-Id': 'one' }
      const get = await service.ask(target, id)

      const head = await service.ask(target, id, 'HEAD')

      expect(head.status).toBe(get.status)
      expect(head.body).toHaveLength(0)
      expect(head.headers).toEqual({ ...get.headers, date: expect.any(String) })
    },
  )
})

describe('two contents in one second', () => {
  const get = (service: StaticService, headers: Record<string, string> = {}) => service.ask('/static/a.txt', headers)

  test('have no date, and no condition on dates holds, until the second is over', async () => {
    let now = 0
    await using service = await startStatic({}, { now: () => now })
    const one = await service.put('a.txt', 'one')
    now = Date.parse(one.updatedAt)
    const first = await get(service)
    const { updatedAt } = await service.put('a.txt', 'two')
    now = Date.parse(updatedAt)
    const date = new Date(updatedAt).toUTCString()

    const during = [
      await get(service),
      await get(service, { 'If-Modified-Since': date }),
      await get(service, { Range: 'bytes=0-0', 'If-Range': date }),
      await get(service, { 'If-Unmodified-Since': 'Sun, 06 Nov 1994 08:49:37 GMT' }),
    ]

    expect(first.headers['last-modified']).toBeUndefined()
    expect(during.map(({ status, body }) => [status, body.toString()])).toEqual(Array(4).fill([200, 'two']))
    expect(during.filter(({ headers }) => headers['last-modified'])).toEqual([])
  })

  test('once it is over, the last one has the date', async () => {
    let now = 0
    await using service = await startStatic({}, { now: () => now })
    const { updatedAt } = await service.put('a.txt', 'two')
    now = Math.floor(Date.parse(updatedAt) / 1000) * 1000 + 1000
    const date = new Date(updatedAt).toUTCString()

    const after = await get(service)
    const unchanged = await get(service, { 'If-Modified-Since': date })
    const part = await get(service, { Range: 'bytes=0-0', 'If-Range': date })

    expect(after.headers['last-modified']).toBe(date)
    expect([unchanged.status, part.status, part.body.toString()]).toEqual([304, 206, 't'])
  })

  test('tags work all the time', async () => {
    await using service = await startStatic({}, { now: () => 0 })
    const { digest } = await service.put('a.txt', 'one')

    const known = await get(service, { 'If-None-Match': `"${digest}"` })
    const part = await get(service, { Range: 'bytes=0-0', 'If-Range': `"${digest}"` })

    expect([known.status, part.status]).toEqual([304, 206])
  })
})
