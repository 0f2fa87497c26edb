import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, type Service, start } from '../support/start.ts'
import { digestOf } from '../support/stored-contents.ts'

const large = Buffer.alloc(400_000, 'large ')
const text = 'p { color: teal }\n'.repeat(200)

const stored: Record<string, string | Buffer> = {
  'drafts/a.css': text,
  'drafts/large.bin': large,
  'drafts/photos/b & <c>.txt': 'b',
  'drafts/photos/sub/d.txt': 'd',
  'open/e.txt': 'eee',
}

let service: Service

beforeAll(async () => {
  service = await start({
    env: process.env.TEST_STORAGE === 'shared' ? {} : { STATIC_OFFLOAD: 'nginx', TRUST_PROXY: 'loopback' },
  })
  for (const [path, content] of Object.entries(stored)) await service.put(path, content)
  await service.call('PUT', '/api/access/drafts', { json: { public: false } })
})

afterAll(() => service[Symbol.asyncDispose]())

const create = async (json: unknown, user = 'editor') => {
  const { status, headers, body } = await service.call('POST', '/api/links', { json, user })
  expect([status, headers['cache-control']], JSON.stringify(body)).toEqual([201, 'no-store'])
  return { id: String(body.id), url: String(body.url), body }
}

const get = (url: string, headers: Record<string, string> = {}, method = 'GET') =>
  service.call(method, url, { user: 'nobody', headers })

const token = '[\\w-]{22}'

test('a link to a private file is made, listed, opened and deleted', async () => {
  await service.put('drafts/first.css', text) // No other test makes links to it.
  const { id, url, body } = await create({ path: '/drafts/first.css', name: 'For you' })

  expect(url).toMatch(new RegExp(`^/l/${token}$`))
  expect(body).toMatchObject({ path: 'drafts/first.css', name: 'For you', by: 'editor' })
  expect(body.downloads_left).toBeNull()
  expect(Date.parse(String(body.expires_at)) - Date.parse(String(body.created_at))).toBe(604_800_000)
  expect((await get(url)).bytes.toString()).toBe(text)

  const listed = async (user: string, path = 'drafts/first.css') => {
    const answer = await service.call('GET', `/api/links?path=${path}`, { user })
    return answer.body.links
  }
  const { url: _, ...record } = body
  expect(await listed('editor')).toEqual([record])
  expect(await listed('admin')).toEqual([record])
  expect(await listed('viewer')).toEqual([])
  expect(await listed('editor', 'other')).toEqual([])
  const remove = (user: string) => service.call('DELETE', `/api/links/${id}`, { user })
  expect((await remove('viewer')).body.code).toBe('link_not_found')
  expect((await remove('editor')).status).toBe(204)
  expect((await get(url)).status).toBe(404)
})

const all = {
  'cache-control': 'private, no-store',
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex',
  'content-security-policy': expect.stringMatching(/^sandbox\b/),
}

test.each<[string, number, Record<string, string>, string?]>([
  ['', 200, {}],
  ['', 200, {}, 'HEAD'],
  ['?v=DIGEST', 200, {}],
  ['?download', 200, {}],
  ['', 206, { range: 'bytes=5-9' }],
  ['', 206, { range: 'bytes=0-1,5-9' }],
  ['', 416, { range: 'bytes=9999999-' }],
  ['', 412, { 'if-match': '"x"' }],
  ['', 200, { 'accept-encoding': 'br' }],
  ['', 200, { 'x-static-offload': 'nginx', 'x-forwarded-for': '192.0.2.1' }],
  ['', 200, { authorization: 'Bearer wrong' }],
  ['', 405, {}, 'POST'],
])('a link with %j: %i %j %s', async (query, status, headers, method) => {
  for (const path of ['drafts/a.css', 'drafts/large.bin']) {
    const { url } = await create({ path })

    const digest = digestOf(stored[path] ?? '')
    const answer = await get(url + query.replace('DIGEST', digest), headers, method)

    expect(answer.status).toBe(status)
    expect(answer.headers).toMatchObject(all)
    expect(answer.headers['x-accel-redirect']).toBeUndefined()
    expect(answer.bytes.toString('latin1').includes('drafts')).toBe(false)
  }
})

