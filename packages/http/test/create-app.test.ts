import { gzipSync } from 'node:zlib'
import { expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { createMetrics, type HealthReport, HttpError } from '../src/index.ts'
import { start } from './support/start.ts'

const Operation = z.looseObject({
  operationId: z.string(),
  parameters: z.array(z.unknown()).optional(),
  responses: z.record(z.string(), z.looseObject({ content: z.unknown().optional() })),
})
const Description = z.looseObject({
  components: z.object({ schemas: z.record(z.string(), z.unknown()) }),
  openapi: z.string(),
  paths: z.record(z.string(), z.record(z.string(), Operation)),
})

const json = (body: unknown) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
})

test('every fault of path, query and body is named at once', async () => {
  await using service = await start()

  const answer = await fetch(
    `${service.url}/things/A1?color=red`,
    json({
      items: [
        { name: 'ok', size: 1 },
        { name: 'x', size: 1.5, colour: 'red' },
      ],
      'm~/e': 1,
    }),
  )

  expect(answer.status).toBe(400)
  expect(answer.headers.get('content-type')).toBe('application/problem+json')
  expect(await answer.json()).toEqual({
    type: 'about:blank',
    title: 'Bad Request',
    status: 400,
    code: 'validation_failed',
    detail: '/path/id: must be letters (and 5 more, see errors)',
    request_id: answer.headers.get('x-request-id'),
    errors: [
      { path: '/path/id', message: 'must be letters' },
      { path: '/query/color', message: 'is not known here' },
      { path: '/items/1/name', message: 'must have 2 characters or more' },
      { path: '/items/1/size', message: 'must be a whole number' },
      { path: '/items/1/colour', message: 'is not known here' },
      { path: '/m~0~1e', message: 'is not known here' },
    ],
  })
})

test('U+0000 in a query or a path is a fault beside the others, whatever the schemas say', async () => {
  await using service = await start()

  const answer = await fetch(`${service.url}/things/a%00b?color=a%00b`, json({ items: [] }))

  expect(answer.status).toBe(400)
  expect(await answer.json()).toMatchObject({
    errors: [
      { path: '/path/id', message: 'must not contain U+0000' },
      { path: '/query/color', message: 'must not contain U+0000' },
      { path: '/path/id', message: 'must be letters' },
      { path: '/query/color', message: 'is not known here' },
    ],
  })
})

test.each([
  ['cut JSON', '{"items": [', 'application/json', 400, 'malformed_body'],
  ['an empty body announced as JSON', '', 'application/json', 400, 'malformed_body'],
  ['a prototype key', '{"__proto__": {"admin": true}, "items": []}', 'application/json', 400, 'malformed_body'],
  ['a body of another type', 'items=1', 'application/x-www-form-urlencoded', 415, 'unsupported_media_type'],
  ['plain text', 'items', 'text/plain', 415, 'unsupported_media_type'],
  [
    'a body that is too large',
    JSON.stringify({ items: 'x'.repeat(2_000_000) }),
    'application/json',
    413,
    'body_too_large',
  ],
])('%s is a problem', async (_name, body, type, status, code) => {
  await using service = await start()

  const answer = await fetch(`${service.url}/things/a`, {
    method: 'POST',
    headers: { 'content-type': type },
    body,
  })

  expect(answer.status).toBe(status)
  expect(await answer.json()).toMatchObject({ status, code })
})

test('a compressed JSON body is refused, and the response names the codings that are accepted', async () => {
  await using service = await start()

  const response = await fetch(`${service.url}/things/a`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
    body: gzipSync('{"items":[]}'),
  })

  expect(response.status).toBe(415)
  expect(response.headers.get('accept-encoding')).toBe('identity')
  expect(await response.json()).toMatchObject({ code: 'unsupported_media_type' })
})

test('an empty body announced as JSON is accepted by a route that has no body', async () => {
  await using service = await start()

  const response = await fetch(`${service.url}/reset`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
  })

  expect(response.status).toBe(200)
})

test('a request announced as JSON that has no body and no length is answered', async () => {
  await using service = await start()

  const text = await service.raw(
    'POST /reset HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n',
  )

  expect(text).toMatch(/^HTTP\/1\.1 200 /)
})

test.each([
  ['wide', `{"items":[${'{},'.repeat(6000)}{}]}`],
  ['full of keys', `{${Array.from({ length: 6000 }, (_, at) => `"k${at}":1`)}}`],
  ['deep', `${'['.repeat(400_000)}${']'.repeat(400_000)}`],
])('a body that is very %s is refused before it is validated', async (_name, body) => {
  await using service = await start()

  const answer = await fetch(`${service.url}/things/a`, { ...json({}), body })

  expect(answer.status).toBe(413)
  expect(await answer.json()).toMatchObject({ code: 'body_too_large' })
})

