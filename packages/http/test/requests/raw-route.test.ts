import { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { HttpError, prepareHead, type RawResponse, type RawRoute } from '../../src/index.ts'
import { start } from '../support/start.ts'

const route = (respond: RawRoute['respond']): RawRoute => ({
  prefix: '/raw/',
  url: '/raw/*',
  failureHeaders: { 'cache-control': 'no-store' },
  respond,
})

const response = (body: RawResponse['body'] = 'hello'): RawResponse => ({
  head: prepareHead(200, { 'content-length': '5' }),
  body,
})

async function* chunks(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text)
}

test.each<[string, RawRoute['respond']]>([
  ['a string', () => response()],
  ['a buffer', () => response(Buffer.from('hello'))],
  ['chunks', () => response(chunks('he', 'llo'))],
  ['what is known later', async () => response()],
])('%s is sent, logged and counted once', async (_what, respond) => {
  await using service = await start({ rawRoutes: [route(respond)] })

  const answer = await fetch(`${service.url}/raw/a?b`, { headers: { 'x-request-id': 'mine' } })

  expect([answer.status, await answer.text()]).toEqual([200, 'hello'])
  expect(answer.headers.get('x-request-id')).toBe('mine')
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
  const completed = () => service.lines().filter(({ msg }) => msg === 'request completed')
  await expect.poll(completed).toHaveLength(1)
  expect(completed()[0]).toMatchObject({ method: 'GET', path: '/raw/a', status: 200 })
})

test.each([
  [
    'thrown',
    () => {
      throw new HttpError(404, 'gone_away', 'It is not here')
    },
  ],
  ['rejected', () => Promise.reject(new HttpError(404, 'gone_away', 'It is not here'))],
])('a failure that is %s becomes problem details', async (_how, respond) => {
  await using service = await start({ rawRoutes: [route(respond)] })

  const answer = await fetch(`${service.url}/raw/a`, { headers: { 'x-request-id': 'mine' } })

  expect(answer.status).toBe(404)
  expect(answer.headers.get('content-type')).toBe('application/problem+json')
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(await answer.json()).toMatchObject({ code: 'gone_away', request_id: 'mine' })
})

test('a bug becomes a bare 500, logged with its stack', async () => {
  const respond = () => Promise.reject(new Error('a secret detail'))
  await using service = await start({ rawRoutes: [route(respond)] })

  const answer = await fetch(`${service.url}/raw/a`, { headers: { 'x-request-id': 'mine' } })

  expect(answer.status).toBe(500)
  expect(await answer.text()).not.toContain('secret')
  expect(service.lines()).toContainEqual(
    expect.objectContaining({ msg: 'request failed', request_id: 'mine', err: expect.anything() }),
  )
})

test('a body that fails half-way ends the connection, and the log says why', async () => {
  async function* failing() {
    yield Buffer.from('he')
    throw new Error('the disk failed')
  }
  await using service = await start({ rawRoutes: [route(() => response(failing()))] })

  const answer = await fetch(`${service.url}/raw/a`)

  await expect(answer.text()).rejects.toThrow()
  const aborted = () => service.lines().filter(({ msg }) => msg === 'request aborted')
  await expect.poll(aborted).toEqual([
    expect.objectContaining({
      status: 200,
      err: expect.objectContaining({ message: 'the disk failed' }),
    }),
  ])
})

test('a client that leaves before its response closes what the body reads from', async () => {
  const arrived = Promise.withResolvers<void>()
  const opened = Promise.withResolvers<RawResponse>()
  const closed = Promise.withResolvers<void>()
  const respond = () => {
    arrived.resolve()
    return opened.promise
  }
  await using service = await start({ rawRoutes: [route(respond)] })
  const left = new Promise((resolve) =>
    service.app.server.once('connection', (socket) => socket.once('close', resolve)),
  )
  const client = connect(Number(new URL(service.url).port), '127.0.0.1')
  client.write('GET /raw/a HTTP/1.1\r\nHost: x\r\n\r\n')
  await arrived.promise
  client.resetAndDestroy()
  await left

  opened.resolve(
    response({
      next: () => expect.unreachable('nobody reads it'),
      return: async () => {
        closed.resolve()
        return { done: true, value: undefined }
      },
    }),
  )

  await closed.promise
  await expect.poll(() => service.lines().filter(({ msg }) => msg === 'request aborted')).toHaveLength(1)
})

test('a connection that ends just before a chunk is written closes what the body reads from', async () => {
  const closed = Promise.withResolvers<void>()
  const respond: RawRoute['respond'] = ({ socket }) =>
    response({
      next: async () => {
        socket.destroy()
        return { done: false, value: Buffer.from('hello') }
      },
      return: async () => {
        closed.resolve()
        return { done: true, value: undefined }
      },
    })
  await using service = await start({ rawRoutes: [route(respond)] })

  await expect(fetch(`${service.url}/raw/a`)).rejects.toThrow()

  await closed.promise
})

test('a pipelined request is served after the response before it was sent', async () => {
  const first = Promise.withResolvers<RawResponse>()
  const began: string[] = []
  const respond: RawRoute['respond'] = ({ url = '' }) => {
    began.push(url)
    return url === '/raw/1' ? first.promise : response('two..')
  }
  await using service = await start({ rawRoutes: [route(respond)] })
  const request = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`
  const text = service.raw(request('/raw/1') + request('/raw/2'), '\r\n\r\ntwo..')
  await expect.poll(() => began).toEqual(['/raw/1'])

  first.resolve(response('one..'))

  expect((await text).indexOf('one..')).toBeGreaterThan(-1)
  expect(began).toEqual(['/raw/1', '/raw/2'])
})

test.each([
  ['in absolute form', 'http://elsewhere/raw/a', 200],
  ['with an encoded letter', '/%72aw/a', 200],
  ['of another route', '/things', 200],
  ['of no route', '/raw', 404],
])('a target %s reaches its route', async (_what, target, status) => {
  await using service = await start({ rawRoutes: [route(() => response())] })

  const text = await service.raw(`GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`, '\r\n\r\n')

  expect(text).toContain(`HTTP/1.1 ${status} `)
})

test.each([
  [true, 10_000],
  [false, 60_000],
])('where memory is scarce (%s) a client may stall for %i ms', async (isScarce, ms) => {
  const setTimeout = vi.spyOn(ServerResponse.prototype, 'setTimeout')
  onTestFinished(() => setTimeout.mockRestore())
  const body = Object.assign(chunks('hello'), { isScarce })
  await using service = await start({ rawRoutes: [route(() => response(body))] })

  await (await fetch(`${service.url}/raw/a`)).text()

  expect(setTimeout).toHaveBeenLastCalledWith(ms)
})

test('more pipelined requests than anybody needs end the connection', async () => {
  const first = Promise.withResolvers<RawResponse>()
  let count = 0
  const respond = () => {
    count += 1
    return first.promise
  }
  await using service = await start({ rawRoutes: [route(respond)] })

  const client = connect(Number(new URL(service.url).port), '127.0.0.1')
  let received = ''
  client.on('data', (bytes) => {
    received += bytes
  })
  // A reset, if the service had not read all of it.
  client.on('error', () => undefined)
  const closed = new Promise((resolve) => client.once('close', resolve))

  client.write('GET /raw/a HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(100))

  await closed
  expect([received, count]).toEqual(['', 1])
})