test('a file that has not changed is not sent again', async () => {
  const { url } = await create({ path: 'drafts/large.bin', downloads: 1 })
  const { etag } = (await get(url, {}, 'HEAD')).headers

  const answer = await get(url, { 'if-none-match': String(etag) })

  expect(answer.status).toBe(304)
  expect(answer.headers).toMatchObject(all)
  expect((await get(url)).status).toBe(200)
})

test('a link to a folder lists its files, and leads to them', async () => {
  const { url } = await create({ path: 'drafts/photos/', name: '<b>Photos</b>' })
  const pages = [await get(url), await get(`${url}/`), await get(`${url}/`, {}, 'HEAD')]

  for (const page of pages) {
    expect(page.status).toBe(200)
    expect(page.headers).toMatchObject({ ...all, 'content-type': 'text/html; charset=utf-8' })
    expect(page.headers['content-security-policy']).toMatch(/^sandbox allow-downloads; default-src 'none';/)
  }
  const html = String(pages[0]?.bytes)
  expect(html).toContain('b &#38; &#60;c&#62;.txt')
  expect(html).toContain('sub/d.txt')
  expect(html).toContain('<title>&#60;b&#62;Photos&#60;/b&#62;</title>')
  expect(html).not.toContain('a.css')
  for (const page of pages.slice(0, 2)) {
    const at = page === pages[0] ? url : `${url}/`
    for (const [, href = ''] of String(page.bytes).matchAll(/href="([^"]+)"/g)) {
      const file = await get(new URL(href, `http://x${at}`).pathname)
      expect(file.status).toBe(200)
      expect(file.headers).toMatchObject(all)
    }
  }
})

function sameAnswer({ status, headers, bytes }: Answer) {
  const { date: _, 'x-request-id': id, ...rest } = headers
  return { status, rest, body: bytes.toString().replaceAll(String(id), 'ID') }
}

test('whatever is wrong with a link, the answer is the same 404', async () => {
  const file = await create({ path: 'drafts/a.css' })
  const folder = await create({ path: 'drafts/photos/' })
  const used = await create({ path: 'open/e.txt', downloads: 1 })
  const revoked = await create({ path: 'open/e.txt' })
  await service.put('open/gone.txt')
  const gone = await create({ path: 'open/gone.txt' })
  await get(used.url)
  await service.call('DELETE', `/api/links/${revoked.id}`)
  await service.call('DELETE', '/api/files/open/gone.txt')
  const unknown = await get('/l/AAAAAAAAAAAAAAAAAAAAAA')

  expect(unknown.body.code).toBe('link_not_found')
  expect(unknown.headers).toMatchObject(all)
  for (const url of [
    ...['/l/', '/l/x', '/l/x/y', '/l/%00', `${file.url}x`, `${file.url}/`, `${file.url}/a.css`],
    ...[used.url, revoked.url, gone.url, `${folder.url}/none`, `${folder.url}/sub/`],
    ...[`${folder.url}/..%2Fa.css`, `${folder.url}/../a.css`, `${folder.url}/%2E%2E/a.css`],
    ...[`${folder.url}//sub/d.txt`, `${folder.url}/%zz`, `${folder.url}/sub%2Fd.txt`],
  ]) {
    expect(sameAnswer(await get(url)), url).toEqual(sameAnswer(unknown))
    expect((await get(url, {}, 'HEAD')).status, url).toBe(404)
    expect((await get(url, { range: 'bytes=1-2' })).status, url).toBe(url === used.url ? 206 : 404)
  }
})

