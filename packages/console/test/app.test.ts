import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { download, startConsole } from './support/console.ts'

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob: https://files.example",
  'media-src blob: https://files.example',
  'frame-src https://files.example',
  "connect-src 'self' https://domains.example https://files.example",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types lit-html',
].join('; ')

const policyOf = async (env: Record<string, string>) =>
  (await fetch(await startConsole(env))).headers.get('content-security-policy')

describe('the page', () => {
  test('has the content security policy of the contract and is revalidated on each load', async () => {
    const response = await fetch(await startConsole())

    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(response.headers.get('content-security-policy')).toBe(policy)
    expect(response.headers.get('cache-control')).toBe('no-cache')
  })

  test('names assets that exist, are cached for good and come compressed', async () => {
    const url = await startConsole()
    const html = await (await fetch(url)).text()
    const paths = [...html.matchAll(/(?:src|href)="(assets\/[^"]+)"/g)].map(([, path]) => path)

    const responses = await Promise.all(paths.map((path) => fetch(`${url}/${path}`)))
    const sources = await Promise.all(responses.map((response) => response.text()))

    expect(paths.length).toBeGreaterThan(10)
    expect(paths.filter((path) => path?.endsWith('.css'))).toHaveLength(1)
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
    const caching = responses.map(({ headers }) => headers.get('cache-control'))
    expect(new Set(caching)).toEqual(new Set(['public, max-age=31536000, immutable']))
    const shell = responses.find((response) => response.url.endsWith('app-shell.js'))
    expect(shell?.headers.get('content-type')).toMatch(/javascript/)
    expect(shell?.headers.get('content-encoding')).toMatch(/^(?:br|gzip)$/)
    expect(sources.some((source) => source.includes('class AppShell'))).toBe(true)
  })

  test('says with every method that the page depends on the codings', async () => {
    const url = await startConsole()
    const whole = await fetch(url)
    const head = await fetch(url, { method: 'HEAD' })

    for (const { headers } of [whole, head]) expect(headers.get('vary')).toBe('accept-encoding')
  })

  test('says no coding where the page is not modified', async () => {
    const url = await startConsole()
    const [, path] = /src="(assets\/[^"]+)"/.exec(await (await fetch(url)).text()) ?? []
    const { headers } = await fetch(`${url}/${path}`)

    const again = await fetch(`${url}/${path}`, {
      headers: { 'accept-encoding': 'br', 'if-none-match': headers.get('etag') ?? '', 'cache-control': 'max-age=0' },
    })

    expect([again.status, again.headers.get('content-encoding')]).toEqual([304, null])
  })

  test('loads the login page and the first list with few requests and bytes', async () => {
    const url = await startConsole()
    const html = await (await fetch(url)).text()
    const { modules } = JSON.parse(await (await fetch(`${url}/config.json`)).text())
    const [, version] = /"assets\/([0-9a-f]+)\//.exec(html) ?? []
    const list = modules['domains/domain-list'].map((each: string) => `assets/${version}/${each}`)
    const linked = [...html.matchAll(/(?:src|href)="(assets\/[^"]+)"/g)].map(([, path = '']) => path)

    const paths = [...new Set(['', 'config.json', ...linked, ...list])]
    const found = await Promise.all(paths.map((path) => download(`${url}/${path}`, 'br')))

    expect(paths.length).toBeLessThanOrEqual(19) // Beside 6 requests to the services.
    expect(found.reduce((sum, { body }) => sum + body.length, 0)).toBeLessThan(38 * 1024)
  })

  test('comes in a coding that the browser accepts, the same each time', async () => {
    const url = await startConsole()
    const accepted = ['gzip, br', 'br', 'gzip, br;q=0', 'identity']

    const found = await Promise.all(accepted.map((codings) => download(url, codings)))
    const [brotli, again, zip, plain] = found.map(({ body }) => body)

    expect(found.map(({ coding }) => coding)).toEqual(['br', 'br', 'gzip', undefined])
    expect(String(plain)).toContain('<app-shell>')
    for (const each of [brotli, again]) expect(brotliDecompressSync(each ?? '')).toEqual(plain)
    expect(gunzipSync(zip ?? '')).toEqual(plain)
  })

  test('serves lit-html from the installed package, and nothing but scripts, styles and images', async () => {
    const url = await startConsole()
    const [, assets] = /"(assets\/[0-9a-f]+)\//.exec(await (await fetch(url)).text()) ?? []
    const statusOf = async (path: string) => (await fetch(`${url}/${assets}/${path}`)).status

    expect(await statusOf('vendor/lit-html.js')).toBe(200)
    expect(await statusOf('vendor/directives/repeat.js')).toBe(200)
    expect(await statusOf('vendor/directives/until.js')).toBe(404)
    expect(await statusOf('vendor/package.json')).toBe(404)
    expect(await statusOf('index.html')).toBe(404)
    expect(await statusOf('tsconfig.json')).toBe(404)
    expect(await statusOf('..%2fsrc%2fapp.ts')).toBe(404)
  })

  test('refuses ranges and conditions of assets that cannot be met', async () => {
    const url = await startConsole()
    const [asset] = /assets\/[^"]+app-shell\.js/.exec(await (await fetch(url)).text()) ?? []
    const statusWith = async (headers: Record<string, string>) => (await fetch(`${url}/${asset}`, { headers })).status

    expect(await statusWith({ range: 'bytes=9999999-' })).toBe(416)
    expect(await statusWith({ 'if-match': '"other"' })).toBe(412)
  })

  test('allows the origin of a service that lies under a path', async () => {
    const found = await policyOf({ STATIC_SERVICE_URL: 'https://example.com/files/' })

    expect(found).toContain('frame-src https://example.com;')
  })

  test('allows no frame and no connection to a service that is not configured', async () => {
    const found = await policyOf({ STATIC_SERVICE_URL: '' })

    expect(found).toContain("frame-src 'none'")
    expect(found).toContain("connect-src 'self' https://domains.example;")
  })
})

