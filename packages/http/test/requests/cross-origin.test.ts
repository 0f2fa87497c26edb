import { expect, test } from 'vitest'
import { start } from '../support/start.ts'

const origin = 'https://app.example'
const ask = (line: string, headers = '') => `${line} HTTP/1.1\r\nhost: a\r\norigin: ${origin}\r\n${headers}\r\n`
const json = 'content-type: application/json\r\n'
const last = 'connection: close\r\n'
const readable = new RegExp(
  `access-control-allow-origin: ${origin}\r\naccess-control-expose-headers: [^\r]*retry-after`,
  'gi',
)

test('pages can read the headers that the API answers with', async () => {
  await using service = await start({ corsOrigin: [origin], exposedHeaders: ['upload-offset'] })

  const { headers } = await fetch(`${service.url}/things`, { headers: { origin } })

  const exposed = headers.get('access-control-expose-headers')?.split(', ') ?? []
  expect(exposed).toEqual([...new Set(exposed)])
  for (const name of ['etag', 'link', 'location', 'x-request-id', 'upload-offset']) expect(exposed).toContain(name)
})

test('pages of a named origin can read that a service is overloaded, and ask before they call', async () => {
  const limits = { sliceMs: 0, maxQueueMs: -1 }
  await using service = await start({ corsOrigin: [origin], ...limits })
  const preflight = ask('OPTIONS /things', 'access-control-request-method: GET\r\n')

  const text = await service.raw(preflight + ask('GET /things', last))
  const other = await service.raw(ask('GET /things', last).replaceAll('app.', 'evil.'))

  const [shed = ''] = /HTTP\/1\.1 503.*/s.exec(text) ?? []
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 204', 'HTTP/1.1 503'])
  expect(shed.match(readable)).toHaveLength(1)
  expect(other).toContain('HTTP/1.1 503')
  expect(other).not.toContain('access-control-allow-origin')
})

test.each([
  ['a path that there is not', ask('GET /nowhere', last), 404],
  ['a method that a path has not', ask('DELETE /things', last), 405],
  ['a path that cannot be decoded', ask('GET /%zz', last), 400],
  ['a body that stalls', ask('POST /things/a', `${json}content-length: 9\r\n`), 408],
])('pages of a named origin can read the refusal of %s', async (_what, request, status) => {
  const limits = { bodyIdleTimeoutMs: 100 }
  await using service = await start({ corsOrigin: [origin], ...limits })

  const text = await service.raw(request)

  expect(text).toContain(`HTTP/1.1 ${status}`)
  expect(text.match(readable)).toHaveLength(1)
})

test.each(['/things', '/nowhere'])('a preflight of %s is answered, with the headers that it asks for', async (path) => {
  await using service = await start({ corsOrigin: [origin] })
  const preflight = async (headers: Record<string, string>) => {
    const asked = { 'access-control-request-method': 'PUT', ...headers }
    return fetch(service.url + path, { method: 'OPTIONS', headers: asked })
  }

  const [plain, own, foreign] = await Promise.all([
    preflight({ origin }),
    preflight({ origin, 'access-control-request-headers': 'if-match' }),
    preflight({ origin: 'https://evil.example' }),
  ])

  expect([plain, own, foreign].map(({ status }) => status)).toEqual([204, 204, 204])
  expect(plain.headers.get('access-control-allow-methods')).toContain('PUT')
  expect(plain.headers.has('access-control-allow-headers')).toBe(false)
  expect(own.headers.get('access-control-allow-headers')).toBe('if-match')
  expect(own.headers.get('access-control-allow-origin')).toBe(origin)
  expect(foreign.headers.has('access-control-allow-origin')).toBe(false)
  expect(foreign.headers.get('vary')).toBe('Origin')
})

test('Vary names Origin beside what a route varies by', async () => {
  await using service = await start({ corsOrigin: [origin] })

  const { headers } = await fetch(`${service.url}/docs`)

  expect(headers.get('vary')).toBe('accept-encoding, Origin')
})

test('a request that is refused before its origin is looked at has no Vary', async () => {
  await using service = await start({ corsOrigin: [origin] })

  const text = await service.raw('GET /things HTTP/1.1\r\n\r\n')

  expect(text).toContain('HTTP/1.1 400')
  expect(text).not.toMatch(/^vary:/m)
})
