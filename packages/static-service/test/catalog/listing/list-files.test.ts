import type { Postgres } from '@domains-and-files/persistence'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Catalog } from '../../../src/catalog/catalog.ts'
import { FileListing } from '../../../src/catalog/listing/list-files.ts'
import { type ListQuery, sorts } from '../../../src/catalog/listing/list-query.ts'
import type { NewFile } from '../../../src/catalog/tables.ts'
import { newDatabase, openReplica, putPaths, toFile, watchSnapshots } from '../../support/catalogs.ts'

const pageSize = 10

const list = (query: Partial<ListQuery>): ListQuery => ({
  sort: 'path',
  page: 1,
  page_size: pageSize,
  ...query,
})

const sized = (path: string, size: number): NewFile => ({ ...toFile(path), size })

const numbered = (count: number, name: (at: string) => string) =>
  Array.from({ length: count }, (_, at) => name(String(at).padStart(4, '0')))

async function moveFile(writer: Catalog, from: string, to: string) {
  const row = await writer.find(from)
  if (!row) throw new Error(`there is no ${from}`)
  const { digest, contentType } = row
  const category = contentType === 'image/png' ? 'image' : 'document'
  await writer.writes.moveFiles({
    moves: [{ from, to, overwrite: true, type: { digest, contentType, category } }],
  })
}

/** Two replicas on one database with these files, and what a listing without any memory returns. */
async function startReplicas(paths: string[]) {
  const { url } = await newDatabase()
  const [reader, writer] = [await openReplica(url), await openReplica(url)]
  await putPaths(writer.catalog, paths)
  const read = async (query: Partial<ListQuery>) => reader.catalog.reads.list(list(query))
  const readAfresh = (query: Partial<ListQuery>) => new FileListing(writer.postgres).list(list(query))
  const countedRows = countRows(reader.postgres)
  return { writer: writer.catalog, read, readAfresh, countedRows }
}

/** The number of rows that pages have been counted over since the last call. */
function countRows(postgres: Postgres): () => number {
  let count = 0
  watchSnapshots(postgres, ({ text, values }) => {
    // The last value.
    if (/offset \$\d+\) page/.test(text)) count += Number(values.at(-1))
  })
  return () => {
    const counted = count
    count = 0
    return counted
  }
}

const changes: [string, number, (writer: Catalog) => Promise<unknown>][] = [
  ['a file is added before it', 1, (writer) => writer.writes.put({ files: [toFile('a/0100x')] })],
  ['a file is added after it', 0, (writer) => writer.writes.put({ files: [toFile('a/0270x')] })],
  ['a file is removed before it', 1, (writer) => writer.writes.remove({ paths: ['a/0100'] })],
  ['a file is removed after it', 0, (writer) => writer.writes.remove({ paths: ['a/0290'] })],
  ['its first file is removed', 1, (writer) => writer.writes.remove({ paths: ['a/0120'] })],
  ['a file before it is replaced', 0, (writer) => writer.writes.put({ files: [sized('a/0100', 9)] })],
  ['a file moves across it', 1, (writer) => moveFile(writer, 'a/0290', 'a/0000x')],
  ['a directory moves across it', 30, (writer) => writer.moveDirectory({ from: 'b', to: '0', overwrite: false })],
  [
    'a batch adds files before and after it',
    40,
    (writer) => putPaths(writer, [...numbered(40, (at) => `0/${at}`), 'a/0290x', 'c']),
  ],
]

test.each(changes)('a page in the middle is not counted from the start again when %s', async (_, distance, change) => {
  const paths = [...numbered(300, (at) => `a/${at}`), ...numbered(30, (at) => `b/${at}`)]
  const { writer, read, readAfresh, countedRows } = await startReplicas(paths)
  await read({ page: 13 })
  expect(countedRows()).toBe(120)
  await change(writer)

  const page = await read({ page: 13 })

  expect(countedRows()).toBeLessThanOrEqual(distance)
  expect(page).toEqual(await readAfresh({ page: 13 }))
})

