import { expect, test } from 'vitest'
import { LoadedFiles } from '../../../src/catalog/changes/loaded-files.ts'
import type { BlobReferences, ChangeCause } from '../../../src/catalog/tables.ts'
import { toFile } from '../../support/catalogs.ts'

const times = { createdAt: '2026-01-01T00:00:00.000Z', updatedAt: '2026-01-01T00:00:00.000Z' }
const rowAt = (path: string) => ({ ...toFile(path), ...times })

const cause: ChangeCause = { by: 'tester', token: null, requestId: '', action: 'upload' }

function open(blobs: BlobReferences[] = []): LoadedFiles {
  const table = new LoadedFiles({ clock: times.updatedAt })
  const paths = ['', 'a', 'a/b', 'a/c', 'd']
  table.begin({ storedSize: 0, pastSize: 0, lastId: 7, lastChange: 40 }, { latest: '', keptUpTo: 0 })
  table.files.load(paths, [])
  table.directories.load(paths, [{ path: '', children: 0, files: 0, bytes: 0 }])
  table.blobs.load(
    ['a', 'a/b', 'a/c'].map((path) => toFile(path).digest),
    blobs,
  )
  return table
}

test('an undone change leaves nothing to write', () => {
  const table = open()

  table.set('a/b', rowAt('a/b'))
  table.undo()
  table.accept(undefined)

  const { files, directories, blobs } = table
  expect([files.flush(), directories.flush(), blobs.flush()]).toEqual([[], [], []])
  expect([table.files.get('a/b'), table.directories.get('a'), table.counts.storedSize]).toEqual([
    undefined,
    undefined,
    0,
  ])
})

test('what was accepted before stays when a later change is undone', () => {
  const table = open()

  table.set('a/b', rowAt('a/b'))
  table.accept(cause)
  table.set('a/c', rowAt('a/c'))
  table.undo()
  table.accept(cause)

  expect(table.files.flush().map(({ key }) => key)).toEqual(['a/b'])
  expect(table.directories.get('a')).toEqual({ path: 'a', children: 1, files: 1, bytes: 3 })
})

test('a file added and removed again leaves no directory, count or content', () => {
  const table = open()

  table.set('a/b', rowAt('a/b'))
  table.set('a/b', undefined)

  expect([table.directories.get('a'), table.counts.storedSize]).toEqual([undefined, 0])
  table.accept(undefined)
  expect(table.blobs.flush()).toEqual([])
})

test('below a file, and where a directory is, nothing can be added', () => {
  const table = open()
  table.set('a/b', rowAt('a/b'))

  expect([table.isBlocked('a'), table.isBlocked('a/c'), table.isBlocked('d')]).toEqual([true, false, false])
  table.set('a/b', undefined)
  table.set('a', rowAt('a'))

  expect([table.isBlocked('a/b'), table.isBlocked('d')]).toEqual([true, false])
})

test('each command that changes files is a change with a number, which its rows have', () => {
  const table = open()

  table.set('a/b', rowAt('a/b'))
  table.accept(cause)
  table.accept(cause)
  table.set('a/b', { ...rowAt('a/b'), size: 9 })
  table.accept(cause)

  expect(table.counts.lastChange).toBe(42)
  expect(table.changes.map(({ entry, files }) => [entry.id, files.length])).toEqual([
    [41, 1],
    [42, 1],
  ])
  expect(table.files.get('a/b')).toMatchObject({ id: 8, changeId: 42, size: 9 })
})

test('a row that was not loaded is never taken for a missing one', () => {
  expect(() => open().files.get('unknown')).toThrow('the row of unknown was not loaded')
})

test('the past of a content that a damaged catalog does not have is removed, but no file of it', () => {
  const table = open()
  const { digest } = rowAt('a/b')

  table.refer({ digest, size: 3 }, { past: -1 })
  table.accept(undefined)

  expect([table.blobs.flush(), table.freed]).toEqual([[], []])
  expect(() => table.refer({ digest, size: 3 }, { refs: -1 })).toThrow(digest)
})

test('a past row that a damaged catalog has not counted takes no content from a file', () => {
  const blob = { digest: rowAt('a/b').digest, size: 3, refs: 1, past: 0 }
  const table = open([blob])

  table.refer(blob, { past: -1 })
  table.accept(undefined)

  expect([table.blobs.get(blob.digest), table.freed]).toEqual([blob, []])
})
