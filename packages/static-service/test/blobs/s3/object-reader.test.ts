import { randomBytes } from 'node:crypto'
import { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openS3Contents } from '../../support/s3/s3-contents.ts'
import { flip } from '../../support/stored-contents.ts'

const content = randomBytes(3_000_000)
const chunkBytes = 262_144

test('reads that follow each other share one request, and others make a new one', async () => {
  await using contents = await openS3Contents()
  const digest = await contents.add(content)
  contents.s3.calls.length = 0
  await using blob = await contents.store.open(digest)

  blob?.expect?.(0, content.length)
  for (let at = 0; at < content.length; at += chunkBytes) {
    const chunk = await blob?.read(at, chunkBytes)
    expect(chunk?.equals(content.subarray(at, at + chunkBytes))).toBe(true)
  }
  expect(contents.s3.calls).toHaveLength(1)
  await blob?.read(5, 10)
  expect(contents.s3.calls).toHaveLength(2)
})

test('a download that is cut in the middle is continued where it ended', async () => {
  await using contents = await openS3Contents()
  const digest = await contents.add(content)
  let cuts = 0
  contents.s3.fault = ({ operation }) => {
    if (operation !== 'get') return undefined
    cuts += 1
    return cuts <= 5 ? { kind: 'cut-response' } : undefined
  }
  await using blob = await contents.store.open(digest)

  blob?.expect?.(0, content.length)
  const read = await blob?.read(0, content.length)

  expect(read?.equals(content)).toBe(true)
  expect(cuts).toBe(6)
})

test('no more is fetched than is read, but for what the connection buffers', async () => {
  await using contents = await openS3Contents()
  const digest = await contents.add(randomBytes(60_000_000))
  await using blob = await contents.store.open(digest)

  blob?.expect?.(0, 60_000_000)
  await blob?.read(0, chunkBytes)
  // Another object passes meanwhile.
  await contents.add(randomBytes(10_000_000))

  expect(contents.s3.bytesSent).toBeLessThan(20_000_000)
})

test('an object that was replaced or removed behind the service is an error, and not served', async () => {
  await using contents = await openS3Contents()
  const digest = await contents.add(content)
  const [key = ''] = contents.s3.store.everStored
  await contents.s3.store.alter(key, flip)
  await using altered = await contents.store.open(digest)

  await expect(altered?.read(0, 10)).rejects.toThrow('is not the one that was stored')
  await contents.s3.store.remove(key)
  await expect(altered?.read(0, 10)).rejects.toThrow('is missing')
})

test('an object with the same bytes under another entity tag is hashed once, and its new tag is kept', async () => {
  await using contents = await openS3Contents()
  const digest = await contents.add(content)
  const [key = ''] = contents.s3.store.everStored
  contents.s3.store.retag(key)
  const read = async (store = contents.store) => {
    await using blob = await store.open(digest)
    return (await blob?.read(5, 10))?.equals(content.subarray(5, 15))
  }

  contents.s3.calls.length = 0
  expect(await read()).toBe(true)
  expect(contents.s3.calls.map(({ operation }) => operation)).toEqual(['get', 'head', 'get', 'get'])
  contents.s3.calls.length = 0
  expect(await read(await contents.openReplica())).toBe(true)
  expect(contents.s3.calls.map(({ operation }) => operation)).toEqual(['get'])
})

test('a compressed form under another entity tag is compared with the bytes that it stands for', async () => {
  await using contents = await openS3Contents()
  const digest = await contents.add(content)
  const form = gzipSync(content)
  await contents.store.putForm(digest, 'gzip', form)
  const [, key = ''] = contents.s3.store.everStored
  contents.s3.store.retag(key)
  await using sound = await contents.store.open(digest, 'gzip')

  expect((await sound?.read(0, form.length))?.equals(form)).toBe(true)
  await contents.s3.store.alter(key, flip)
  await using altered = await contents.store.open(digest, 'gzip')
  await expect(altered?.read(0, 10)).rejects.toThrow('is not the one that was stored')
})

test('an object of another size under another entity tag is refused without reading it', async () => {
  await using contents = await openS3Contents()
  const digest = await contents.add(content)
  const [key = ''] = contents.s3.store.everStored
  await contents.s3.store.alter(key, (bytes) => Buffer.concat([bytes, Buffer.from('more')]))
  await using blob = await contents.store.open(digest)

  await expect(blob?.read(0, 10)).rejects.toThrow('is not the one that was stored')
  expect(contents.s3.bytesSent).toBeLessThan(content.length)
})

test.each([
  ['is away', { kind: 'status', status: 500 }],
  ['is silent', { kind: 'silent' }],
  ['ends every download without a byte', { kind: 'lost-response' }],
  ['gives the whole object instead of a range', { kind: 'whole' }],
] as const)('a read while S3 %s answers unavailable', async (_name, fault) => {
  await using contents = await openS3Contents()
  const digest = await contents.add(content)
  const replica = await contents.openReplica({ timeoutMs: 300 })
  await using blob = await replica.open(digest)
  contents.s3.fault = () => fault

  await expect(blob?.read(1, 10)).rejects.toMatchObject({ status: 503, code: 'unavailable' })
})

test('a client that pauses longer than the time limit gets the rest', async () => {
  await using contents = await openS3Contents()
  const long = randomBytes(30_000_000)
  const digest = await contents.add(long)
  const timeoutMs = 600_000
  const replica = await contents.openReplica({ timeoutMs })
  await using blob = await replica.open(digest)
  blob?.expect?.(0, long.length)
  const setTimeout = vi.spyOn(Socket.prototype, 'setTimeout')
  onTestFinished(() => setTimeout.mockRestore())
  await blob?.read(0, chunkBytes)
  const { calls, contexts } = setTimeout.mock
  const download = contexts.filter((_socket, at) => calls[at]?.[0] === timeoutMs)
  // As if the time had passed: a busy machine would exceed a shorter limit also while the client reads.
  for (const socket of new Set(download)) if (socket instanceof Socket) socket.emit('timeout')
  await expect.poll(() => contents.s3.brokenDownloads).toBe(1)

  const rest = await blob?.read(chunkBytes, long.length)

  expect(rest?.equals(long.subarray(chunkBytes))).toBe(true)
})
