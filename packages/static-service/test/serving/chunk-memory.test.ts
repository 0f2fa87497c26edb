import { createHash } from 'node:crypto'
import type { OpenBlob } from '@domains-and-files/persistence'
import { expect, test } from 'vitest'
import { ChunkMemory, chunkBytes, openStream } from '../../src/serving/content-stream.ts'
import { startStatic } from '../support/static-start.ts'

const content = createHash('shake256', { outputLength: 3 * chunkBytes + 1000 })
  .update('content')
  .digest()

/** A stored content that counts its reads, and whether it was opened and not closed. */
function countingBlob(bytes = content) {
  const counts = { reads: 0, open: 1 }
  const blob: OpenBlob = {
    size: bytes.length,
    stamp: 'stamp',
    async read(start, length, into) {
      counts.reads += 1
      const slice = bytes.subarray(start, start + length)
      return into ? into.subarray(0, slice.copy(into)) : Buffer.from(slice)
    },
    async [Symbol.asyncDispose]() {
      counts.open -= 1
    },
  }
  return { blob, counts }
}

/** Sends the content, or a part of it, through the cache. */
async function send(cache: ChunkMemory, { start = 0, end = content.length, key = 'digest' } = {}) {
  const { blob, counts } = countingBlob()
  const body = await openStream(cache.request(blob, key), [{ start, end }])
  const chunks: Buffer[] = []
  for await (const chunk of { [Symbol.asyncIterator]: () => body }) chunks.push(Buffer.from(chunk))
  return { isRight: Buffer.concat(chunks).equals(content.subarray(start, end)), ...counts }
}

test('the second request caches a content, and later ones read nothing', async () => {
  const cache = new ChunkMemory(1e6)

  const sent = [await send(cache), await send(cache), await send(cache)]

  expect(sent).toEqual([
    { isRight: true, reads: 4, open: 0 },
    { isRight: true, reads: 4, open: 0 },
    { isRight: true, reads: 0, open: 0 },
  ])
})

test('contents that are requested once evict nothing', async () => {
  const cache = new ChunkMemory(1e6)
  await send(cache)
  await send(cache)

  for (let other = 0; other < 10; other += 1) await send(cache, { key: `other-${other}` })

  expect((await send(cache)).reads).toBe(0)
})

test('concurrent requests read each chunk once', async () => {
  const cache = new ChunkMemory(1e6)
  await send(cache)

  const sent = await Promise.all([send(cache), send(cache), send(cache)])

  expect(sent.every(({ isRight }) => isRight)).toBe(true)
  expect(sent.reduce((sum, { reads }) => sum + reads, 0)).toBe(4)
})

test('a range that begins inside of a chunk is read from the cache', async () => {
  const cache = new ChunkMemory(1e6)
  await send(cache)
  await send(cache)

  const within = await send(cache, { start: 1, end: 2 * chunkBytes })
  const aligned = await send(cache, { start: chunkBytes, end: content.length })

  expect(within).toEqual({ isRight: true, reads: 0, open: 0 })
  expect(aligned).toEqual({ isRight: true, reads: 0, open: 0 })
})

test('the cache is bounded, and larger contents than all of it are never cached', async () => {
  const tooSmall = new ChunkMemory(content.length - 1)
  const exact = new ChunkMemory(content.length)
  for (let request = 0; request < 3; request += 1) {
    await send(tooSmall)
    await send(exact)
  }

  expect(tooSmall.cache.bytes).toBe(0)
  expect(exact.cache.bytes).toBeLessThanOrEqual(content.length)
  expect(exact.cache.bytes).toBeGreaterThan(0)
})

test('a store that fetches whole ranges is not asked for single chunks', async () => {
  const { blob } = countingBlob()
  const remote = { ...blob, expect: () => undefined }
  const cache = new ChunkMemory(1e6)
  cache.request(remote, 'digest')

  expect(cache.request(remote, 'digest').isCached).toBe(false)
})

test('slow and fast clients get every byte of a content whose chunks they share', async () => {
  await using service = await startStatic()
  const file = createHash('shake256', { outputLength: 8 * 1024 * 1024 })
    .update('file')
    .digest()
  await service.put('shared.bin', file)
  await service.ask('/static/shared.bin')
  const slow = await service.open('GET /static/shared.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  const received: Buffer[] = []

  for await (const chunk of slow) {
    received.push(chunk)
    if (received.length % 32 === 0) {
      expect((await service.ask('/static/shared.bin')).body.equals(file)).toBe(true)
    }
  }

  const all = Buffer.concat(received)
  expect(all.subarray(all.indexOf('\r\n\r\n') + 4).equals(file)).toBe(true)
})

/** Begins to send contents to clients that read nothing: each holds what it was given. */
const openStreams = (memory: ChunkMemory, count: number, keyOf: (index: number) => string) =>
  Array.from({ length: count }, async (_, index) => {
    const { blob, counts } = countingBlob()
    const large = memory.request(blob, keyOf(index))
    const stream = await openStream(large, [{ start: 0, end: blob.size }])
    await stream.next()
    return { stream, counts }
  })

test.each([
  ['one content', () => 'one'],
  ['a thousand contents', String],
])('a thousand clients that do not read %s hold small chunks beyond the limit', async (_what, keyOf) => {
  const limit = 16 * chunkBytes
  const memory = new ChunkMemory(1, limit)

  const streams = await Promise.all(openStreams(memory, 1000, keyOf))

  expect(memory.heldBytes).toBeLessThanOrEqual(2 * limit + 1000 * 16_384)
  await Promise.all(streams.map(({ stream }) => stream.return()))
  expect(memory.heldBytes).toBe(0)
})

test('where memory is scarce contents are sent whole in small chunks', async () => {
  const memory = new ChunkMemory(1, 2 * chunkBytes)
  const [first, second] = await Promise.all(openStreams(memory, 2, (index) => `slow ${index}`))
  expect(memory.isScarce).toBe(true)

  const sent = await send(memory, { key: 'fast' })

  expect(sent.isRight).toBe(true)
  expect(sent.reads).toBeGreaterThan(40)
  await Promise.all([first?.stream.return(), second?.stream.return()])
  expect(memory.heldBytes).toBe(0)
})

test('a failed read fails for all that wait for it, and holds no memory', async () => {
  const memory = new ChunkMemory(1)
  const failure = Promise.withResolvers<Buffer>()
  const contents = Array.from({ length: 3 }, () => {
    const { blob, counts } = countingBlob()
    return { large: memory.request({ ...blob, read: () => failure.promise }, 'one'), counts }
  })
  const opened = contents.map(({ large }) => openStream(large, [{ start: 0, end: 10 }]))

  failure.reject(new Error('disk I/O error'))

  const outcomes = await Promise.allSettled(opened)
  expect(outcomes.map(({ status }) => status)).toEqual(Array(3).fill('rejected'))
  expect([memory.heldBytes, ...contents.map(({ counts }) => counts.open)]).toEqual([0, 0, 0, 0])
})
