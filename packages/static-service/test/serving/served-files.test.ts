import { expect, onTestFinished, test, vi } from 'vitest'
import { readConfig } from '../../src/config.ts'
import type { FileRow } from '../../src/files/file-record.ts'
import { describeFile } from '../../src/serving/served-file.ts'
import { createServedFiles } from '../../src/serving/served-files.ts'
import { newDatabase, openCatalog, openReplica, toFile } from '../support/catalogs.ts'

const { static: rules } = readConfig({ NODE_ENV: 'test', DATA_DIR: 'unused' })
const options = { memoryBytes: 1_000_000, describe: (row: FileRow) => describeFile(row, rules) }

async function openPair() {
  const { url } = await newDatabase()
  const [one, other] = [await openReplica(url), await openReplica(url)]
  return {
    writer: one.catalog,
    files: createServedFiles({ catalog: other.catalog, ...options }),
    ...other,
  }
}

const changed = { ...toFile('a'), digest: 'f'.repeat(64) }

test('a file that only this process changes is looked up once', async () => {
  const catalog = await openCatalog('SQLite')
  await catalog.put([toFile('a')])
  const files = createServedFiles({ catalog, ...options })
  const find = vi.spyOn(catalog, 'find')
  onTestFinished(() => find.mockRestore())

  const first = await files.find('a')
  const again = files.find('a')
  const confirmed = first && files.confirm(first, {})

  expect([again, confirmed]).toEqual([first, true])
  expect(find).toHaveBeenCalledTimes(1)
})

test('a change by another process is seen by the next look-up', async () => {
  const { writer, files } = await openPair()
  await writer.put([toFile('a')])

  const first = await files.find('a')
  const unchanged = await files.find('a')
  await writer.put([changed])
  const replaced = await files.find('a')
  await writer.remove('a')

  expect(unchanged).toBe(first)
  expect(replaced?.row.digest).toBe(changed.digest)
  expect(await files.find('a')).toBeUndefined()
})

test('a remembered file is confirmed only while no other process has changed it', async () => {
  const { writer, files } = await openPair()
  await writer.put([toFile('a')])
  const file = await files.find('a')
  if (!file) throw new Error('not stored')

  const before = await files.confirm(file, {})
  await writer.put([changed])
  const after = await files.confirm(file, {})

  expect([files.peek('a')?.row.digest, before, after]).toEqual([changed.digest, true, false])
})

test('the look-up of a confirmation serves the same request, once, and a failure fails it', async () => {
  const { writer, files, catalog } = await openPair()
  await writer.put([toFile('a')])
  const file = await files.find('a')
  if (!file) throw new Error('not stored')
  const find = vi.spyOn(catalog, 'find')
  onTestFinished(() => find.mockRestore())
  const request = {}

  await files.confirm(file, request)
  const found = await files.find('a', request)
  const calls = find.mock.calls.length
  find.mockRejectedValueOnce(new Error('no database'))
  const failing = {}
  const confirmed = await Promise.allSettled([files.confirm(file, failing)])

  expect([found, calls]).toEqual([file, 1])
  expect(confirmed[0]?.status).toBe('rejected')
  await expect(files.find('a', failing)).rejects.toThrow('no database')
})
