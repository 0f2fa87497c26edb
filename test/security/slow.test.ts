import { once } from 'node:events'
import net from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { boundary, start as startStatic } from '../../packages/static-service/test/support/start.ts'
import { openBlobs } from '../../packages/static-service/test/support/stored-contents.ts'
import { answersIn, exchange, names, readAll, shareTarget, startTarget } from './start.ts'

const quick = { HEADERS_TIMEOUT_MS: '300', BODY_IDLE_TIMEOUT_MS: '100' }
// For what must not stall: a busy machine stops a test for some hundred milliseconds.
const patient = { STALL_TIMEOUT_MS: '2000', BODY_IDLE_TIMEOUT_MS: '2000' }
const health = 'GET /health HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n'

/** Sends a prefix, then single bytes until the peer closes; resolves with what was received. */
async function trickle(port: number, beginning: string, drip = 'x'): Promise<string> {
  const socket = net.connect(port, '127.0.0.1')
  socket.write(beginning)
  const timer = setInterval(() => socket.writable && socket.write(drip), 20)
  socket.on('close', () => clearInterval(timer))
  return readAll(socket)
}

const post = (path: string, type: string) =>
  `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: ${type}\r\ncontent-length: 10000\r\n`

describe.each(names)('%s', (name) => {
  const target = shareTarget(name, quick)

  test.each([
    ['that says nothing', '', ''],
    ['that says nothing but line ends', '', '\r\n'],
    ['whose request line trickles', 'GET /'],
    ['whose headers trickle', 'GET /health HTTP/1.1\r\nhost: a\r\nx: '],
    ['whose body trickles', `${post('/api/auth/login', 'application/json')}\r\n{`],
    ['whose body trickles in chunks', chunked('/api/auth/login')],
  ])('a connection %s gets an error and is closed, while others are served', async (_name, beginning, drip = 'x') => {
    const slow = Array.from({ length: 5 }, () => trickle(target().port, beginning, drip))
    await expectServed(target().port)
    const ended = (await Promise.all(slow)).map(answersIn)

    expect(ended).toEqual(Array(5).fill([expect.objectContaining({ status: 408, code: 'request_timeout' })]))
  })

  test.each([
    ['nobody takes', '/nothing', 404],
    ['came to a wrong method', '/api/auth/me', 405],
    ['came to a broken path', '/api/%ff', 400],
  ])('a trickling body that %s is answered once, and ended', async (_name, path, status) => {
    const text = await trickle(target().port, `${post(path, 'application/json')}\r\n`)

    expect(answersIn(text).map((answer) => answer.status)).toEqual([status])
  })

  test('an idle connection between requests is not closed early', async () => {
    const askTwice = async () => {
      const socket = net.connect(target().port, '127.0.0.1').on('error', () => undefined)
      onTestFinished(() => void socket.destroy())
      socket.write('GET /health HTTP/1.1\r\nhost: a\r\n\r\n')
      await once(socket, 'readable')
      await trickle(target().port, 'GET /') // As long as a slow one is borne.
      socket.write(health)
      return answersIn(await readAll(socket)).map(({ status }) => status)
    }

    // On a machine that stands still, its requests may be slow ones.
    await expect.poll(askTwice).toEqual([200, 200])
  })
})

// On a machine that stands still, this request may be a slow one, too.
const expectServed = (port: number) =>
  expect.poll(async () => answersIn(await exchange(port, health))).toMatchObject([{ status: 200 }])

function chunked(path: string) {
  return `${post(path, 'application/json').replace(/content-length.*/, 'transfer-encoding: chunked')}\r\nfffff\r\n{`
}

describe('uploads', () => {
  const begin = async (port: number, token: string) => {
    const socket = net.connect(port, '127.0.0.1')
    socket.write(
      `POST /api/files/upload HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${token}\r\n` +
        `content-type: multipart/form-data; boundary=${boundary}\r\ntransfer-encoding: chunked\r\n\r\n`,
    )
    const write = (text: string) => socket.write(`${text.length.toString(16)}\r\n${text}\r\n`)
    write(`--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n`)
    return { socket, write }
  }

  test('a trickling upload is aborted and leaves nothing behind', async () => {
    await using service = await startStatic({ env: quick })
    const { socket, write } = await begin(service.port, await service.tokenOf('editor'))
    const timer = setInterval(() => socket.writable && write('x'), 20)
    socket.on('close', () => clearInterval(timer))

    const answers = answersIn(await readAll(socket))

    expect(answers).toMatchObject([{ status: 408, code: 'request_timeout' }])
    await expect.poll(() => service.storedContents()).toEqual([])
  })

  test('an upload that makes progress may take longer than the time of an idle one', async () => {
    await using service = await startStatic({ env: patient })
    const { socket, write } = await begin(service.port, await service.tokenOf('editor'))
    const end = () => {
      write(`\r\n--${boundary}--\r\n`)
      socket.write('0\r\n\r\nGET /health HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
    }
    let left = 30
    const timer = setInterval(() => {
      // 1 KiB a second suffices.
      if (left-- > 0) return write('x'.repeat(100_000))
      clearInterval(timer)
      return end()
    }, 100)

    const answers = answersIn(await readAll(socket))

    expect(answers).toMatchObject([{ status: 201 }, { status: 200 }])
  })
})

test('a client that does not read its large file is disconnected, and the file is released', async () => {
  await using service = await startStatic({ env: patient })
  expect((await service.put('big.bin', Buffer.alloc(20_000_000))).status).toBe(201)
  const socket = net.connect(service.port, '127.0.0.1').on('error', () => undefined)
  socket.write('GET /static/big.bin HTTP/1.1\r\nhost: a\r\n\r\n')

  await once(socket, 'readable') // The file is open; no more is read.
  await expect.poll(openBlobs).toBe(0)

  const received = await readAll(socket)
  expect(answersIn(received.slice(0, 1000))).toMatchObject([{ status: 200 }])
  expect(received.length).toBeLessThan(20_000_000)
})

test('connections beyond the maximum are closed; below it they are served again', async () => {
  await using target = await startTarget('domain-service', { MAX_CONNECTIONS: '20' })
  const idle = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const socket = net.connect(target.port, '127.0.0.1')
      await once(socket, 'connect')
      return socket
    }),
  )
  onTestFinished(() => idle.forEach((socket) => void socket.destroy()))

  const refused = await exchange(target.port, health)
  for (const socket of idle.slice(0, 10)) socket.destroy()

  expect(refused).toBe('')
  await expectServed(target.port)
})