test('a page in the middle by size stays known when a file is replaced by a larger one', async () => {
  const { writer, read, readAfresh, countedRows } = await startReplicas(numbered(300, (at) => `a/${at}`))
  const middle: Partial<ListQuery> = { sort: 'size', page: 13 }
  await read(middle)
  expect(countedRows()).toBe(120)
  await writer.writes.put({ files: [sized('a/0100', 1000)] })

  const page = await read(middle)

  expect(countedRows()).toBeLessThanOrEqual(1)
  expect(page).toEqual(await readAfresh(middle))
})

test('a page just before a known one is counted back from it', async () => {
  const { read, readAfresh, countedRows } = await startReplicas(numbered(400, (at) => `a/${at}`))
  await read({ page: 15 })
  expect(countedRows()).toBe(140)

  const page = await read({ page: 14 })

  expect(countedRows()).toBe(9)
  expect(page).toEqual(await readAfresh({ page: 14 }))
})

test('positions are forgotten when a process names changed files without their states', async () => {
  const { url } = await newDatabase()
  const { catalog, postgres } = await openReplica(url)
  await putPaths(
    catalog,
    numbered(300, (at) => `a/${at}`),
  )
  await catalog.reads.list(list({ page: 13 }))
  await catalog.writes.put({ files: [toFile('a/0100x')] })
  await postgres.query('update static_service.changed_files set before = null, after = null')

  const { rows } = await catalog.reads.list(list({ page: 13 }))

  expect(rows[0]?.path).toBe('a/0119')
})

// U+FB01 sorts before U+1F642 by UTF-8 bytes, and after it by UTF-16.
const name = fc.constantFrom('A', 'b', '0500', '0500x', '\ufb01', '🙂', 'жук', '~')
const path = fc
  .tuple(fc.constantFrom('', 'd/', 'd/e/', 'm/', 'x/'), name, fc.constantFrom('', '.png'))
  .map((parts) => parts.join(''))
const file = fc.tuple(path, fc.integer({ min: 0, max: 12 })).map((parts) => sized(...parts))

type Change = (writer: Catalog) => Promise<unknown>

const change: fc.Arbitrary<Change> = fc.oneof(
  file.map((each) => (writer: Catalog) => writer.writes.put({ files: [each] })),
  fc
    .uniqueArray(file, { minLength: 1, maxLength: 20, selector: (each) => each.path })
    .map((files) => (writer: Catalog) => writer.writes.put({ files })),
  path.map((each) => (writer: Catalog) => writer.writes.remove({ paths: [each] })),
  fc.tuple(path, path).map(
    ([from, to]) =>
      (writer: Catalog) =>
        moveFile(writer, from, to),
  ),
  fc.tuple(fc.constantFrom('d/e', 'm', 'x'), fc.constantFrom('d/e', 'm', 'x', 'y')).map(
    ([from, to]) =>
      (writer: Catalog) =>
        writer.moveDirectory({ from, to, overwrite: true }),
  ),
)

const query = fc.record({
  sort: fc.constantFrom(...sorts),
  page: fc.integer({ min: 1, max: 215 }),
  category: fc.constantFrom(undefined, 'document' as const, 'image' as const),
  directory: fc.constantFrom({}, { prefix: 'd' }, { prefix: 'd', recursive: false }),
})

test('pages at known positions are those of a listing without memory, whatever changes', async () => {
  const paths = numbered(2100, (at) => `d/${at}${Number(at) % 3 ? '' : '.png'}`)
  const { writer, read, readAfresh } = await startReplicas(paths)
  const step = fc.record({
    changes: fc.array(change, { maxLength: 3 }),
    queries: fc.array(query, { minLength: 1, maxLength: 4 }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 20 }), async (steps) => {
      for (const { changes, queries } of steps) {
        // Conflicts and missing files change nothing.
        for (const each of changes) await each(writer).catch(() => undefined)
        for (const { directory, ...rest } of queries) {
          const asked = { ...rest, ...directory }
          expect([asked, await read(asked)]).toEqual([asked, await readAfresh(asked)])
        }
      }
    }),
    { numRuns: Number(process.env.MODEL_RUNS ?? 4) },
  )
})