test('of very many faults 1,000 are listed, with their number', async () => {
  await using service = await start()
  const body = `{"items":[${'{},'.repeat(2999)}{}]}`

  const answer = await fetch(`${service.url}/things/a`, { ...json({}), body })

  const { detail, errors } = z.object({ detail: z.string(), errors: z.array(z.unknown()) }).parse(await answer.json())
  expect(errors).toHaveLength(1000)
  expect(detail).toContain('and 5999 more')
})

test('a body that is not UTF-8 is refused, not repaired', async () => {
  await using service = await start()
  const body = Buffer.concat([
    Buffer.from('{"items":[{"name":"'),
    Buffer.from([0xff, 0xfe]),
    Buffer.from('","size":1}]}'),
  ])

  const answer = await fetch(`${service.url}/things/a`, { ...json({}), body })

  expect(answer.status).toBe(400)
  expect(await answer.json()).toMatchObject({
    code: 'malformed_body',
    detail: 'The body is not valid UTF-8',
  })
})

test.each([
  ['utf-8', 201],
  ['"UTF-8"', 201],
  ['us-ascii', 201],
  ['', 201],
  ['utf-16', 415],
  ['iso-8859-1', 415],
])('a body in the charset %s is a %i', async (charset, status) => {
  await using service = await start()
  const request = json({ items: [{ name: 'aa', size: 1 }] })
  const headers = { ...request.headers, 'content-type': `application/json; charset=${charset}` }

  const answer = await fetch(`${service.url}/things/a`, { ...request, headers })

  expect(answer.status).toBe(status)
})

test('a byte order mark before JSON is skipped', async () => {
  await using service = await start()
  const request = json({ items: [{ name: 'aa', size: 1 }] })

  const answer = await fetch(`${service.url}/things/a`, {
    ...request,
    body: `\ufeff${request.body}`,
  })

  expect(answer.status).toBe(201)
})

test('a bug is a bare 500, and is logged with its stack', async () => {
  await using service = await start()

  const answer = await fetch(`${service.url}/broken`, { headers: { 'x-request-id': 'call 7' } })

  expect(answer.status).toBe(500)
  const problem = await answer.text()
  expect(JSON.parse(problem)).toMatchObject({ code: 'internal_error', request_id: 'call 7' })
  expect(problem).not.toContain('secret detail')
  const line = service.lines().find((each) => each.msg === 'request failed')
  expect(line).toMatchObject({ request_id: 'call 7', err: { message: 'a secret detail' } })
})

test('headers of a failure are answered', async () => {
  await using service = await start()

  const answer = await fetch(`${service.url}/range`)

  expect(answer.status).toBe(416)
  expect(answer.headers.get('content-range')).toBe('bytes */9')
})

test.each([
  ['one of the caller', 'a'.repeat(128), true],
  ['one that is too long', 'a'.repeat(129), false],
  ['one that is not ASCII', 'caf\u00e9', false],
])('the request id: %s', async (_name, id, isUsed) => {
  await using service = await start()

  const answer = await fetch(`${service.url}/health`, { headers: { 'x-request-id': id } })

  const given = answer.headers.get('x-request-id')
  expect(given === id).toBe(isUsed)
  expect(given).toMatch(/^[\x20-\x7e]{1,128}$/)
})

const chunked = 'POST /echo HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n'

test.each([
  ['an unknown method', 'BREW /things HTTP/1.1\r\nhost: a\r\nX-Request-Id: mine\r\n\r\n'],
  ['CONNECT', 'CONNECT a:1 HTTP/1.1\r\nhost: a\r\nX-Request-Id: mine\r\n\r\n'],
  ['a malformed body', `${chunked}X-Request-Id: mine\r\n\r\nzz\r\n`],
])('a request that the parser refuses keeps its id: %s', async (_name, bytes) => {
  await using service = await start()

  const answer = await service.raw(bytes)

  expect(answer.toLowerCase()).toContain('\r\nx-request-id: mine\r\n')
  expect(answer).toContain('"request_id":"mine"')
})

test('a malformed body without an id gets the one of its log line', async () => {
  await using service = await start()

  const answer = await service.raw(`${chunked}\r\nzz\r\n`)

  const [, given] = /"request_id":"([^"]+)"/.exec(answer) ?? []
  await expect
    .poll(() => service.lines())
    .toContainEqual(expect.objectContaining({ msg: 'request aborted', request_id: given }))
})

