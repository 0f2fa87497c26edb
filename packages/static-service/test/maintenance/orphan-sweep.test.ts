import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { FolderBlobStore } from '../../src/blobs/disk/folder-blob-store.ts'
import { openSqliteCatalog } from '../../src/catalog/sqlite/sqlite-catalog.ts'
import { sweepOrphans } from '../../src/embedded-storage.ts'
import { digestOf, rowsIn } from '../support/stored-contents.ts'

async function open() {
  const dataDir = mkdtempSync(join(tmpdir(), 'static-sweep-'))
  const catalog = await openSqliteCatalog(dataDir)
  const store = await FolderBlobStore.open(dataDir, {
    isReferenced: (digest) => catalog.isReferenced(digest),
    onError: (error) => {
      throw error
    },
  })
  onTestFinished(async () => {
    await store.close()
    await catalog.close()
    rmSync(dataDir, { recursive: true, force: true })
  })
  return { dataDir, catalog, store }
}

const fileOf = (content: string) => ({
  path: `files/${content}`,
  digest: digestOf(content),
  size: content.length,
  contentType: 'text/plain',
  category: 'document' as const,
  uploadedBy: 'alice',
})

// From 1,001 files on the queries run in worker threads.
test.each([1, 1000, 1001])('the sweep of %i files removes an orphan and reports a missing content', async (count) => {
  const { dataDir, catalog, store } = await open()
  const contents = Array.from({ length: count }, (_, at) => `content ${at}`)
  const stored = [...contents.slice(1), 'orphan']
  await Promise.all(stored.map((each) => store.small.store(digestOf(each), 'identity', Buffer.from(each))))
  await catalog.writes.put({ files: contents.map(fileOf) })

  const result = await sweepOrphans(store, catalog)

  expect(result).toEqual({ orphans: 1, missing: [{ digest: digestOf('content 0'), size: 9 }] })
  expect(rowsIn(dataDir)).toHaveLength(count - 1)
})

test('of more missing contents than are compared at once, the last is found once it is there again', async () => {
  const { catalog, store } = await open()
  const contents = Array.from({ length: 1001 }, (_, at) => `content ${at}`)
  await catalog.writes.put({ files: contents.map(fileOf) })
  store.missing = contents.map(fileOf)
  await store.small.store(digestOf('content 1000'), 'identity', Buffer.from('content 1000'))

  await expect.poll(() => store.check()).toMatchObject({ contents: { missing: 1000 } })
})

test('the sweep finds every orphan of a store without files', async () => {
  const { dataDir, catalog, store } = await open()
  const orphans = Array.from({ length: 300 }, (_, at) => `orphan ${at}`)
  await Promise.all(orphans.map((each) => store.small.store(digestOf(each), 'identity', Buffer.from(each))))

  const result = await sweepOrphans(store, catalog)

  expect(result).toEqual({ orphans: 300, missing: [] })
  expect(rowsIn(dataDir)).toEqual([])
})

test('a content that is deleted and stored again during the sweep is not missing', async () => {
  const { catalog, store } = await open()
  await catalog.writes.put({ files: [fileOf('again')] })
  vi.spyOn(catalog, 'isReferenced').mockImplementation(async (digest) => {
    await store.small.store(digest, 'identity', Buffer.from('again'))
    return true
  })

  expect((await sweepOrphans(store, catalog)).missing).toEqual([])
})
