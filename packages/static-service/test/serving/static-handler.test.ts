import type { Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { metricsToken, type StaticService, startStatic } from '../support/static-start.ts'

const text = 'The quick brown fox jumps over the lazy dog.\n'.repeat(100)
const large = 'x'.repeat(300_000)
let service: StaticService
let digest: string

beforeAll(async () => {
  service = await startStatic({
    TRUST_PROXY: '127.0.0.1',
    STATIC_INDEX: 'index.html',
    STATIC_OFFLOAD: 'nginx',
    STATIC_OFFLOAD_BYTES: '50000',
  })
  const row = await service.put('notes.txt', text)
  digest = row.digest
  service.compressor.enqueue(row)
  await service.compressor.idle()
  await service.put('large.bin', large)
  await service.put('site/index.html', 'index')
})
afterAll(() => service[Symbol.asyncDispose]())

const tag = () => `"${digest}"`

interface Case {
  target?: string
  method?: string
  headers?: Record<string, string>
}

const cases: [what: string, request: Case, status: number, body: string | undefined][] = [
  ['a file', {}, 200, text],
  ['HEAD', { method: 'HEAD' }, 200, ''],
  ['a large file', { target: '/static/large.bin' }, 200, large],
  ['HEAD of a large file', { target: '/static/large.bin', method: 'HEAD' }, 200, ''],
  ['a part', { headers: { Range: 'bytes=4-8' } }, 206, 'quick'],
  [
    'a part for a client that takes the compressed form',
    { headers: { Range: 'bytes=4-8', 'Accept-Encoding': 'br' } },
    206,
    'quick',
  ],
  ['a part of a large file', { target: '/static/large.bin', headers: { Range: 'bytes=-3' } }, 206, 'xxx'],
  ['HEAD with a range', { headers: { Range: 'bytes=4-8' }, method: 'HEAD' }, 200, ''],
  ['a known tag', { headers: { 'If-None-Match': 'TAG' } }, 304, ''],
  ['HEAD with a known tag', { headers: { 'If-None-Match': 'TAG' }, method: 'HEAD' }, 304, ''],
  ['a failed condition', { headers: { 'If-Match': '"0"' } }, 412, undefined],
  ['a range past the end', { headers: { Range: 'bytes=99999-' } }, 416, undefined],
  ['a download', { target: '/static/notes.txt?download' }, 200, text],
  ['an encoded letter', { target: '/static/%6eotes.txt' }, 200, text],
  ['an absolute target', { target: 'http://localhost/static/notes.txt' }, 200, text],
  ['an encoded prefix', { target: '/st%61tic/notes.txt' }, 200, text],
  ['an index', { target: '/static/site/' }, 200, 'index'],
  ['a directory without its slash', { target: '/static/site' }, 302, ''],
  ['an absent file', { target: '/static/absent.txt' }, 404, undefined],
  ['a path of too many segments', { target: `/static/${'x/'.repeat(32)}x` }, 400, undefined],
  ['POST', { method: 'POST' }, 405, undefined],
  ['OPTIONS', { method: 'OPTIONS' }, 405, undefined],
  ['a body that nobody reads', { headers: { 'Content-Length': '0' } }, 200, text],
  ['a malformed Host', { headers: { Host: 'a b' } }, 400, undefined],
  [
    'an offloaded file',
    {
      target: '/static/large.bin',
      headers: { 'X-Forwarded-For': '203.0.113.7', 'X-Static-Offload': 'nginx' },
    },
    200,
    '',
  ],
]

/** How often requests of this method and status below /static were counted. */
async function countOf(method: string, status: number): Promise<number> {
  const { body } = await service.ask('/metrics', { Authorization: `Bearer ${metricsToken}` })
  const series = `http_request_duration_seconds_count{method="${method}",route="/static/*",status="${status}"} `
  const line = body
    .toString()
    .split('\n')
    .find((each) => each.startsWith(series))
  return Number(line?.slice(series.length) ?? 0)
}

describe('each response has its status and body, what all have, a line in the log, and is counted', () => {
  test.each(cases)('%s', async (what, { target = '/static/notes.txt', ...more }, status, body) => {
    const { method = 'GET', headers = {} } = more
    const sent = Object.entries(headers).map(([name, value]) => [name, value.replace('TAG', tag())])
    const id = `id of ${what}`
    const before = await countOf(method, status)

    const answer = await service.ask(target, { ...Object.fromEntries(sent), 'X-Request-Id': id }, method)

    expect(answer.status).toBe(status)
    if (body === undefined) {
      expect(answer.headers['content-type']).toBe('application/problem+json')
      expect(JSON.parse(answer.body.toString()).request_id).toBe(id)
    } else expect(answer.body.toString()).toBe(body)
    expect(answer.headers).toMatchObject({
      'x-request-id': id,
      'x-content-type-options': 'nosniff',
      'access-control-allow-origin': '*',
      'cross-origin-resource-policy': 'cross-origin',
    })
    const line = () => service.lines().find(({ request_id }) => request_id === id)
    await expect.poll(line).toMatchObject({
      level: 'info',
      method,
      path: target.split('?')[0],
      status,
      client: headers['X-Forwarded-For'] ?? '127.0.0.1',
      msg: 'request completed',
    })
    expect(await countOf(method, status)).toBe(before + 1)
  })
})

test.each(cases)('a response on a connection that stays open is followed by the next: %s', async (...row) => {
  const [, { target = '/static/notes.txt', method = 'GET', headers = {} }, status] = row
  if (headers.Host) return // It closes the connection.
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value.replace('TAG', tag())}\r\n`)
  const socket = await service.open(
    `${method} ${target} HTTP/1.1\r\nHost: x\r\n${fields.join('')}\r\n` +
      'GET /static/site/index.html HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  )

  const all = (await socket.toArray()).join('')

  expect(all).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  expect(all.endsWith('\r\n\r\nindex')).toBe(true)
})

test('a preflight of any origin is granted, and has no body', async () => {
  const preflight = { Origin: 'https://example.com', 'Access-Control-Request-Method': 'GET' }

  const { status, headers, body } = await service.ask('/static/notes.txt', preflight, 'OPTIONS')

  expect([status, body.length]).toEqual([204, 0])
  expect(headers['content-length']).toBeUndefined()
  expect(headers).toMatchObject({
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'GET, HEAD',
    'access-control-allow-headers': '*, authorization',
  })
})

test('OPTIONS without an origin is no preflight, but a method like others', async () => {
  const headers = { 'Access-Control-Request-Method': 'GET' }

  const { status, headers: answered } = await service.ask('/static/notes.txt', headers, 'OPTIONS')

  expect([status, answered.allow]).toEqual([405, 'GET, HEAD'])
})

test('a replaced, deleted or restored file is never answered from old bytes', async () => {
  await service.put('changing.txt', 'one')
  const bodies: string[] = []
  const read = async () => {
    await service.ask('/static/changing.txt')
    bodies.push((await service.ask('/static/changing.txt')).body.toString().slice(0, 3))
  }
  await read()
  await service.put('changing.txt', 'two')
  await read()
  await service.catalog.writes.remove({ paths: ['changing.txt'] })
  await read()
  await service.put('changing.txt', 'six')
  await read()

  expect(bodies).toEqual(['one', 'two', '{"t', 'six'])
})

test('a failing disk is a 500, in the words of every other', async () => {
  const { catalog } = service
  const findNow = vi.spyOn(catalog, 'findNow').mockImplementation(() => {
    throw new Error('disk I/O error')
  })

  const answer = await service.ask('/static/never-read.txt')
  findNow.mockRestore()

  expect([answer.status, JSON.parse(answer.body.toString()).code]).toEqual([500, 'internal_error'])
  expect(JSON.stringify(service.lines())).toContain('disk I/O error')
})

test('while the service stops, a response closes its connection', async () => {
  const own = await startStatic()
  await own.put('a.txt', 'hello')
  const socket = await own.open('GET /static/a.txt HTTP/1.1\r\nHost: x\r\n\r\n')
  const first = await firstChunk(socket)
  const stopping = own[Symbol.asyncDispose]()

  socket.write('GET /static/a.txt HTTP/1.1\r\nHost: x\r\n\r\n')
  let rest = ''
  socket.on('data', (chunk) => {
    rest += chunk
  })
  socket.on('error', () => undefined)
  await stopping

  expect(first).toMatch(/connection: keep-alive/i)
  expect(rest === '' || /connection: close/i.test(rest)).toBe(true)
})

const firstChunk = (socket: Socket) =>
  new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(String(chunk))))
