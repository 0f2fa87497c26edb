import type { Postgres } from '@domains-and-files/persistence'
import { expect, test } from 'vitest'
import type { ListQuery } from '../../../src/catalog/listing/list-query.ts'
import { newDatabase, openReplica, putPaths, toFile, watchSnapshots } from '../../support/catalogs.ts'
import { keepRows } from '../../support/lost-commits.ts'

const list = (query: Partial<ListQuery>): ListQuery => ({
  sort: 'path',
  page: 1,
  page_size: 10,
  ...query,
})

/** Two replicas on one database with some files, and how often the reader has searched for files so far. */
async function startReplicas() {
  const { url } = await newDatabase()
  const [reader, writer] = [await openReplica(url), await openReplica(url)]
  await putPaths(writer.catalog, ['a/one.txt', 'a/two.txt', 'a/b/three.txt', 'c/Straße.txt'])
  const searches = countSearches(reader.postgres)
  const read = async (query: Partial<ListQuery>) => {
    const { rows } = await reader.catalog.reads.list(list(query))
    return rows.map(({ path }) => path)
  }
  return { reader, writer, read, searches }
}

/** The number of statements so far that collect all matching files. */
function countSearches(postgres: Postgres): () => number {
  let count = 0
  watchSnapshots(postgres, ({ text }) => {
    if (text.includes('with hits as')) count += 1
  })
  return () => count
}

test.each<[Partial<ListQuery>, string, string]>([
  [{ search: 'one' }, 'c/other.txt', 'does not contain the term'],
  [{ search: 'txt', prefix: 'a' }, 'ab/new.txt', 'is not below the directory'],
  [{ search: 'txt', prefix: 'a', recursive: false }, 'a/b/new.txt', 'is not directly in it'],
])('a search for %j is not repeated when %s changes, which %s', async (query, path) => {
  const { writer, read, searches } = await startReplicas()
  const before = await read(query)
  await writer.catalog.writes.put({ files: [toFile(path)] })

  expect(await read(query)).toEqual(before)
  await writer.catalog.writes.remove({ paths: [path] })
  expect(await read(query)).toEqual(before)
  expect(searches()).toBe(1)
})

test.each<[Partial<ListQuery>, string]>([
  [{ search: 'one' }, 'd/ONE.txt'],
  [{ search: 'STRASSE' }, 'd/straße.txt'],
  [{ search: 'txt', prefix: 'a' }, 'a/b/c/new.txt'],
  [{ search: 'txt', prefix: 'a', recursive: false }, 'a/new.txt'],
  [{ category: 'document', prefix: 'a' }, 'a/new.txt'],
])('a list of %j has a new file at %s, and not when it is removed', async (query, path) => {
  const { writer, read } = await startReplicas()
  const before = await read(query)
  await writer.catalog.writes.put({ files: [toFile(path)] })

  expect((await read(query)).sort()).toEqual([...before, path].sort())
  await writer.catalog.writes.remove({ paths: [path] })
  expect(await read(query)).toEqual(before)
})

test('files that are moved or removed with their directory leave all lists that they were in', async () => {
  const { writer, read } = await startReplicas()
  const found = () => Promise.all([read({ search: 'three' }), read({ search: 'txt', prefix: 'a' })])
  await found()

  await writer.catalog.moveDirectory({ from: 'a/b', to: 'd', overwrite: false })
  expect(await found()).toEqual([['d/three.txt'], ['a/one.txt', 'a/two.txt']])
  await writer.catalog.removeBelow('a')
  expect(await found()).toEqual([['d/three.txt'], []])
})

test('a change of more files than are named is seen', async () => {
  const { writer, read } = await startReplicas()
  expect(await read({ search: 'many' })).toEqual([])
  await putPaths(
    writer.catalog,
    Array.from({ length: 150 }, (_, at) => `many/${at}`),
  )

  expect(await read({ search: 'many/14', page_size: 3 })).toEqual(['many/14', 'many/140', 'many/141'])
})

test('lists have nothing of changes that the database has lost', async () => {
  const { writer, read } = await startReplicas()
  await read({ search: 'txt' })
  const loseCommits = await keepRows(writer.postgres)
  const queries = [{ search: 'lost' }, { search: 'found' }, { prefix: 'a' }]
  const readAll = () => Promise.all(queries.map(read))
  await writer.catalog.writes.put({ files: [toFile('a/lost')] })
  await readAll()

  await loseCommits()
  await writer.catalog.writes.put({ files: [toFile('a/found')] })
  const equal = await readAll()
  await writer.catalog.writes.put({ files: [toFile('found')] })
  const later = await readAll()

  const below = ['a/b/three.txt', 'a/found', 'a/one.txt', 'a/two.txt']
  expect(equal).toEqual([[], ['a/found'], below])
  expect(later).toEqual([[], ['a/found', 'found'], below])
})

test('lists are right where the database has lost changes and more were made than lost', async () => {
  const { writer, read } = await startReplicas()
  const loseCommits = await keepRows(writer.postgres)
  await writer.catalog.writes.put({ files: [toFile('a/lost')] })
  await read({ search: 'found' })

  await loseCommits()
  await writer.catalog.writes.put({ files: [toFile('a/found')] })
  await writer.catalog.writes.put({ files: [toFile('other')] })

  expect(await read({ search: 'found' })).toEqual(['a/found'])
})

test('a change by a process that names no files is seen', async () => {
  const { reader, writer, read } = await startReplicas()
  await read({ search: 'three' })
  await writer.catalog.removeBelow('a/b')
  await reader.postgres.query('delete from static_service.changed_files')

  expect(await read({ search: 'three' })).toEqual([])
})
