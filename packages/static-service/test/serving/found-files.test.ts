import { expect, onTestFinished, test, vi } from 'vitest'
import type { BlobStore } from '../../src/blobs/blob-store.ts'
import type { Compressor } from '../../src/blobs/compressor.ts'
import type { Catalog } from '../../src/catalog/catalog.ts'
import { readConfig } from '../../src/config.ts'
import { ContentCache } from '../../src/serving/content-cache.ts'
import { newDatabase, openCatalog, openReplica, toFile } from '../support/catalogs.ts'

const { static: policies } = readConfig({ NODE_ENV: 'test', DATA_DIR: 'unused' })

const newCache = (catalog: Catalog) =>
  new ContentCache({
    catalog,
    policies,
    // Files are found without any content.
    store: { verified: {} } as BlobStore,
    compressor: { onForm: () => undefined } as unknown as Compressor,
  })

async function openPair() {
  const { url } = await newDatabase()
  const [one, other] = [await openReplica(url), await openReplica(url)]
  return { writer: one.catalog, cache: newCache(other.catalog) }
}

const changed = { ...toFile('a'), digest: 'f'.repeat(64) }

test('a file that only this process changes is looked up once, without waiting', async () => {
  const catalog = await openCatalog('SQLite')
  await catalog.writes.put({ files: [toFile('a')] })
  const findNow = vi.spyOn(catalog, 'findNow')
  onTestFinished(() => findNow.mockRestore())
  const cache = newCache(catalog)

  const first = cache.find('a')
  const again = cache.find('a')

  expect(first).toMatchObject({ row: { path: 'a' } })
  expect(again).toBe(first)
  expect(findNow).toHaveBeenCalledTimes(1)
})

test('a change by another process is seen by the next look-up', async () => {
  const { writer, cache } = await openPair()
  await writer.writes.put({ files: [toFile('a')] })

  const first = await cache.find('a')
  const unchanged = await cache.find('a')
  await writer.writes.put({ files: [changed] })
  const replaced = await cache.find('a')
  await writer.writes.remove({ paths: ['a'] })

  expect(unchanged).toBe(first)
  expect(replaced?.row.digest).toBe(changed.digest)
  expect(await cache.find('a')).toBeUndefined()
})
