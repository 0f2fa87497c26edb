import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, start } from '../support/start.ts'
import { startStatic } from '../support/static-start.ts'
import { digestOf } from '../support/stored-contents.ts'

const files = {
  'docs/index.html': '<link rel=stylesheet href=style.css><h1>Docs</h1>',
  'docs/style.css': 'h1 { color: teal }',
  'docs/guide.html': '<h1>Guide</h1>',
  'docs/guide/images/a.txt': 'image',
  'docs/api/index.html': '<h1>API</h1>',
  'docs/404.html': '<h1>Not here</h1>',
  'other/index.html': '<h1>Other</h1>',
}

async function startSite(env: Record<string, string> = {}): Promise<Service> {
  const service = await start({ env: { STATIC_SITES: 'docs/', ...env } })
  for (const [path, content] of Object.entries(files)) await service.put(path, content)
  return service
}

// Most tests only read.
let site: Service
beforeAll(async () => {
  site = await startSite()
})
afterAll(() => site[Symbol.asyncDispose]())

const get = (service: Service, path: string, method = 'GET') =>
  service.call(method, `/static/${path}`, { user: 'nobody' })

test.each([
  ['docs/', 200, files['docs/index.html']],
  ['docs/index.html', 200, files['docs/index.html']],
  ['docs/guide', 200, files['docs/guide.html']],
  ['docs/guide.html', 200, files['docs/guide.html']],
  ['docs/api/', 200, files['docs/api/index.html']],
  ['docs/missing', 404, files['docs/404.html']],
  ['docs/missing/', 404, files['docs/404.html']],
  ['docs/a/b/c.html', 404, files['docs/404.html']],
])('GET of %s in a site is %i', async (path, status, content) => {
  const got = await get(site, path)
  const again = await get(site, path)
  const head = await get(site, path, 'HEAD')

  expect([got.status, got.bytes.toString()]).toEqual([status, content])
  expect(again.bytes).toEqual(got.bytes)
  expect([head.status, head.headers['content-length']]).toEqual([status, String(content.length)])
  expect(got.headers['content-type']).toBe('text/html')
  expect(got.headers['content-security-policy']).toMatch(/^default-src 'self'/)
  expect(got.headers['x-content-type-options']).toBe('nosniff')
})

test.each([
  ['docs', './docs/'],
  ['docs/api?x=1', './api/?x=1'],
])('GET of the directory %s in a site is redirected to %s', async (path, location) => {
  const got = await get(site, path)

  expect([got.status, got.headers.location]).toEqual([302, location])
})

test('a page for missing paths is never cached, and is not the answer to an invalid path', async () => {
  const page = digestOf(files['docs/404.html'])
  const missing = await get(site, `docs/missing?v=${page}&download`)
  const invalid = await get(site, 'docs/../x')
  const encoded = await get(site, 'docs%2Fguide')

  expect(missing.headers['cache-control']).toBe('no-store')
  expect(missing.headers['content-disposition']).toBeUndefined()
  expect([invalid.status, invalid.body.code]).toEqual([400, 'invalid_path'])
  expect([encoded.status, encoded.body.code]).toEqual([404, 'file_not_found'])
})

test('a clean URL has the conditions and ranges of its file', async () => {
  const { headers } = await get(site, 'docs/guide')
  const ask = (more: Record<string, string>) =>
    site.call('GET', '/static/docs/guide', { user: 'nobody', headers: more })

  const unchanged = await ask({ 'if-none-match': String(headers.etag) })
  const part = await ask({ range: 'bytes=0-3' })

  expect([unchanged.status, part.status, part.bytes.toString()]).toEqual([304, 206, '<h1>'])
})

test('outside of sites nothing has an index, and pages are sandboxed', async () => {
  const directory = await get(site, 'other/')
  const page = await get(site, 'other/index.html')
  const missing = await get(site, 'missing')

  expect([directory.status, directory.body.code]).toEqual([404, 'file_not_found'])
  expect(page.headers['content-security-policy']).toMatch(/^sandbox/)
  expect(missing.body.code).toBe('file_not_found')
})

test('a site without a page for missing paths answers with a problem', async () => {
  await using service = await start({ env: { STATIC_SITES: 'docs/' } })

  const { status, body } = await get(service, 'docs/missing')

  expect([status, body.code]).toEqual([404, 'file_not_found'])
})

test('an empty STATIC_CSP sends no policy', async () => {
  await using service = await startSite({ STATIC_CSP: '', STATIC_SITE_CSP: '' })

  const [inside, outside] = [await get(service, 'docs/'), await get(service, 'other/index.html')]

  expect(inside.headers['content-security-policy']).toBeUndefined()
  expect(outside.headers['content-security-policy']).toBeUndefined()
})

test('a date says nothing about a path where another file may answer later', async () => {
  let now = 0
  await using service = await startStatic({ STATIC_SITES: 'site/' }, { now: () => now })
  const { updatedAt } = await service.put('site/guide.html', 'from guide.html')
  const date = new Date(Date.parse(updatedAt) + 1000).toUTCString()
  now = Date.parse(updatedAt) + 5000

  const fallback = await service.ask('/static/site/guide')
  const revalidated = await service.ask('/static/site/guide', { 'If-Modified-Since': date })
  const part = await service.ask('/static/site/guide', { Range: 'bytes=0-3', 'If-Range': date })
  const own = await service.ask('/static/site/guide.html', { 'If-Modified-Since': date })

  expect(fallback.headers['last-modified']).toBeUndefined()
  expect([revalidated.status, revalidated.body.toString()]).toEqual([200, 'from guide.html'])
  expect(part.status).toBe(200)
  expect(own.status).toBe(304)
  const known = { 'If-None-Match': fallback.headers.etag ?? '' }
  expect((await service.ask('/static/site/guide', known)).status).toBe(304)
})

