import { createHash } from 'node:crypto'
import type { Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type StaticService, startStatic } from '../support/static-start.ts'
import { openBlobs } from '../support/stored-contents.ts'

// Larger than all buffers between the disk and a client that does not read.
const large = createHash('shake256', { outputLength: 32 * 1024 * 1024 })
  .update('large')
  .digest()
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
let service: StaticService

beforeAll(async () => {
  service = await startStatic()
  await service.put('large.bin', large)
})
afterAll(() => service[Symbol.asyncDispose]())

/** The first bytes of an answer; its rest waits, and all of a large one does not fit into the buffers. */
const firstChunk = (socket: Socket) =>
  new Promise<Buffer>((resolve) =>
    socket.once('data', (chunk) => {
      socket.pause()
      resolve(Buffer.from(chunk))
    }),
  )

describe('a large file is sent whole', () => {
  test.each([
    ['all of it', {}, 0, large.length],
    ['a part that begins and ends inside of chunks', { Range: 'bytes=262143-9999999' }, 262_143, 1e7],
    ['its last bytes', { Range: 'bytes=-300001' }, large.length - 300_001, large.length],
    ['one byte', { Range: 'bytes=20000000-20000000' }, 20_000_000, 20_000_001],
  ])('%s', async (_what, headers, start, end) => {
    const answer = await service.ask('/static/large.bin', headers)

    expect(answer.headers['content-length']).toBe(String(end - start))
    expect(sha256(answer.body)).toBe(sha256(large.subarray(start, end)))
  })

  test('several parts of it', async () => {
    const answer = await service.ask('/static/large.bin', { Range: 'bytes=0-999999,30000000-' })

    const first = answer.body.indexOf('\r\n\r\n') + 4
    const second = answer.body.indexOf('\r\n\r\n', first + 1_000_000) + 4
    expect(answer.headers['content-length']).toBe(String(answer.body.length))
    expect(sha256(answer.body.subarray(first, first + 1_000_000))).toBe(sha256(large.subarray(0, 1_000_000)))
    expect(sha256(answer.body.subarray(second, second + large.length - 30_000_000))).toBe(
      sha256(large.subarray(30_000_000)),
    )
  })

  test('and afterwards it is closed', async () => {
    await service.ask('/static/large.bin')
    await service.ask('/static/large.bin', {}, 'HEAD')
    await service.ask('/static/large.bin', { Range: 'bytes=0-1,5-6' })

    await expect.poll(openBlobs).toBe(0)
  })
})

test('who reads slowly, and asks for more before the end, gets every byte of every answer', async () => {
  const starts = [0, 5_000_000, 7_000_001]
  const asked = starts.map((start) => `GET /static/large.bin HTTP/1.1\r\nHost: x\r\nRange: bytes=${start}-\r\n`)
  const socket = await service.open(`${asked.join('\r\n')}Connection: close\r\n\r\n`)
  const chunks: Buffer[] = []

  for await (const chunk of socket) {
    chunks.push(chunk)
    // Others are served meanwhile, and what is on its way waits.
    if (chunks.length % 64 === 0) await service.ask('/static/large.bin', { Range: 'bytes=0-300000' })
  }

  const all = Buffer.concat(chunks)
  const bodies = starts.reduce(
    ({ at, found }, start) => {
      const begin = all.indexOf('\r\n\r\n', at) + 4
      const end = begin + large.length - start
      return { at: end, found: [...found, sha256(all.subarray(begin, end))] }
    },
    { at: 0, found: [] as string[] },
  )
  expect(bodies.found).toEqual(starts.map((start) => sha256(large.subarray(start))))
  expect(bodies.at).toBe(all.length)
})

describe('a client that goes away lets go of the file', () => {
  test('in the middle of it', async () => {
    const sockets = await Promise.all(Array.from({ length: 5 }, () => service.begin('/static/large.bin')))
    await Promise.all(sockets.map(firstChunk))
    const during = await openBlobs()

    for (const socket of sockets) socket.destroy()

    expect(during).toBe(5)
    await expect.poll(openBlobs).toBe(0)
  })

  test('with a reset', async () => {
    const socket = await service.begin('/static/large.bin')
    await firstChunk(socket)
    const during = await openBlobs()

    socket.resetAndDestroy()

    expect(during).toBe(1)
    await expect.poll(openBlobs).toBe(0)
  })

  test('before it has got anything', async () => {
    const sockets = await Promise.all(Array.from({ length: 20 }, () => service.begin('/static/large.bin')))

    for (const socket of sockets) socket.resetAndDestroy()

    await service.ask('/static/absent.bin')
    await expect.poll(openBlobs).toBe(0)
  })

  test('and the service goes on', async () => {
    const socket = await service.begin('/static/large.bin')
    await firstChunk(socket)
    socket.destroy()

    const answer = await service.ask('/static/large.bin', { Range: 'bytes=4-8' })

    expect(answer.body).toEqual(large.subarray(4, 9))
  })
})

test('a file that is deleted while it is sent is sent to its end, and then removed', async () => {
  await using own = await startStatic()
  const { digest } = await own.put('large.bin', large)
  const socket = await own.begin('/static/large.bin')
  const chunks: Buffer[] = []
  chunks.push(await firstChunk(socket))

  await own.catalog.writes.remove({ paths: ['large.bin'] })
  const after = await own.ask('/static/large.bin')
  for await (const chunk of socket) chunks.push(chunk)

  expect(after.status).toBe(404)
  expect(sha256(Buffer.concat(chunks).subarray(-large.length))).toBe(sha256(large))
  await expect.poll(() => own.store.formSize(digest, 'identity')).toBeUndefined()
})

test('a content that becomes shorter while it is sent ends the connection, not the answer', async () => {
  await using own = await startStatic()
  const row = await own.put('large.bin', large)
  const socket = await own.begin('/static/large.bin')
  const first = await firstChunk(socket)
  await own.cut(row, 1000)

  const received = await drain(socket, first.length)

  expect(received).toBeLessThan(large.length)
  await expect.poll(() => JSON.stringify(own.lines())).toContain(row.digest)
})

async function drain(socket: Socket, already: number): Promise<number> {
  let received = already
  socket.on('data', (chunk) => {
    received += chunk.length
  })
  await new Promise<void>((resolve) => {
    socket.once('close', () => resolve())
    socket.on('error', () => resolve())
    socket.resume()
  })
  return received
}