test.each(['GET', 'PUT', 'DELETE', 'PATCH', 'PROPFIND', 'OPTIONS', 'TRACE', 'BREW', 'post', 'POSTS'])(
  '%s of a path that knows only POST is a 405 that says so',
  async (method) => {
    await using service = await start()

    const answer = await service.raw(`${method} /things/a HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`)

    expect(answer).toContain('HTTP/1.1 405 Method Not Allowed')
    expect(answer.toLowerCase()).toContain('\r\nallow: post\r\n')
    expect(answer).toContain('"code":"method_not_allowed"')
  },
)

test.each([
  ['an unknown method of an unknown path', 'BREW /nothing?a=%zz', '404 Not Found'],
  ['a malformed request line', 'BREW /things/a HTTP/1.0', '400 Bad Request'],
  ['a method longer than any', `${'A'.repeat(65)} /things/a`, '400 Bad Request'],
])('%s gets one problem, and the connection ends', async (_name, line, status) => {
  await using service = await start()

  const answer = await service.raw(`${line} HTTP/1.1\r\nhost: a\r\n\r\n`)

  expect(answer).toContain(`HTTP/1.1 ${status}`)
  expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1)
  expect(answer).toContain('connection: close')
})

test('a 405 names every method of the path', async () => {
  await using service = await start()

  const answer = await fetch(`${service.url}/things`, { method: 'DELETE' })

  expect(answer.headers.get('allow')).toBe('GET, HEAD')
})

test.each([
  ['GET', '/nothing'],
  ['GET', '/things/a/b'],
  ['GET', '/things/'],
  ['POST', '/things/'],
  ['GET', '/HEALTH'],
])('%s %s is a 404 problem', async (method, path) => {
  await using service = await start()

  const answer = await fetch(service.url + path, { method })

  expect(answer.status).toBe(404)
  expect(await answer.json()).toMatchObject({ code: 'not_found' })
})

test('an unknown path is a 404 before its body has arrived', async () => {
  await using service = await start()

  const answer = await service.raw(
    'POST /nothing HTTP/1.1\r\nhost: a\r\ncontent-type: text/x\r\ncontent-length: 9\r\n\r\n',
    '"code":"not_found"',
  )

  expect(answer).toContain('HTTP/1.1 404 Not Found')
})

test('QUERY with a body of any type is a 405 of a path without it', async () => {
  await using service = await start()

  const answer = await service.raw(
    'QUERY /things HTTP/1.1\r\nhost: a\r\ncontent-type: text/x\r\ncontent-length: 1\r\n\r\na',
    '"code":"method_not_allowed"',
  )

  expect(answer).toContain('HTTP/1.1 405 Method Not Allowed')
})

const malformedUrls = ['/things/%ff', '/things?colour=%ff', '/nowhere?%e0%a4']

test.each(malformedUrls)('%s, which cannot be decoded, is a problem with a request id', async (path) => {
  await using service = await start()

  const answer = await fetch(`${service.url}${path}`)

  expect(answer.status).toBe(400)
  expect(answer.headers.get('x-request-id')).toBeTruthy()
  expect(await answer.json()).toMatchObject({ code: 'malformed_url' })
})

test.each(malformedUrls)('a service may say in its own words that %s cannot be decoded', async (path) => {
  await using service = await start({ badUrl: () => new HttpError(400, 'invalid_path', 'No path') })

  const answer = await fetch(`${service.url}${path}`)

  expect(await answer.json()).toMatchObject({ code: 'invalid_path', detail: 'No path' })
})

test.each([
  ['no HTTP at all', 'hello\r\n\r\n', '400 Bad Request', 'malformed_request'],
  ['a version without this framing', 'GET /things HTTP/2.0\r\nhost: a\r\n\r\n', '400 Bad Request', 'malformed_request'],
  ['headers without end', `GET / HTTP/1.1\r\nhost: a\r\nx: ${'y'.repeat(40_000)}\r\n\r\n`, '431 ', 'headers_too_large'],
])('%s is a problem too', async (_name, bytes, status, code) => {
  await using service = await start()

  const answer = await service.raw(bytes)

  expect(answer).toContain(`HTTP/1.1 ${status}`)
  expect(answer).toContain('content-type: application/problem+json')
  expect(answer).toContain(`"code":"${code}"`)
})