test('each directory directly below one named with * is a site; no other file is in one', async () => {
  await using service = await start({ env: { STATIC_SITES: 'previews/*' } })
  for (const path of [
    'previews/pr-1/index.html',
    'previews/pr-1/404.html',
    'previews/x.html',
    'previews/pr-1.html',
    'x/x.html',
  ])
    await service.put(path, `<h1>${path}`)

  const index = await get(service, 'previews/pr-1/')
  const missing = await get(service, 'previews/pr-1/none')
  const redirected = await get(service, 'previews/pr-1')
  const others = [await get(service, 'previews/x.html'), await get(service, 'x/x.html')]
  const parent = await get(service, 'previews/')

  expect(index.bytes.toString()).toBe('<h1>previews/pr-1/index.html')
  expect(index.headers['content-security-policy']).toMatch(/^default-src 'self'/)
  expect([missing.status, missing.bytes.toString()]).toEqual([404, '<h1>previews/pr-1/404.html'])
  expect(redirected.headers.location).toBe('./pr-1/')
  for (const { headers } of others) expect(headers['content-security-policy']).toMatch(/^sandbox/)
  expect([parent.status, parent.body.code]).toEqual([404, 'file_not_found'])
})

describe('a page that was loaded before a deploy', () => {
  const env = { STATIC_SITES: 'app/', KEEP_HISTORY_DAYS: '1' }
  const old = { 'app/index.html': 'old', 'app/a.1.js': 'a()', 'app/old.html': 'old page' }

  async function startDeployed(more: Record<string, string> = {}): Promise<Service> {
    const service = await start({ env: { ...env, ...more } })
    for (const [path, content] of Object.entries(old)) await service.put(path, content)
    await service.put('beside/a.1.js', 'a()')
    await service.put('app/deleted.js', 'deleted')
    await service.call('POST', '/api/files/delete', { json: { paths: ['app/deleted.js'] } })
    await service.put('next/index.html', 'new')
    for (const path of ['app/', 'beside/']) await service.call('PUT', `/api/trees/${path}`, { json: { from: 'next/' } })
    return service
  }

  test('still gets the assets that the deploy removed, but no page and nothing that was deleted', async () => {
    await using service = await startDeployed()

    const asset = await get(service, 'app/a.1.js')
    const immutable = await get(service, `app/a.1.js?v=${digestOf('a()')}`)
    const head = await get(service, 'app/a.1.js', 'HEAD')

    expect([asset.status, asset.bytes.toString()]).toEqual([200, 'a()'])
    expect(asset.headers['content-type']).toContain('javascript')
    for (const { headers } of [asset, immutable, head])
      expect(headers['cache-control']).toBe('public, max-age=0, must-revalidate')
    expect((await get(service, 'app/')).bytes.toString()).toBe('new')
    for (const path of ['app/old.html', 'app/deleted.js', 'beside/a.1.js', 'app/never.js'])
      expect((await get(service, path)).status, path).toBe(404)
    const { body } = await service.call('GET', '/api/files/app/a.1.js')
    expect(body.code).toBe('file_not_found')
    // Deleted for good, once it is stored and deleted again.
    await service.put('app/a.1.js', 'b()')
    expect((await get(service, 'app/a.1.js')).bytes.toString()).toBe('b()')
    await service.call('DELETE', '/api/files/app/a.1.js')
    expect((await get(service, 'app/a.1.js')).status).toBe(404)
  })

  test.each(['revert', 'restore'])('gets what a %s removed, without a date', async (how) => {
    await using service = await startDeployed()
    await service.put('next/c.3.js', 'c()')
    const deploy = (json: object) => service.call('PUT', '/api/trees/app/', { json })
    const { bytes } = await deploy({ from: 'next/' })
    const { id } = JSON.parse(bytes.toString()).change

    if (how === 'revert') await service.call('POST', `/api/changes/${id}/revert`)
    else await deploy({ from: 'app/', at: id - 1 })
    await service.put('app/later.txt', 'later')
    const readDate = async () => (await get(service, 'app/later.txt')).headers['last-modified']
    // Then a date of what is older would be reliable, too.
    await expect.poll(readDate).toBeDefined()

    const asset = await get(service, 'app/c.3.js')
    expect([asset.status, asset.bytes.toString()]).toEqual([200, 'c()'])
    expect(asset.headers['last-modified']).toBeUndefined()
  })

  test('gets none that was beside the sites', async () => {
    await using service = await startDeployed({ STATIC_SITES: 'app/*' })

    expect((await get(service, 'app/a.1.js')).status).toBe(404)
  })

  test('gets no private assets, with a login or without', async () => {
    await using service = await startDeployed()
    await service.call('PUT', '/api/access/app/', { json: { public: false } })

    expect((await get(service, 'app/a.1.js')).status).toBe(404)
    expect((await service.call('GET', '/static/app/a.1.js')).status).toBe(404)
    expect((await service.call('GET', '/static/app/index.html')).status).toBe(200)
  })

  test('gets none after SITE_GRACE_S', async () => {
    await using service = await startDeployed({ SITE_GRACE_S: '1' })

    await expect.poll(async () => (await get(service, 'app/a.1.js')).status).toBe(404)
  })

  test.each([{ SITE_GRACE_S: '0' }, { KEEP_HISTORY_DAYS: '0' }])('gets none with %o', async (settings) => {
    await using service = await startDeployed(settings)

    expect((await get(service, 'app/a.1.js')).status).toBe(404)
  })
})
