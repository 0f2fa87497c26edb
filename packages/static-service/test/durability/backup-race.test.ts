import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { announceBackup } from '@domains-and-files/persistence'
import { expect, onTestFinished, test } from 'vitest'
import { FolderBlobStore } from '../../src/blobs/disk/folder-blob-store.ts'
import { start } from '../support/start.ts'

test('what is deleted during a backup stays on the disk until that has ended', async () => {
  await using service = await start()
  await service.put('a', 'wanted by the backup')
  const stored = await service.storedContents()
  const end = announceBackup(service.dataDir)

  const { status } = await service.call('DELETE', '/api/files/a')
  await service.put('b')
  await service.call('DELETE', '/api/files/b')

  expect(status).toBe(204)
  expect(await service.storedContents()).toEqual(expect.arrayContaining(stored))
  expect((await service.call('GET', '/static/a')).status).toBe(404)
  end()
  await expect.poll(() => service.storedContents()).toEqual([])
})

test('a content that is stored again while its removal waits is kept', async () => {
  await using service = await start()
  await service.put('a', 'the same')
  const end = announceBackup(service.dataDir)
  await service.call('DELETE', '/api/files/a')
  await service.put('b', 'the same')
  end()
  await service.put('c', 'passing')
  await service.call('DELETE', '/api/files/c')

  await expect.poll(async () => (await service.storedContents()).length).toBe(1)
  expect((await service.call('GET', '/static/b')).bytes.toString()).toBe('the same')
})

test('whether a backup is made is asked after whether anything refers to a content', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'static-store-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const asked: string[] = []
  const store = await FolderBlobStore.open(folder, {
    isReferenced: async () => {
      await Promise.resolve()
      asked.push('referenced?')
      return false
    },
    isBackedUp: () => {
      asked.push('backed up?')
      return false
    },
    onError: (error) => expect(error).toBeUndefined(),
  })

  store.collect(['0'.repeat(64)])
  await store.close()

  expect(asked).toEqual(['referenced?', 'backed up?'])
})
