import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { createLogger } from '@domains-and-files/http'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Compressor } from '../../src/blobs/compressor.ts'
import { FolderBlobStore } from '../../src/blobs/disk/folder-blob-store.ts'
import { openS3Contents } from '../support/s3/s3-contents.ts'

test('forms that another replica made are announced unless they are known', async () => {
  await using contents = await openS3Contents()
  const content = 'p { color: black }\n'.repeat(200)
  const digest = await contents.add(content)
  const other = await contents.openReplica()
  for (const coding of ['br', 'zstd', 'gzip'] as const) {
    await other.putForm(digest, coding, gzipSync(content))
  }
  const log = createLogger({ name: 'test', level: 'silent' })
  const compressor = new Compressor({ store: contents.store, log })
  const announced: string[] = []
  compressor.onForm = (each) => announced.push(each)

  for (const known of [[], ['br', 'zstd', 'gzip']] as const) {
    compressor.enqueue({ digest, size: content.length, contentType: 'text/css', known })
    await compressor.idle()
  }

  expect(announced).toEqual([digest, digest, digest])
  await compressor.close()
})

test('files that could not be compressed on a full disk are compressed once there is space', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'static-compressor-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const store = await FolderBlobStore.open(folder, {
    isReferenced: async () => true,
    onError: () => undefined,
  })
  const full = vi.spyOn(store, 'putForm').mockRejectedValue(new Error('the disk is full'))
  const log = createLogger({ name: 'test', level: 'silent' })
  const compressor = new Compressor({ store, log, retryMs: 10 })
  const digests: string[] = []
  for (const color of ['black', 'white', 'red']) {
    const content = Buffer.from(`p { color: ${color} }\n`.repeat(200))
    await using draft = store.draft()
    await draft.write(content)
    await draft.seal()
    const { digest } = await draft.keep()
    digests.push(digest)
    compressor.enqueue({ digest, size: content.length, contentType: 'text/css' })
  }
  await expect.poll(() => full.mock.calls.length).toBeGreaterThan(digests.length)
  const formsOf = () => Promise.all(digests.map((digest) => store.forms(digest)))
  const before = await formsOf()

  full.mockRestore()

  expect(before).toEqual([[], [], []])
  const all = ['br', 'zstd', 'gzip']
  await expect.poll(formsOf).toEqual([all, all, all])
  await compressor.close()
  await store.close()
})

test('text of 1 KiB or more has compressed forms, shorter text has none', async () => {
  await using contents = await openS3Contents()
  const { store } = contents
  const compressor = new Compressor({ store, log: createLogger({ name: 'test', level: 'silent' }) })
  const forms: number[] = []

  for (const size of [1023, 1024]) {
    const digest = await contents.add('x'.repeat(size))
    compressor.enqueue({ digest, size, contentType: 'text/css' })
    await compressor.idle()
    forms.push((await store.forms(digest)).length)
  }

  expect(forms).toEqual([0, 3])
  await compressor.close()
})
