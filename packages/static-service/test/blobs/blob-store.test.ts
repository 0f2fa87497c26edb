import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { BlobStore } from '../../src/blobs/blob-store.ts'
import { FolderBlobStore } from '../../src/blobs/disk/folder-blob-store.ts'
import { keepFiles } from '../../src/routes/files/store-files.ts'
import { openS3Contents } from '../support/s3/s3-contents.ts'
import { digestOf } from '../support/stored-contents.ts'

// What both implementations promise.

interface Opened extends AsyncDisposable {
  store: BlobStore
  /** Stores a content that a file refers to; returns its digest. */
  add: (content: string | Buffer) => Promise<string>
  /** The content loses its last reference. */
  free: (digest: string) => Promise<void>
}

async function openFolder(): Promise<Opened> {
  const dataDir = await mkdtemp(join(tmpdir(), 'blob-store-'))
  const referenced = new Set<string>()
  const store = await FolderBlobStore.open(dataDir, {
    isReferenced: async (digest) => referenced.has(digest),
    onError: (error) => {
      throw error
    },
  })
  return {
    store,
    add: async (content) => {
      await using draft = store.draft()
      await draft.write(Buffer.from(content))
      await draft.seal()
      const { digest } = await draft.keep()
      referenced.add(digest)
      return digest
    },
    free: async (digest) => {
      referenced.delete(digest)
      store.collect([digest])
      await store.settle()
    },
    [Symbol.asyncDispose]: async () => {
      await store.close()
      await rm(dataDir, { recursive: true })
    },
  }
}

const implementations: { name: string; open: () => Promise<Opened> }[] = [
  { name: 'a folder', open: openFolder },
  { name: 'PostgreSQL and S3', open: openS3Contents },
]

// Up to 32 KiB are rows; more than 16 MiB go to S3 in parts.
const sizes = [0, 1, 32_768, 32_769, 1_000_000, 16_777_217]

describe.each(implementations)('contents in $name', ({ open }) => {
  test.each(sizes)('a content of %i bytes is read as it was stored', async (size) => {
    await using opened = await open()
    const content = randomBytes(size)

    const digest = await opened.add(content)

    await using blob = await opened.store.open(digest)
    expect(blob?.size).toBe(size)
    expect((await blob?.read(0, size))?.equals(content)).toBe(true)
    expect(await opened.store.formSize(digest, 'identity')).toBe(size)
  })

  test.each([100, 1_000_000])('any part of %i bytes can be read, in any order', async (size) => {
    await using opened = await open()
    const content = randomBytes(size)
    const digest = await opened.add(content)
    await using blob = await opened.store.open(digest)

    for (const [start, length] of [
      [0, 10],
      [10, 20],
      [size - 5, 5],
      [3, size - 3],
      [size - 5, 100],
      [0, size],
    ] as const) {
      const read = await blob?.read(start, length)
      expect(read?.equals(content.subarray(start, start + length))).toBe(true)
    }
    const into = Buffer.alloc(50)
    const found = await blob?.read(7, 50, into)
    expect(found?.buffer).toBe(into.buffer)
    expect(into.equals(content.subarray(7, 57))).toBe(true)
  })

  test.each([3, 100_000])('an equal content of %i bytes is stored once, however often it arrives', async (size) => {
    await using opened = await open()
    const content = 'x'.repeat(size)

    const digests = await Promise.all([opened.add(content), opened.add(`${content}y`)])
    await using draft = opened.store.draft()
    await draft.write(Buffer.from(content))
    await draft.seal()

    expect(await draft.keep()).toEqual({ digest: digestOf(content), size })
    await using blob = await opened.store.open(digests[0])
    expect((await blob?.read(0, size))?.toString()).toBe(content)
  })

  test('a content that is not stored is absent', async () => {
    await using opened = await open()
    const digest = digestOf('never stored')

    expect(await opened.store.open(digest)).toBeUndefined()
    expect(await opened.store.formSize(digest, 'identity')).toBeUndefined()
    expect(await opened.store.forms(digest)).toEqual([])
  })

  test.each([10, 100_000])('a content of %i bytes that no file refers to is absent', async (size) => {
    await using opened = await open()
    const digest = await opened.add('x'.repeat(size))
    await opened.store.putForm(digest, 'br', Buffer.alloc(5))
    await opened.store.putForm(digest, 'gzip', Buffer.alloc(Math.min(size, 50_000)))

    await opened.free(digest)

    expect(await opened.store.open(digest)).toBeUndefined()
    expect(await opened.store.open(digest, 'br')).toBeUndefined()
    expect(await opened.store.forms(digest)).toEqual([])
  })

  test.each([100, 40_000])('a compressed form of %i bytes is stored with its content', async (size) => {
    await using opened = await open()
    const digest = await opened.add('content')
    const form = randomBytes(size)

    await opened.store.putForm(digest, 'zstd', form)

    expect(await opened.store.forms(digest)).toEqual(['zstd'])
    expect(await opened.store.formSize(digest, 'zstd')).toBe(size)
    await using blob = await opened.store.open(digest, 'zstd')
    expect((await blob?.read(0, size))?.equals(form)).toBe(true)
    await opened.store.dropForm(digest, 'zstd')
    expect(await opened.store.forms(digest)).toEqual([])
  })

  test.each([100, 40_000])('a form of %i bytes of a content that is gone is not stored', async (size) => {
    await using opened = await open()
    const digest = await opened.add('content')
    await opened.free(digest)

    await opened.store.putForm(digest, 'br', Buffer.alloc(size))

    expect(await opened.store.forms(digest)).toEqual([])
  })

  test('contents that arrive are counted', async () => {
    await using opened = await open()
    expect(opened.store.memory.arriving.size).toBe(0)

    await using _draft = opened.store.draft()

    expect(opened.store.memory.arriving.size).toBe(1)
  })

  test('where one of several contents cannot be kept, none of the others stays leased', async () => {
    await using opened = await open()
    const events: string[] = []
    {
      await using draft = opened.store.draft()
      await draft.write(Buffer.from('text'))
      const full = { head: draft.head, isReferenced: false, keep: () => Promise.reject('full') }
      // Its type is known from its first bytes only, and so later.
      const keep = () => draft.keep().finally(() => events.push('kept'))
      const late = { head: draft.head, isReferenced: false, keep }
      const arrivals = [
        { path: 'a.txt', draft: full },
        { path: 'README', draft: late },
      ]
      await keepFiles(arrivals, 'tester').catch((error) => events.push(error))
    }

    expect(events).toEqual(['kept', 'full'])
    await expect.poll(() => opened.store.formSize(digestOf('text'), 'identity')).toBeUndefined()
  })

  test('health is ok', async () => {
    await using opened = await open()

    const checks = Object.values(opened.store.check())

    expect(checks.every(({ status }) => status === 'ok')).toBe(true)
  })
})
