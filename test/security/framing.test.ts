import { once } from 'node:events'
import net from 'node:net'
import { describe, expect, test } from 'vitest'
import { start as startStatic } from '../../packages/static-service/test/support/start.ts'
import { answersIn, exchange, names, readAll, shareTarget } from './start.ts'

// Framing that a proxy and the service could parse differently (request smuggling). A closing request follows each case:
// if it is answered, the bytes before it were parsed as exactly as many requests as there were responses.
const last = 'GET /health HTTP/1.1\r\nhost: a\r\nx-request-id: last\r\nconnection: close\r\n\r\n'
const hidden = 'GET /health HTTP/1.1\r\nhost: a\r\nx-request-id: hidden\r\n\r\n'

const post = (headers: string, body: string) =>
  `POST /api/auth/login HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n${headers}\r\n\r\n${body}`
const chunked = (body: string) => post('transfer-encoding: chunked', body)
const get = (headers: string) => `GET /health HTTP/1.1\r\n${headers}\r\n\r\n`
const coded = (coding: string) => post(`transfer-encoding:${coding}`, '2\r\n{}\r\n0\r\n\r\n')

const refused: [string, string][] = [
  ['a length and chunks', post('content-length: 6\r\ntransfer-encoding: chunked', '0\r\n\r\nX')],
  ['chunks and a length', post('transfer-encoding: chunked\r\ncontent-length: 6', '0\r\n\r\nX')],
  ['two lengths', post('content-length: 2\r\ncontent-length: 3', '{}X')],
  ['the same length twice', post('content-length: 2\r\ncontent-length: 2', '{}')],
  ['a list of lengths', post('content-length: 2, 2', '{}')],
  ['a length with a sign', post('content-length: +2', '{}')],
  ['a negative length', post('content-length: -2', '{}')],
  ['a length in hex', post('content-length: 0x2', '{}')],
  ['a length past all numbers', post('content-length: 99999999999999999999', '{}')],
  ['a space before the colon', post('content-length : 2', '{}')],
  ...[' xchunked', ' chunked, identity', ' identity', ' gzip, chunked', ' chunked\x0b', ' "chunked"']
    .concat([' chunked;q=1', ' chunked, chunked', ' cow', '\r\n chunked', ''])
    .map((coding): [string, string] => [`the coding ${JSON.stringify(coding)}`, coded(coding)]),
  ['a coding twice', post('transfer-encoding: chunked\r\ntransfer-encoding: chunked', '0\r\n\r\n')],
  ['a coding in HTTP/1.0', coded(' chunked').replace('1.1', '1.0')],
  ['a chunk size in hex notation', chunked('0x2\r\n{}\r\n0\r\n\r\n')],
  ['a negative chunk size', chunked('-2\r\n{}\r\n0\r\n\r\n')],
  ['a space after the chunk size', chunked('2 \r\n{}\r\n0\r\n\r\n')],
  ['a chunk size past all numbers', chunked('fffffffffffffffff\r\n{}\r\n0\r\n\r\n')],
  ['a chunk that is longer than it says', chunked('1\r\n{}\r\n0\r\n\r\n')],
  ['a chunk that is shorter than it says', chunked('3\r\n{}\r\n0\r\n\r\n')],
  ['chunks that end their lines with LF', chunked('2\n{}\n0\n\n')],
  ['a chunk extension without end', chunked(`2;${'x'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`)],
  ['a length among the trailers', chunked('2\r\n{}\r\n0\r\ncontent-length: 9\r\n\r\n')],
  ['lines that end with LF', get('host: a').replaceAll('\r\n', '\n')],
  ['one line that ends with LF', get('host: a\nx: y')],
  ['one line that ends with CR', get('host: a\rx: y')],
  ['a folded header', get('host: a\r\nx: y\r\n z')],
  ['a NUL in a header', get('host: a\r\nx: y\0z')],
  ['a header without a colon', get('host: a\r\nnonsense')],
  ['a header without a name', get('host: a\r\n: x')],
  ['no Host', get('x: y')],
  ['two Hosts', get('host: a\r\nhost: b')],
  ['a Host that is none', get('host: a b')],
  ['a Host with a path', get('host: a/b')],
  ['a Host with somebody', get('host: me@a')],
  ['HTTP/0.9', 'GET /health\r\n\r\n'],
  ['HTTP/1.2', get('host: a').replace('1.1', '1.2')],
  ['HTTP/2 without TLS', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['a tunnel', 'CONNECT a:443 HTTP/1.1\r\nhost: a\r\n\r\n'],
  ['a path without its slash', get('host: a').replace('/health', 'health')],
  ['the path * of a server, with GET', get('host: a').replace('/health', '*')],
  ['a path with a fragment', get('host: a').replace('/health', '/health#x')],
  ['a method that is none', get('host: a').replace('GET', 'G\u00c9T')],
]

const taken: [string, string, number[]][] = [
  ['chunks', chunked('2\r\n{}\r\n0\r\n\r\n'), [400]],
  ['chunks by another case', coded(' CHUNKED'), [400]],
  ['a chunk extension', chunked('2;a=b\r\n{}\r\n0\r\n\r\n'), [400]],
  ['a trailer', chunked('2\r\n{}\r\n0\r\nx: y\r\n\r\n'), [400]],
  ['a body where none is read', `${get(`host: a\r\ncontent-length: ${hidden.length}`)}${hidden}`, [200]],
  ['a body for nobody', `PUT /nothing HTTP/1.1\r\nhost: a\r\ncontent-length: ${hidden.length}\r\n\r\n${hidden}`, [404]],
  [
    'a body by a wrong method',
    `PUT /health HTTP/1.1\r\nhost: a\r\ncontent-length: ${hidden.length}\r\n\r\n${hidden}`,
    [405],
  ],
  [
    'a body of a wrong type',
    post('', '').replace('json\r\n\r\n\r\n', `x\r\ncontent-length: ${hidden.length}\r\n\r\n${hidden}`),
    [415],
  ],
  ['an empty line before', `\r\n${get('host: a')}`, [200]],
  ['three at once', get('host: a').repeat(3), [200, 200, 200]],
  ['an expectation nobody knows', get('host: a\r\nexpect: cake'), [200]],
  ['an expectation that is met', post('expect: 100-continue\r\ncontent-length: 2', '{}'), [100, 400]],
  ['a Content-Length listed in Connection', post('connection: content-length\r\ncontent-length: 2', '{}'), [400]],
  ['another version of the same target', get('host: a').replace('/health', 'http://b/health'), [200]],
]

describe.each(names)('%s', (name) => {
  const target = shareTarget(name)

  test.each(refused)('rejects %s and closes the connection', async (_name, bytes) => {
    const answers = answersIn(await exchange(target().port, `${bytes}${last}`))

    expect(answers).toMatchObject([{ status: 400, code: 'malformed_request', type: 'application/problem+json' }])
    expect(answers[0]?.id).not.toBe('last')
  })

  test.each(taken)('parses %s correctly', async (_name, bytes, statuses) => {
    const answers = answersIn(await exchange(target().port, `${bytes}${last}`))

    expect(answers.map(({ status }) => status)).toEqual([...statuses, 200])
    expect(answers.map(({ id }) => id)).not.toContain('hidden')
    expect(answers.at(-1)?.id).toBe('last')
  })

  test('an upgrade is ignored, and the connection closes with the response', async () => {
    const upgrade = get('host: a\r\nconnection: upgrade\r\nupgrade: websocket')

    const answers = answersIn(await exchange(target().port, `${upgrade}${last}`))

    expect(answers).toMatchObject([{ status: 200 }])
  })

  test('a pending response is sent before later garbage closes the connection', async () => {
    const answers = answersIn(await exchange(target().port, `${hidden}garbage\r\n\r\n${last}`))

    expect(answers).toMatchObject([{ status: 200, id: 'hidden' }])
  })

  test('two Authorization headers are rejected', async () => {
    const token = await target().tokenOf('admin')
    const ask = (headers: string) =>
      exchange(target().port, `GET /api/auth/me HTTP/1.1\r\nhost: a\r\n${headers}connection: close\r\n\r\n`)
    const [good, bad] = [`authorization: Bearer ${token}\r\n`, 'authorization: Bearer x\r\n']

    const texts = [await ask(good), await ask(good + bad), await ask(bad + good), await ask(good + good)]

    expect(texts.flatMap(answersIn).map(({ status }) => status)).toEqual([200, 401, 401, 401])
  })

  test('3,000 headers are all read, 9,000 are too many', async () => {
    const ask = (count: number) =>
      exchange(target().port, get(`host: a\r\n${'a:b\r\n'.repeat(count)}x-request-id: seen\r\nconnection: close`))

    const answers = [await ask(3000), await ask(9000)].flatMap(answersIn)

    expect(answers).toMatchObject([
      { status: 200, id: 'seen' },
      { status: 431, code: 'headers_too_large' },
    ])
  })
})

test('an error response is never written into a file being sent', async () => {
  await using service = await startStatic()
  await service.put('big.bin', Buffer.alloc(8_000_000, 'A'))
  const socket = net.connect(service.port, '127.0.0.1')
  socket.write('GET /static/big.bin HTTP/1.1\r\nhost: a\r\n\r\n')
  await once(socket, 'readable')

  socket.write('garbage\r\n\r\n')
  const text = await readAll(socket)

  expect(answersIn(text)).toMatchObject([{ status: 200 }])
  expect(text.slice(text.indexOf('\r\n\r\n') + 4)).toBe('A'.repeat(8_000_000))
})

test('a body aborted after its response gets no second response', async () => {
  await using service = await startStatic()
  const socket = net.connect(service.port, '127.0.0.1')
  socket.write('POST /nothing HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx')
  await once(socket, 'readable')

  socket.write('garbage\r\n')
  const text = await readAll(socket)

  expect(answersIn(text)).toMatchObject([{ status: 404 }])
})
