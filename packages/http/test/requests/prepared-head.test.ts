import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { HeadSender, type PreparedHead, prepareHead } from '../../src/requests/raw-route.ts'

type Respond = (response: ServerResponse, heads: HeadSender) => void

/** What a server sends for two requests, the second of which closes the connection; without dates. */
async function exchange(respond: Respond, { keepAliveMs = 72_000, request = 'GET' } = {}) {
  const server = createServer({ keepAliveTimeout: keepAliveMs })
  const heads = new HeadSender(keepAliveMs)
  server.on('request', (_request, response) => respond(response, heads))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const first = `${request} / HTTP/1.1\r\nHost: x\r\n\r\n`
  const socket = connect(port, '127.0.0.1')
  socket.write(`${first}GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  const bytes = await buffer(socket)
  await new Promise((resolve) => server.close(resolve))
  return bytes.toString('latin1').replaceAll(/^Date: \w{3}, .* GMT\r$/gm, 'Date\r')
}

const headers = { 'content-type': 'text/plain', 'content-length': '5', etag: '"é"' }

const written: Respond = (response) => {
  const all = { 'x-request-id': 'id', 'x-content-type-options': 'nosniff', ...headers }
  response.writeHead(200, all).end('hello', 'latin1')
}

const prepared =
  (head: PreparedHead, body?: string): Respond =>
  (response, heads) => {
    heads.write(response, head, 'id')
    response.end(body, 'latin1')
  }

test.each([
  ['GET', {}],
  ['HEAD', { request: 'HEAD' }],
  ['a server without a time limit for idle connections', { keepAliveMs: 0 }],
])('a prepared head has the bytes that writeHead sends: %s', async (_what, options) => {
  const head = prepareHead(200, headers)

  const ours = await exchange(prepared(head, 'hello'), options)

  expect(ours).toBe(await exchange(written, options))
  expect(ours.match(/^Date\r$/gm)).toHaveLength(2)
})

test('a prepared 304 has no body and no length', async () => {
  const head = prepareHead(304, { etag: '"a"' })

  const ours = await exchange(prepared(head))
  const fields = { 'x-request-id': 'id', 'x-content-type-options': 'nosniff', etag: '"a"' }
  const nodes = await exchange((response) => response.writeHead(304, fields).end())

  expect(ours).toBe(nodes)
})

test('where Node has no such internals, writeHead is called', () => {
  const calls: unknown[] = []
  const response = {
    shouldKeepAlive: true,
    writeHead: (...args: unknown[]) => calls.push(args),
  } as unknown as ServerResponse

  new HeadSender(5000).write(response, prepareHead(200, { etag: '"a"' }), 'id')

  const names = ['x-request-id', 'id', 'x-content-type-options', 'nosniff', 'etag', '"a"']
  expect(calls).toEqual([[200, names]])
})

test.each([
  ['a line break in a value', { etag: 'a\r\nset-cookie: b' }],
  ['a character that is no byte', { etag: '€' }],
  ['a colon in a name', { 'a:b': 'c' }],
])('an invalid header is refused: %s', (_what, invalid: Record<string, string>) => {
  expect(() => prepareHead(200, invalid)).toThrow(TypeError)
})