describe('/config.json', () => {
  test('names both services without a trailing slash', async () => {
    const url = await startConsole({ DOMAIN_SERVICE_URL: 'https://example.com/domains/' })

    const response = await fetch(`${url}/config.json`)

    expect(await response.json()).toMatchObject({
      domain_service_url: 'https://example.com/domains',
      static_service_url: 'https://files.example',
    })
  })

  test('names what each view imports, and the limits of uploads', async () => {
    const url = await startConsole({ MAX_UPLOAD_BYTES: '1000', UPLOAD_PART_BYTES: '65536' })

    const config = JSON.parse(await (await fetch(`${url}/config.json`)).text())

    expect(config).toMatchObject({ max_upload_bytes: 1000, upload_part_bytes: 65_536 })
    expect(config.modules['files/file-browser']).toContain('files/folder/folder-contents.js')
    expect(config.modules['files/file-browser']).not.toContain('core/view.js')
  })

  test('gives null for a service that is not configured', async () => {
    const url = await startConsole({ DOMAIN_SERVICE_URL: '' })

    const response = await fetch(`${url}/config.json`)

    expect(await response.json()).toMatchObject({ domain_service_url: null })
  })
})

test('/health is ok without a token', async () => {
  const response = await fetch(`${await startConsole()}/health`)

  expect(response.status).toBe(200)
  expect(await response.json()).toMatchObject({ status: 'ok', checks: {} })
})

test('an unknown path is a problem, and another method of the page is 405', async () => {
  const url = await startConsole()

  const absent = await fetch(`${url}/nothing`)
  const posted = await fetch(url, { method: 'POST' })

  expect(absent.status).toBe(404)
  expect(absent.headers.get('content-type')).toMatch(/^application\/problem\+json/)
  expect(posted.status).toBe(405)
  expect(posted.headers.get('allow')).toContain('GET')
})
