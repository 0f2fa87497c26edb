import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CachedResponses } from '../../src/serving/cached-responses.ts'
import { ContentCache } from '../../src/serving/content-cache.ts'
import {
  metricsToken,
  type Raw,
  request,
  type StaticService,
  startStatic,
} from '../support/static-start.ts'

// Cached contents are answered before the framework. Nobody may be able to tell: each request is sent twice, once to
// each way, and everything that a client or an operator sees must be the same.

const text = 'The quick brown fox jumps over the lazy dog.\n'.repeat(100)
const long = 'x'.repeat(100_000)
let service: StaticService
let digest: string

beforeAll(async () => {
  service = await startStatic({
    TRUST_PROXY: '127.0.0.1',
    CORS_ORIGIN: 'https://example.com',
    STATIC_INDEX: 'index.html',
    STATIC_OFFLOAD: 'nginx',
    STATIC_OFFLOAD_BYTES: '50000',
  })
  const row = await service.put('notes.txt', text)
  digest = row.digest
  service.compressor.enqueue(row)
  await service.compressor.idle()
  await service.put('empty.bin', '')
  await service.put('page.html', '<p>hello')
  await service.put('deep/er/photo-1_2~.jpg', 'jpeg')
  await service.put('long.bin', long)
  await service.put('site/index.html', 'index')
  await service.put('a%2etxt', 'its name has a percent sign')
  await service.put('é.txt', 'not ASCII')
})
afterAll(() => service[Symbol.asyncDispose]())

type Way = 'early' | 'framework'

interface Sent {
  method: string
  target: string
  headers: Record<string, string>
}

// Both ways start from the same state.
async function fillCaches(target: string) {
  for (const encoding of ['identity', 'br', 'gzip']) {
    const plain = target.split('?')[0] ?? target
    if (plain !== '*') await service.ask(plain, { 'Accept-Encoding': encoding })
  }
}

async function send(way: Way, { method, target, headers }: Sent) {
  await fillCaches(target)
  service.early.isBypassed = way === 'framework'
  count += 1
  // Of one length: problems contain it.
  const id = `${way[0]}-${String(count).padStart(5, '0')}`
  const before = { early: service.early.count, figures: await scrape() }
  const answer = await service.ask(target, { ...headers, 'X-Request-Id': id }, method)
  const line = await lineOf(id)
  const isEarly = service.early.count > before.early
  service.early.isBypassed = false
  return { answer, line, isEarly, counted: increases(before.figures, await scrape()), id }
}
let count = 0

async function lineOf(id: string) {
  const find = () => service.lines().find(({ request_id }) => request_id === id)
  await expect.poll(find).toBeDefined()
  return { ...find(), time: '', ms: 0, request_id: '' }
}

async function scrape(): Promise<Map<string, number>> {
  const { body } = await service.ask('/metrics', { Authorization: `Bearer ${metricsToken}` })
  const figures = [...body.toString().matchAll(/^(http_\w+_count\S*|http_problems\S*) (\d+)$/gm)]
  return new Map(figures.map(([, name = '', value]) => [name, Number(value)]))
}

const increases = (before: Map<string, number>, after: Map<string, number>) =>
  [...after]
    .filter(([name]) => name.includes('/static/') || name.includes('problems'))
    .flatMap(([name, value]) => {
      const grown = value - (before.get(name) ?? 0)
      return grown > 0 ? [[name, grown]] : []
    })

// As they came, in order; what differs between any two responses is masked.
const visible = ({ status, headers, body }: Raw, id: string) => ({
  status,
  headers: Object.entries(headers).map(([name, value]) =>
    name === 'date' ? [name, ''] : [name, value.replace(id, 'id')],
  ),
  body: body.toString('latin1').replace(id, 'id'),
})

const now = 'Fri, 01 Jan 2999 00:00:00 GMT'
const past = 'Sun, 06 Nov 1994 08:49:37 GMT'