describe('downloads', () => {
  const left = async (id: string) => {
    const { body } = await service.call('GET', '/api/links?page_size=200')
    const links = body.links as { id: string; downloads_left: number }[]
    return links.find((link) => link.id === id)?.downloads_left
  }

  test('GETs from the first byte count, other ranges, HEAD and refusals do not', async () => {
    const { id, url } = await create({ path: 'drafts/large.bin', downloads: 10 })
    const counts: unknown[] = []
    for (const [headers, method] of [
      [{}, 'HEAD'],
      [{ 'if-match': '"x"' }, 'GET'],
      [{ range: 'bytes=900000-' }, 'GET'],
      [{}, 'GET'],
      [{ range: 'bytes=0-' }, 'GET'],
      [{ range: 'bytes=7-9,0-2' }, 'GET'],
      [{ range: 'bytes=100-' }, 'GET'],
      [{ range: 'bytes=-5' }, 'GET'],
      [{ range: 'nonsense' }, 'GET'],
    ] as [Record<string, string>, string][]) {
      await get(url, headers, method)
      counts.push(await left(id))
    }

    expect(counts).toEqual([10, 10, 10, 9, 8, 7, 7, 7, 6])
  })

  test('a later range counts where no download is under way, for each file of a folder', async () => {
    const { id, url } = await create({ path: 'drafts/', downloads: 2 })
    const later = { range: 'bytes=1-' }

    await get(`${url}/`)
    expect((await get(`${url}/a.css`, later)).status).toBe(206)
    expect(await left(id)).toBe(1)
    expect((await get(`${url}/a.css`, later)).status).toBe(206)
    expect(await left(id)).toBe(1)
    expect((await get(`${url}/large.bin`, later)).status).toBe(206)
    expect(await left(id)).toBe(0)
    expect((await get(`${url}/photos/sub/d.txt`, later)).status).toBe(404)
    expect((await get(`${url}/a.css`, later)).status).toBe(206)
    expect((await get(`${url}/a.css`, later, 'HEAD')).status).toBe(404)
    expect((await get(`${url}/a.css`, { 'if-none-match': '*' })).status).toBe(404)
    expect((await get(`${url}/a.css`)).status).toBe(404)
    expect((await get(`${url}/`)).status).toBe(404)
  })

  test('two at once never share the last one', async () => {
    const { url } = await create({ path: 'drafts/large.bin', downloads: 3 })

    const answers = await Promise.all(Array.from({ length: 12 }, () => get(url)))

    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3)
    expect(answers.filter(({ status }) => status === 404)).toHaveLength(9)
  })
})

test('an editor makes links to what it may read, and they die with that right', async () => {
  const json = { name: 'sharer', role: 'editor', folders: ['open/'] }
  const { body: made } = await service.call('POST', '/api/tokens', { json })
  const headers = { authorization: `Bearer ${made.token}` }
  const share = (path: string) => service.call('POST', '/api/links', { json: { path }, headers })
  const { body: link } = await share('open/e.txt')
  const { body: folder } = await share('open/')

  expect((await share('drafts/a.css')).body.code).toBe('file_not_found')
  expect((await share('drafts/')).body.code).toBe('directory_not_found')
  expect((await share('open/none')).body.code).toBe('file_not_found')
  expect((await service.call('POST', '/api/links', { json: { path: 'open/e.txt' }, user: 'viewer' })).status).toBe(403)
  expect([(await get(String(link.url))).status, (await get(String(folder.url))).status]).toEqual([200, 200])
  await service.call('DELETE', `/api/tokens/${made.id}`)
  expect([(await get(String(link.url))).status, (await get(String(folder.url))).status]).toEqual([404, 404])
})

test('the links of a removed user open no more, and are listed no more', async () => {
  const password = 'words of a leaving editor'
  await service.call('POST', '/api/users', { json: { username: 'lars', role: 'editor', password } })
  const json = { username: 'lars', password }
  const { body } = await service.call('POST', '/api/auth/login', { json, user: 'nobody' })
  const headers = { authorization: `Bearer ${body.access_token}` }
  await service.put('open/left.txt', 'left')
  const { body: link } = await service.call('POST', '/api/links', { json: { path: 'open/left.txt' }, headers })
  const listed = async () => (await service.call('GET', '/api/links?path=open/left.txt')).body.pagination?.total_items

  const before = [(await get(String(link.url))).status, await listed()]
  await service.call('DELETE', '/api/users/lars')
  const after = [(await get(String(link.url))).status, await listed()]

  expect([before, after]).toEqual([
    [200, 1],
    [404, 0],
  ])
})

test.each(['open/é.txt', '/open/é.txt', 'open/e\u0301.txt'])(
  'links are listed by a path as it is written: %s',
  async (path) => {
    await service.put('open/é.txt', 'x')
    const { body: link } = await service.call('POST', '/api/links', { json: { path } })

    const { body } = await service.call('GET', `/api/links?path=${encodeURIComponent(path)}`)

    expect([link.path, body.links]).toEqual([
      'open/é.txt',
      expect.arrayContaining([expect.objectContaining({ id: link.id })]),
    ])
  },
)

