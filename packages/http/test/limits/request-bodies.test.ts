import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import net from 'node:net'
import { Readable } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { bodyChunks } from '../../src/index.ts'
import { type Started, start } from '../support/start.ts'

const head = (path: string, length: number) =>
  `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`

/** A connection that has sent this, and what came back on it. */
async function send(service: Started, text: string) {
  const socket = net.connect(Number(new URL(service.url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let received = ''
  socket.on('data', (chunk) => {
    received += chunk
  })
  await once(socket, 'connect')
  socket.write(text)
  return { socket, received: () => received }
}

const heldBytes = (service: Started) => service.app.requestBodies.heldBytes

test('a small JSON route takes 16 KiB', async () => {
  await using service = await start()
  const post = (size: number) =>
    fetch(`${service.url}/echo`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify('x'.repeat(size - 2)),
    })

  const fitting = await post(16_384)
  const larger = await post(16_385)

  expect([fitting.status, larger.status]).toEqual([200, 413])
})

test('a chunked body is limited as well', async () => {
  await using service = await start()

  const answer = await service.raw(
    'POST /echo HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n' +
      `5000\r\n${' '.repeat(0x5000)}\r\n`,
    '"code":"body_too_large"',
  )

  expect(answer).toContain('HTTP/1.1 413')
})

test('what half-sent bodies hold together is bounded: then 503, until some have ended', async () => {
  await using service = await start({ maxBodyMemoryBytes: 100_000 })
  const first = await send(service, head('/things/a', 90_000) + ' '.repeat(80_000))
  await expect.poll(() => heldBytes(service)).toBeGreaterThanOrEqual(80_000)

  const refused = await send(service, head('/things/a', 30_000) + ' '.repeat(30_000))
  await expect.poll(refused.received).toContain('HTTP/1.1 503')

  expect(refused.received()).toContain('retry-after: 2')
  expect(refused.received()).toContain('"code":"unavailable"')
  first.socket.destroy()
  await expect.poll(() => heldBytes(service)).toBe(0)
  refused.socket.write(head('/things/a', 30_000) + ' '.repeat(30_000))
  await expect.poll(refused.received).toContain('HTTP/1.1 400')
})

test('the body of a request that waits is counted until its response', async () => {
  await using service = await start({ maxBodyMemoryBytes: 100_000 })
  const body = JSON.stringify(' '.repeat(60_000))
  const waiting = await send(service, head('/slow', body.length) + body)
  await service.slowEntered()

  const refused = await send(service, head('/slow', body.length) + body)
  await expect.poll(refused.received).toContain('HTTP/1.1 503')
  expect(heldBytes(service)).toBe(body.length)
  service.releaseSlow()

  await expect.poll(waiting.received).toContain('HTTP/1.1 200')
  await expect.poll(() => heldBytes(service)).toBe(0)
})

test('bytes that arrive one by one hold little more than themselves', async () => {
  await using service = await start()
  const { socket } = await send(service, head('/echo', 10_000))
  const drip = setInterval(() => socket.write(' '), 1)
  onTestFinished(() => clearInterval(drip))

  await expect.poll(() => heldBytes(service)).toBeGreaterThan(256)

  expect(heldBytes(service)).toBeLessThan(2 * socket.bytesWritten)
  socket.destroy()
})

test.each([
  ['that brings nothing more', 0],
  ['that brings much less than 1 KiB a second', 1],
  ['that brings a little less than 1 KiB a second', 14],
])('a body %s is cut with 408', async (_name, bytes) => {
  await using service = await start({ bodyIdleTimeoutMs: 200 })
  const { socket, received } = await send(service, `${head('/echo', 10_000)}{`)
  const drip = setInterval(() => socket.writable && socket.write(' '.repeat(bytes)), 20)
  onTestFinished(() => clearInterval(drip))

  await once(socket, 'close')

  expect(received()).toContain('HTTP/1.1 408')
  expect(received()).toContain('"code":"request_timeout"')
  await expect.poll(() => heldBytes(service)).toBe(0)
})

test('a silent body is cut before a slow one, and that one before four silent ones in a row', async () => {
  await using service = await start({ bodyIdleTimeoutMs: 200 })
  const slow = await send(service, head('/things/a', 10_000))
  const drip = setInterval(() => slow.socket.write(' '), 5)
  onTestFinished(() => clearInterval(drip))
  const untilSilentIsCut = async () => {
    const { socket } = await send(service, `${head('/things/a', 10_000)} `)
    await once(socket, 'close')
  }

  await untilSilentIsCut()
  expect(slow.received()).toBe('')
  for (let times = 0; times < 4; times += 1) await untilSilentIsCut()

  expect(slow.received()).toContain('HTTP/1.1 408')
})

test('a body that goes on after its response is cut as well', async () => {
  await using service = await start({ bodyIdleTimeoutMs: 100 })
  const { socket, received } = await send(service, `${head('/nothing', 10_000)}{`)

  await once(socket, 'close')

  expect(received()).toContain('HTTP/1.1 404')
})

test('a body that the service does not read yet is not cut', async () => {
  await using service = await start({ bodyIdleTimeoutMs: 50 })
  const { received } = await send(service, `${head('/unread', 10_000)}{`)
  await service.slowEntered()
  // Longer than a body without progress lives.
  const cut = await send(service, `${head('/echo', 10_000)}{`)
  await once(cut.socket, 'close')

  service.releaseSlow()

  await expect.poll(received).toContain('HTTP/1.1 200')
})

test('chunks of a byte that have arrived together are read as one, and no byte is lost', async () => {
  const body = new Readable({ read: () => undefined })
  const chunks = [...Array<string>(20).fill('x'), 'y'.repeat(5000), 'z']
  for (const chunk of chunks) body.push(chunk)
  body.push(null)

  const read: Buffer[] = []
  for await (const chunk of bodyChunks(body as IncomingMessage)) read.push(chunk) // Only its bytes.

  expect(Buffer.concat(read).toString()).toBe(chunks.join(''))
  expect(read).toHaveLength(1)
})