const cases: [
  what: string,
  headers: Record<string, string>,
  target?: string | undefined,
  method?: string,
][] = [
  ['a small file', {}],
  ['HEAD', {}, undefined, 'HEAD'],
  ['an empty file', {}, '/static/empty.bin'],
  ['HTML with its policy', {}, '/static/page.html'],
  ['a path of all plain characters', {}, '/static/deep/er/photo-1_2~.jpg'],
  ['a page of another origin', { Origin: 'https://example.com' }],
  ['a compressed form', { 'Accept-Encoding': 'gzip, br' }],
  ['HEAD of a compressed form', { 'Accept-Encoding': 'gzip, br' }, undefined, 'HEAD'],
  ['identity excluded', { 'Accept-Encoding': 'identity;q=0' }],
  ['If-None-Match with the tag', { 'If-None-Match': 'TAG' }],
  ['If-None-Match with a weak tag in a list', { 'If-None-Match': '"0", W/TAG' }],
  ['HEAD with If-None-Match', { 'If-None-Match': 'TAG' }, undefined, 'HEAD'],
  [
    'If-None-Match with the tag of another coding',
    { 'If-None-Match': 'TAG', 'Accept-Encoding': 'br' },
  ],
  ['If-None-Match: *', { 'If-None-Match': '*' }],
  ['If-Modified-Since later', { 'If-Modified-Since': now }],
  ['If-Modified-Since earlier', { 'If-Modified-Since': past }],
  ['If-Match with the tag', { 'If-Match': 'TAG' }],
  ['one range', { Range: 'bytes=4-8' }],
  ['an open range', { Range: 'bytes=4000-' }],
  ['a suffix', { Range: 'bytes=-5' }],
  ['a range, and a compressed form accepted', { Range: 'bytes=0-3', 'Accept-Encoding': 'br' }],
  ['HEAD with a range', { Range: 'bytes=0-3' }, undefined, 'HEAD'],
  ['If-Range with the tag', { Range: 'bytes=0-3', 'If-Range': 'TAG' }],
  ['a forwarded client', { 'X-Forwarded-For': '203.0.113.7' }],
  ['a forwarded client through an untrusted proxy', { 'X-Forwarded-For': '203.0.113.7, 10.0.0.1' }],
  ['a connection that closes', { Connection: 'close' }],
  ['a token', { Authorization: 'Bearer nonsense' }],
]

const leftToTheRoute: typeof cases = [
  ['a failed If-Match', { 'If-Match': '"0"' }],
  ['If-Unmodified-Since earlier', { 'If-Unmodified-Since': past }],
  ['a range past the end', { Range: 'bytes=99999-' }],
  ['a malformed range', { Range: 'bytes=x-y' }],
  ['If-Range with another tag', { Range: 'bytes=0-3', 'If-Range': '"0"' }],
  [
    'an offloaded file',
    { 'X-Forwarded-For': '1.2.3.4', 'X-Static-Offload': 'nginx' },
    '/static/long.bin',
  ],
  ['a version', {}, '/static/notes.txt?v=VERSION'],
  ['a download', {}, '/static/notes.txt?download'],
  ['an empty query', {}, '/static/notes.txt?'],
  ['an encoded letter', {}, '/static/%6eotes.txt'],
  ['a name with an encoded percent sign', {}, '/static/a%252etxt'],
  ['a name that looks encoded', {}, '/static/a%2etxt'],
  ['a name that is not ASCII', {}, '/static/%c3%a9.txt'],
  ['an absent file', {}, '/static/absent.txt'],
  ['a directory', {}, '/static/site/'],
  ['a directory without its slash', {}, '/static/site'],
  ['no path', {}, '/static/'],
  ['two slashes', {}, '/static//notes.txt'],
  ['dot segments', {}, '/static/deep/../notes.txt'],
  ['an absolute target', {}, 'http://localhost/static/notes.txt'],
  ['a fragment', {}, '/static/notes.txt#a'],
  ['POST', {}, undefined, 'POST'],
  ['OPTIONS', {}, undefined, 'OPTIONS'],
  ['a body', { 'Content-Length': '0' }],
  ['an upgrade', { Upgrade: 'h2c' }],
  ['a malformed Host', { Host: 'a b' }],
]

/** All bytes that a connection brings which stays open for a second request; without dates. */
async function sendKeptAlive(way: Way, { method, target, headers }: Sent) {
  await fillCaches(target)
  service.early.isBypassed = way === 'framework'
  const first = request(target, { ...headers, 'X-Request-Id': 'first' }, method)
  const second = request('/static/absent.txt', { 'X-Request-Id': 'second' }, 'GET')
  const socket = await service.open(first.replace('Connection: close\r\n', '') + second)
  const bytes = await buffer(socket)
  service.early.isBypassed = false
  return bytes.toString('latin1').replaceAll(/^Date: .* GMT\r$/gm, 'Date\r')
}