test('links die while their maker is limited to elsewhere', async () => {
  const limit = (folders: string[]) => service.call('PATCH', '/api/users/lena', { json: { folders } })
  const password = 'words of a sharing editor'
  const user = { username: 'lena', role: 'editor', folders: ['open/'], password }
  await service.call('POST', '/api/users', { json: user })
  const json = { username: 'lena', password }
  const { body } = await service.call('POST', '/api/auth/login', { json, user: 'nobody' })
  const headers = { authorization: `Bearer ${body.access_token}` }
  const urls: string[] = []
  for (const path of ['open/e.txt', 'open/'])
    urls.push(String((await service.call('POST', '/api/links', { json: { path }, headers })).body.url))
  const statuses = () => Promise.all(urls.map(async (url) => (await get(url)).status))

  expect(await statuses()).toEqual([200, 200])
  await limit(['drafts/'])
  expect(await statuses()).toEqual([404, 404])
  await limit(['open/'])
  expect(await statuses()).toEqual([200, 200])
})

test('a caller limited to folders sees and deletes no links to elsewhere, its own included', async () => {
  const { id } = await create({ path: 'drafts/a.css' }, 'admin')
  const json = { name: 'open only', role: 'admin', folders: ['open/'] }
  const { body: made } = await service.call('POST', '/api/tokens', { json })
  const headers = { authorization: `Bearer ${made.token}` }
  const send = (method: string, path: string) => service.call(method, path, { headers })

  const listed = (await send('GET', '/api/links?page_size=200')).body.links as { path: string }[]
  const elsewhere = await send('GET', '/api/links?path=drafts/a.css')

  expect(listed.filter(({ path }) => !path.startsWith('open/'))).toEqual([])
  expect(elsewhere.body.pagination?.total_items).toBe(0)
  expect((await send('DELETE', `/api/links/${id}`)).status).toBe(404)
})

test('with PUBLIC_BASE_URL a link is a whole URL', async () => {
  await using named = await start({ env: { PUBLIC_BASE_URL: 'https://files.example/base/' } })
  await named.put('a.txt')
  const { body } = await named.call('POST', '/api/links', { json: { path: 'a.txt' } })

  expect(body.url).toMatch(new RegExp(`^https://files\\.example/base/l/${token}$`))
})

test('a link shows the file as it is now', async () => {
  await service.put('open/now.txt', 'before')
  const { url } = await create({ path: 'open/now.txt' })
  await service.put('open/now.txt', 'after')

  expect((await get(url)).bytes.toString()).toBe('after')
})

test.each([
  [60, 1],
  [31_536_000, 10_000],
])('a link may last %i seconds, for %i downloads', async (expires_in, downloads) => {
  const { body } = await create({ path: 'open/e.txt', expires_in, downloads })

  expect(body.downloads_left).toBe(downloads)
  expect(Date.parse(String(body.expires_at)) - Date.parse(String(body.created_at))).toBe(expires_in * 1000)
})

test.each([
  [{ path: '/' }, 404],
  [{ path: 'a//b' }, 400],
  [{ path: 'open/e.txt', expires_in: 59 }, 400],
  [{ path: 'open/e.txt', expires_in: 31_536_001 }, 400],
  [{ path: 'open/e.txt', downloads: 0 }, 400],
  [{ path: 'open/e.txt', downloads: 10_001 }, 400],
  [{ path: 'open/e.txt', name: 'a\nb' }, 400],
  [{ path: 'open/e.txt', name: 'a\ud800' }, 400],
])('no link is made for %j: %i', async (json, status) => {
  expect((await service.call('POST', '/api/links', { json })).status).toBe(status)
})

test('logs and metrics never contain the token', async () => {
  const { url } = await create({ path: 'drafts/photos/' })
  const secret = url.slice('/l/'.length)
  const spellings = [`/%6c/${secret}`, `/L/${secret}`, `/l//${secret}`, `/l%2F${secret}`]
  for (const path of [...spellings, url, `${url}/none`]) await get(path)
  const metrics = await service.call('GET', '/metrics', {
    headers: { authorization: 'Bearer metrics-token-of-tests' },
  })

  await expect.poll(() => JSON.stringify(service.lines())).toContain('/l/[redacted]/none')
  expect(JSON.stringify(service.lines())).not.toContain(secret)
  expect(metrics.bytes.toString()).toContain('route="/l/*"')
  expect(metrics.bytes.toString()).not.toContain(secret)
})
