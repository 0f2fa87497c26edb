import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { OpenBlob } from '../../src/blobs/blob-reader.ts'
import { ChunkCache, chunkBytes } from '../../src/serving/chunk-cache.ts'
import { BlobStream } from '../../src/serving/content-stream.ts'
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
async function send(cache: ChunkCache, { start = 0, end = content.length, key = 'digest' } = {}) {
  const { blob, counts } = countingBlob()
  const body = await BlobStream.open(cache.through(blob, key), [{ start, end }], key)
  const chunks: Buffer[] = []
  for await (const chunk of { [Symbol.asyncIterator]: () => body }) chunks.push(Buffer.from(chunk))
  return { isRight: Buffer.concat(chunks).equals(content.subarray(start, end)), ...counts }
}

test('the second request caches a content, and later ones read nothing', async () => {
  const cache = new ChunkCache(1e6)

  const sent = [await send(cache), await send(cache), await send(cache)]

  expect(sent).toEqual([
    { isRight: true, reads: 4, open: 0 },
    { isRight: true, reads: 4, open: 0 },
    { isRight: true, reads: 0, open: 0 },
  ])
})

test('contents that are requested once evict nothing', async () => {
  const cache = new ChunkCache(1e6)
  await send(cache)
  await send(cache)

  for (let other = 0; other < 10; other += 1) await send(cache, { key: `other-${other}` })

  expect((await send(cache)).reads).toBe(0)
})

test('concurrent requests read each chunk once', async () => {
  const cache = new ChunkCache(1e6)
  await send(cache)

  const sent = await Promise.all([send(cache), send(cache), send(cache)])

  expect(sent.every(({ isRight }) => isRight)).toBe(true)
  expect(sent.reduce((sum, { reads }) => sum + reads, 0)).toBe(4)
})

test('ranges that begin inside of a chunk are read past the cache', async () => {
  const cache = new ChunkCache(1e6)
  await send(cache)
  await send(cache)

  const within = await send(cache, { start: 1, end: 2 * chunkBytes })
  const aligned = await send(cache, { start: chunkBytes, end: content.length })

  expect(within).toEqual({ isRight: true, reads: 2, open: 0 })
  expect(aligned).toEqual({ isRight: true, reads: 0, open: 0 })
})

test('the cache is bounded, and larger contents than all of it are never cached', async () => {
  const tooSmall = new ChunkCache(content.length - 1)
  const exact = new ChunkCache(content.length)
  for (let request = 0; request < 3; request += 1) {
    await send(tooSmall)
    await send(exact)
  }

  expect(tooSmall.memory.bytes).toBe(0)
  expect(exact.memory.bytes).toBeLessThanOrEqual(content.length)
  expect(exact.memory.bytes).toBeGreaterThan(0)
})

test('a store that fetches whole ranges is not asked for single chunks', async () => {
  const { blob } = countingBlob()
  const remote = { ...blob, expect: () => undefined }
  const cache = new ChunkCache(1e6)
  cache.through(remote, 'digest')

  expect(cache.through(remote, 'digest')).toBe(remote)
})

test('slow and fast clients get every byte of a content whose chunks they share', async () => {
  await using service = await startStatic()
  const file = createHash('shake256', { outputLength: 8 * 1024 * 1024 })
    .update('file')
    .digest()
  await service.put('shared.bin', file)
  await service.ask('/static/shared.bin')
  const slow = await service.open(
    'GET /static/shared.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  )
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