test('HEAD answers as GET without the body', async () => {
  await using service = await start()

  const answer = await service.raw('HEAD /things HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')

  expect(answer).toContain('200 OK')
  expect(answer).toMatch(/content-length: [1-9]/)
  expect(answer.split('\r\n\r\n')[1]).toBe('')
})

test.each([
  ['', { page: 1, page_size: 20, total_items: 41, total_pages: 3 }],
  ['?page=99&page_size=100', { page: 99, page_size: 100, total_items: 41, total_pages: 1 }],
])('a list says where it stands: %s', async (query, pagination) => {
  await using service = await start()

  const answer = await fetch(`${service.url}/things${query}`)

  expect(await answer.json()).toEqual({ things: [], pagination })
})

test.each(['page=0', 'page=-1', 'page=1.5', 'page=1e2', 'page=', 'page_size=101', 'page=1&page=2', 'Page=1'])(
  'a list refuses ?%s',
  async (query) => {
    await using service = await start()

    const answer = await fetch(`${service.url}/things?${query}`)

    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({
      code: 'validation_failed',
      errors: [{ path: `/query/${query.split('=')[0]}` }],
    })
  },
)

test.each([
  ['ok', 200],
  ['degraded', 200],
  ['unavailable', 503],
] as const)('health is %s: %i', async (status, code) => {
  const health = (): HealthReport => ({
    checks: { disk: { status }, other: { status: status === 'ok' ? 'ok' : 'degraded' } },
    fields: { extra: 'x' },
  })
  await using service = await start({ health })

  const answer = await fetch(`${service.url}/health`)

  expect([answer.status, answer.headers.get('cache-control')]).toEqual([code, 'no-store'])
  expect(await answer.json()).toEqual({
    status,
    version: '1.2.3',
    uptime_seconds: expect.any(Number),
    extra: 'x',
    checks: health().checks,
  })
  expect(service.lines().filter((line) => line.msg === 'request completed')).toEqual([])
})