const fill = (value: string) => value.replace('TAG', `"${digest}"`).replace('VERSION', digest)

describe.each([
  ['is answered early', cases, true],
  ['is left to the route', leftToTheRoute, false],
])('%s, and both ways are alike:', (_what, table, isAnsweredEarly) => {
  test.each(table)(
    '%s',
    async (_request, headers, target = '/static/notes.txt', method = 'GET') => {
      const sent = {
        method,
        target: fill(target),
        headers: Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [name, fill(value)]),
        ),
      }

      const early = await send('early', sent)
      const framework = await send('framework', sent)

      expect(visible(early.answer, early.id)).toEqual(visible(framework.answer, framework.id))
      expect(early.line).toEqual(framework.line)
      expect(Object.keys(early.line)).toEqual(Object.keys(framework.line))
      expect(early.counted).toEqual(framework.counted)
      expect([early.isEarly, framework.isEarly]).toEqual([isAnsweredEarly, false])
    },
  )
})

test.each(cases)(
  'on a connection that stays open both ways send the same bytes: %s',
  async (_request, headers, target = '/static/notes.txt', method = 'GET') => {
    const filled = Object.entries(headers).map(([name, value]) => [name, fill(value)])
    const sent = { method, target, headers: Object.fromEntries(filled) }

    const early = await sendKeptAlive('early', sent)
    const framework = await sendKeptAlive('framework', sent)

    expect(early).toBe(framework)
    expect(early).toContain('\r\nDate\r\nConnection: ')
  },
)

test('a file that changed this second is left to the route, since its date is not reliable yet', async () => {
  let now = Date.now()
  await using own = await startStatic({}, { now: () => now })
  const row = await own.put('new.txt', 'hello')
  await own.ask('/static/new.txt')
  now = Date.parse(row.updatedAt)

  const first = await own.ask('/static/new.txt')
  const early = own.early.count
  now += 1000
  const second = await own.ask('/static/new.txt')

  expect([first.headers['last-modified'], early]).toEqual([undefined, 0])
  expect(second.headers['last-modified']).toBeDefined()
  expect(own.early.count).toBe(1)
})

test('a replaced, deleted or restored file is never answered early from old bytes', async () => {
  await service.put('changing.txt', 'one')
  const bodies: string[] = []
  const read = async () => {
    await service.ask('/static/changing.txt')
    bodies.push((await service.ask('/static/changing.txt')).body.toString().slice(0, 3))
  }
  await read()
  await service.put('changing.txt', 'two')
  await read()
  await service.catalog.remove('changing.txt')
  await read()
  await service.put('changing.txt', 'six')
  await read()

  expect(bodies).toEqual(['one', 'two', '{"t', 'six'])
})

test('while the service stops, a response closes its connection, as the framework would', async () => {
  const own = await startStatic()
  await own.put('a.txt', 'hello')
  await own.ask('/static/a.txt')
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

test('the first request for a small file is answered early, and none that comes after its deletion', async () => {
  await service.put('first.txt', text)
  const stored = Math.floor(Date.now() / 1000)
  await expect.poll(() => Math.floor(Date.now() / 1000)).toBeGreaterThan(stored)
  const before = service.early.count

  const first = await service.ask('/static/first.txt')
  await service.catalog.remove('first.txt')
  const second = await service.ask('/static/first.txt')

  expect([service.early.count - before, first.body.toString()]).toEqual([1, text])
  expect(second.status).toBe(404)
})

test('a failure of the disk is left to the framework', () => {
  const cache = new ContentCache({
    store: service.store,
    catalog: Object.assign(Object.create(service.catalog), {
      isExclusive: true,
      onChange: () => undefined,
      findNow: () => {
        throw new Error('disk I/O error')
      },
    }),
    compressor: Object.assign(Object.create(service.compressor), { onForm: () => undefined }),
    memoryBytes: 1_000_000,
    describe: () => expect.fail('nothing was found'),
  })
  const message = { method: 'GET', url: '/static/notes.txt', headers: {} } as IncomingMessage

  expect(new CachedResponses(cache, undefined).respond(message)).toBeUndefined()
})