test('metrics are given only to who has the token', async () => {
  await using service = await start({
    metrics: await createMetrics('metrics-token-1234'),
  })
  await fetch(`${service.url}/things`)

  const without = await fetch(`${service.url}/metrics`)
  const wrong = await fetch(`${service.url}/metrics`, {
    headers: { authorization: 'Bearer metrics-token-123' },
  })
  const right = await fetch(`${service.url}/metrics`, {
    headers: { authorization: 'Bearer metrics-token-1234' },
  })

  expect([without.status, wrong.status, right.status]).toEqual([401, 401, 200])
  expect(without.headers.get('www-authenticate')).toBe('Bearer')
  expect(wrong.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"')
  expect(right.headers.get('content-type')).toContain('text/plain')
  expect(await right.text()).toContain(
    'http_request_duration_seconds_count{method="GET",route="/things",status="200"} 1',
  )
})

test('without a metrics token there is no such path', async () => {
  await using service = await start()

  expect((await fetch(`${service.url}/metrics`)).status).toBe(404)
})

test('the description is OpenAPI 3.1 from the schemas that validate', async () => {
  await using service = await start()

  const answer = await fetch(`${service.url}/openapi.json`)

  const text = await answer.text()
  const description = Description.parse(JSON.parse(text))
  expect(description.openapi).toBe('3.1.0')
  expect(Object.keys(description.paths).sort()).toEqual([
    '/broken',
    '/health',
    '/range',
    '/reset',
    '/slow',
    '/things',
    '/things/{id}',
  ])
  const query = description.paths['/things']?.get?.parameters
  const names = Object.values(description.paths).flatMap((path) => Object.values(path).map((each) => each.operationId))
  const references = [...text.matchAll(/#\/components\/schemas\/(\w+)/g)].map((match) => match[1])
  expect(names).toEqual(['getHealth', 'listThings', 'addThings', 'reset', 'fail', 'readRange', 'wait'])
  expect(Object.keys(description.components.schemas).sort()).toEqual([...new Set(references)].sort())
  expect(query).toContainEqual(expect.objectContaining({ name: 'page_size', in: 'query', required: false }))
  expect(description.paths['/things/{id}']?.post?.responses.default?.content).toHaveProperty([
    'application/problem+json',
  ])
})

test('origins that are not named get no CORS headers', async () => {
  await using service = await start({ corsOrigin: ['https://app.example'] })
  const preflight = (origin: string) =>
    fetch(`${service.url}/things/a`, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization',
      },
    })

  const named = await preflight('https://app.example')
  const unnamed = await preflight('https://evil.example')
  const nowhere = await fetch(`${service.url}/nothing`)

  expect(named.status).toBe(204)
  expect(named.headers.has('content-length')).toBe(false)
  expect(named.headers.get('access-control-allow-origin')).toBe('https://app.example')
  expect(unnamed.headers.get('access-control-allow-origin')).toBeNull()
  expect(nowhere.status).toBe(404)
})

test('with CORS too, OPTIONS that is no preflight is a method like others', async () => {
  await using service = await start({ corsOrigin: ['https://app.example'] })
  const ask = (path: string, headers = {}) => fetch(service.url + path, { method: 'OPTIONS', headers })

  const known = await ask('/things')
  const unknown = await ask('/nothing')
  const preflight = await ask('/nothing', { 'access-control-request-method': 'GET' })

  expect([known.status, known.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  expect([unknown.status, preflight.status]).toEqual([404, 204])
})

test('a log line names the request, without its credentials and query', async () => {
  await using service = await start()

  await fetch(`${service.url}/things?page=2`, {
    headers: { authorization: 'Bearer very-secret', 'x-request-id': 'r1' },
  })
  service.app.log.info({ password: 'very-secret', user: { access_token: 'very-secret' } }, 'careless')

  await expect.poll(() => service.lines().map((line) => line.msg)).toContain('request completed')
  const line = service.lines().find((each) => each.msg === 'request completed')
  expect(line).toMatchObject({ request_id: 'r1', method: 'GET', path: '/things', status: 200 })
  expect(JSON.stringify(service.lines())).not.toContain('very-secret')
})

test('a request whose client left before the response is logged with the address of the client', async () => {
  await using service = await start()
  const client = new AbortController()
  const request = fetch(`${service.url}/slow`, { signal: client.signal })
  await service.slowEntered()

  client.abort()
  await expect(request).rejects.toThrow()

  const line = () => service.lines().find(({ msg }) => msg === 'request aborted')
  await expect.poll(line).toMatchObject({ method: 'GET', path: '/slow', client: '127.0.0.1' })
})

test('an app may take an hour until it is ready', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const starting = start({}, (app) =>
    app.addHook('onReady', () => {
      begun.resolve()
      return released.promise
    }),
  )
  await begun.promise

  vi.advanceTimersByTime(3_600_000)
  released.resolve()

  await using service = await starting
  expect((await fetch(`${service.url}/things`)).status).toBe(200)
})

test('what runs while the app stops is still answered', async () => {
  await using service = await start()
  const running = fetch(`${service.url}/slow`)
  await service.slowEntered()

  const closed = service.app.close()
  service.releaseSlow()

  expect((await running).status).toBe(200)
  await closed
})

test('GET / redirects to the docs, relative to its prefix', async () => {
  await using service = await start()

  const answer = await fetch(`${service.url}/`, { redirect: 'manual' })

  expect([answer.status, answer.headers.get('location')]).toEqual([302, 'docs'])
})

test('GET / accepts no query parameters, as the docs do', async () => {
  await using service = await start()

  const answers = await Promise.all(
    ['/?x=1', '/docs?x=1'].map((path) => fetch(service.url + path, { redirect: 'manual' })),
  )

  expect(answers.map(({ status }) => status)).toEqual([400, 400])
})

test.each([
  ['{"items": [],}', ': see line 1 column 14'],
  ['{\n  "items": [1\n  2]}', ': see line 3 column 3'],
  ['{"items": [', ''],
  ['{"items": }', ''],
])('invalid JSON is located where the parser knows the place: %j', async (body, place) => {
  await using service = await start()

  const answer = await fetch(`${service.url}/things/a`, { ...json({}), body })

  expect(await answer.json()).toMatchObject({
    code: 'malformed_body',
    detail: `The body is not valid JSON${place}`,
  })
})

test.each([
  ['{"items":[{"name":"xy"}]}', '/items/0/size', 'is missing'],
  ['{}', '/items', 'is missing'],
  ['{"items":"none"}', '/items', 'must be a list'],
  ['{"items":[1]}', '/items/0', 'must be an object'],
  ['{"items":[{"name":1,"size":1}]}', '/items/0/name', 'must be a string'],
])('a fault is described in plain words: %s', async (body, path, message) => {
  await using service = await start()

  const answer = await fetch(`${service.url}/things/a`, { ...json({}), body })

  const { errors } = z
    .object({ errors: z.array(z.object({ path: z.string(), message: z.string() })) })
    .parse(await answer.json())
  expect(errors).toContainEqual({ path, message })
})
