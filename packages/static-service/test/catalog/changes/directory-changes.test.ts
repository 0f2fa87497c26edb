import { name, OutcomeUnknownError, sql } from '@domains-and-files/persistence'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Catalog } from '../../../src/catalog/catalog.ts'
import { findMiscounts } from '../../../src/catalog/find-miscounts.ts'
import { openSqliteCatalog } from '../../../src/catalog/sqlite/sqlite-catalog.ts'
import {
  databases,
  makeFolder,
  newDatabase,
  openCatalog,
  openReplica,
  putPaths,
  toFile,
} from '../../support/catalogs.ts'

const limits = { wholeFiles: 20, sliceFiles: 8 }

const numbered = (count: number, directory: string) =>
  Array.from({ length: count }, (_, at) => `${directory}/${String(at).padStart(3, '0')}`)

const pathsIn = async (catalog: Catalog) => {
  const { rows } = await catalog.reads.list({ sort: 'path', page: 1, page_size: 200 })
  return rows.map(({ path }) => path)
}

const codeOf = (change: Promise<unknown>) =>
  change.then(
    () => 'done',
    (error) => error.code,
  )

/** Runs once, in the change that the catalog commits next. */
function afterNextCommit(catalog: Catalog, act: () => Promise<unknown>): Promise<unknown> {
  const acted = Promise.withResolvers<unknown>()
  let isFirst = true
  catalog.onChange(() => {
    if (isFirst) acted.resolve(act())
    isFirst = false
  })
  return acted.promise
}

describe.each(databases)('%s', (database) => {
  const open = async (...paths: string[]) => {
    const catalog = await openCatalog(database, { limits })
    await putPaths(catalog, paths)
    return catalog
  }

  test('a large directory is deleted in slices; changes go in between, and what is stored meanwhile stays', async () => {
    const catalog = await open(...numbered(50, 'd'), 'e')
    let slices = 0
    catalog.onChange((paths) => {
      if (!paths.includes('d/zzz')) slices += 1
    })
    const stored = afterNextCommit(catalog, () => catalog.writes.put({ files: [toFile('d/000'), toFile('d/zzz')] }))
    const order: string[] = []

    const removal = catalog.removeBelow('d').then((removed) => {
      order.push('removed')
      return removed
    })
    await stored
    order.push('stored')

    expect(await removal).toMatchObject({ files: 50, bytesFreed: 250 })
    expect([slices, order]).toEqual([7, ['stored', 'removed']])
    expect(await pathsIn(catalog)).toEqual(['d/000', 'd/zzz', 'e'])
    expect(await findMiscounts(catalog.database)).toEqual([])
  })

  test('a directory of as many files as one transaction changes is deleted as a whole', async () => {
    const catalog = await open(...numbered(20, 'd'))
    let changes = 0
    catalog.onChange(() => {
      changes += 1
    })

    const removed = await catalog.removeBelow('d')

    expect([removed.files, changes]).toEqual([20, 1])
  })

  test('a large directory moves in slices, over other files too', async () => {
    const catalog = await open(...numbered(50, 'd'), 'to/d/007', 'to/other')

    expect(await catalog.moveDirectory({ from: 'd', to: 'to/d', overwrite: true })).toBe(50)
    expect(await pathsIn(catalog)).toEqual([...numbered(50, 'to/d'), 'to/other'])
    expect(await findMiscounts(catalog.database)).toEqual([])
  })

  test.each([
    ['onto a file', { to: 'taken', overwrite: false }, 'path_conflict'],
    ['below a file', { to: 'file/x', overwrite: true }, 'path_conflict'],
    ['of a directory onto a file', { to: 'above', overwrite: true }, 'path_conflict'],
    ['of a file onto a directory', { to: 'full', overwrite: true }, 'path_conflict'],
    ['into itself', { to: 'd/x', overwrite: true }, 'path_conflict'],
    ['to a reserved name', { to: 'tree', overwrite: true }, 'reserved_path'],
    ['to names that are too long', { to: 'x'.repeat(256), overwrite: true }, 'invalid_path'],
  ])('a large move %s is refused before anything moves', async (_what, move, code) => {
    const targets = ['file', 'full/025/x', 'taken/025']
    const paths = ['above/999', ...numbered(30, 'd'), 'd/999/x', ...targets]
    const catalog = await open(...paths)

    expect(await codeOf(catalog.moveDirectory({ from: 'd', ...move }))).toBe(code)
    expect(await pathsIn(catalog)).toEqual(paths)
  })

  test('a large move ends where a file was stored in its way, and is not tried again', async () => {
    const catalog = await open(...numbered(50, 'd'))
    const stored = afterNextCommit(catalog, () => catalog.writes.put({ files: [toFile('to/049')] }))

    const outcome = await codeOf(catalog.moveDirectory({ from: 'd', to: 'to', overwrite: false }))
    await stored

    expect(outcome).toBe('path_conflict')
    expect(await catalog.database.all(sql`select id from ${name('unfinished_changes')}`)).toEqual([])
    expect(await pathsIn(catalog)).toEqual([
      ...numbered(50, 'd').slice(48),
      ...numbered(50, 'to').slice(0, 48),
      'to/049',
    ])
    expect(await catalog.removeBelow('d')).toMatchObject({ files: 2 })
  })

  test('the outcome of a deletion that another process has ended is unknown', async () => {
    const catalog = await open(...numbered(50, 'd'))
    const ended = afterNextCommit(catalog, () => catalog.writes.abandon({ id: 2 }))

    await expect(catalog.removeBelow('d')).rejects.toThrow(OutcomeUnknownError)
    await ended
    expect(await pathsIn(catalog)).toEqual(numbered(50, 'd').slice(8))
  })

  test('files move up to places that others of the same directory leave', async () => {
    const catalog = await open(...numbered(30, 'a/b'), ...numbered(30, 'a/b/b'), 'a/b/c/a')

    expect(await catalog.moveDirectory({ from: 'a/b', to: 'a', overwrite: false })).toBe(61)
    expect(await pathsIn(catalog)).toEqual([...numbered(30, 'a'), ...numbered(30, 'a/b'), 'a/c/a'])
    expect(await findMiscounts(catalog.database)).toEqual([])
  })

  test('two files change places without a permission to overwrite', async () => {
    const catalog = await open('a', 'b')
    const [a, b] = [await catalog.find('a'), await catalog.find('b')]

    const moved = await catalog.writes.moveFiles({
      moves: [
        { from: 'a', to: 'b', overwrite: false },
        { from: 'b', to: 'a', overwrite: false },
      ],
    })

    expect(moved).toBe(2)
    expect((await catalog.find('a'))?.digest).toBe(b?.digest)
    expect((await catalog.find('b'))?.digest).toBe(a?.digest)
    expect(await findMiscounts(catalog.database)).toEqual([])
  })

  test('a request that is done in slices is one change, of which later changes are independent', async () => {
    const catalog = await open(...numbered(50, 'd'))
    const actor = { by: 'someone', token: null, requestId: 'a-request' }
    const stored = afterNextCommit(catalog, () => catalog.writes.put({ files: [toFile('d/000')] }))

    await catalog.removeBelow('d', actor)
    await stored

    const { rows: changes } = await catalog.reads.changes({ prefix: '', page: 1, page_size: 2 })
    expect(changes).toMatchObject([
      { action: 'upload', added: 1, paths: ['d/000'] },
      { ...actor, action: 'delete', prefix: 'd/', removed: 50, bytes: 250 },
    ])
    const [, removal] = changes
    const read = await catalog.reads.change({ id: removal?.id ?? 0, page: 1, page_size: 100 })
    expect(read?.rows.map(({ path }) => path)).toEqual(numbered(50, 'd'))
    expect(removal?.paths).toEqual(numbered(8, 'd'))
    const events = await catalog.database.all<{ data: string }>(sql`select data from ${name('events')} order by id`)
    const told = events.map(({ data }) => JSON.parse(data))
    expect(told.filter(({ entry }) => entry.id === removal?.id)).toMatchObject([
      { entry: { action: 'delete', removed: 50 }, directories: ['d/'], isDeep: true },
    ])
  })

  test('a request that is done in slices is reverted as a whole, and not before its end', async () => {
    const history = { keepDays: 30, keepVersions: 0, entryDays: 0 }
    const catalog = await openCatalog(database, { limits, history })
    await putPaths(catalog, numbered(50, 'd'))
    const early = afterNextCommit(catalog, () => codeOf(catalog.writes.revert({ id: 2, overwrite: false })))

    await catalog.removeBelow('d')

    expect([await early, await pathsIn(catalog)]).toEqual(['revert_conflict', []])
    expect(await catalog.writes.revert({ id: 2, overwrite: false })).toMatchObject({
      action: 'revert',
      added: 50,
    })
    expect(await pathsIn(catalog)).toEqual(numbered(50, 'd'))
  })

  test('names of any character are deleted with their directory', async () => {
    const catalog = await open('d/\u{10ffff}', 'd/\u{10ffff}x/y', '\u{10ffff}')

    expect(await catalog.removeBelow('d')).toMatchObject({ files: 2 })
    expect(await catalog.removeBelow('')).toMatchObject({ files: 1 })
    expect(await pathsIn(catalog)).toEqual([])
  })

  test('changes of directories wait, and let each of the others go first', async () => {
    const catalog = await open(...numbered(10, 'a'), ...numbered(10, 'b'), ...numbered(10, 'c'))
    const order: string[] = []
    const note = (name: string) => () => order.push(name)

    await Promise.all([
      catalog.removeBelow('a').then(note('a')),
      catalog.removeBelow('b').then(note('b')),
      catalog.removeBelow('c').then(note('c')),
      catalog.writes.put({ files: [toFile('x')] }).then(note('x')),
      afterNextCommit(catalog, () => catalog.writes.put({ files: [toFile('y')] }).then(note('y'))),
    ])

    expect(order).toEqual(['x', 'a', 'y', 'b', 'c'])
  })
})

const unknown = 'whether the transaction was committed is unknown'

/** Closes the catalog in the middle of a change. */
async function stopAmid(catalog: Catalog, change: () => Promise<unknown>) {
  const closed = afterNextCommit(catalog, () => catalog.close())
  const outcome = await change().then(
    () => 'done',
    (error) => error.message,
  )
  await closed
  return outcome
}

test.each([
  ['deletion', (catalog: Catalog) => catalog.removeBelow('d'), []],
  ['move', (catalog: Catalog) => catalog.moveDirectory({ from: 'd', to: 'to', overwrite: false }), numbered(50, 'to')],
])('a %s that was interrupted is finished at the next start', async (_what, change, expected) => {
  const folder = makeFolder()
  const first = await openSqliteCatalog(folder, { limits })
  await putPaths(first, numbered(50, 'd'))
  const outcome = await stopAmid(first, () => change(first))

  const second = await openSqliteCatalog(folder, { limits })
  second.background.start(second.isExclusive)
  onTestFinished(() => second.close())

  expect(outcome).toBe(unknown)
  await expect.poll(() => pathsIn(second)).toEqual(expected)
  expect(await findMiscounts(second.database)).toEqual([])
})

test('a deletion that a replica left is finished by the next that starts, and by no other before it is left', async () => {
  const { url } = await newDatabase()
  const { catalog, postgres } = await openReplica(url, { limits })
  await putPaths(catalog, numbered(50, 'd'))
  await stopAmid(catalog, () => catalog.removeBelow('d'))
  await postgres.query('update static_service.unfinished_changes set touched_at = 1e14')
  const early = await openReplica(url, { limits })
  const before = await pathsIn(early.catalog)
  await postgres.query('update static_service.unfinished_changes set touched_at = 0')

  const late = await openReplica(url, { limits })

  expect(before).toEqual(numbered(50, 'd').slice(8))
  await expect.poll(() => pathsIn(late.catalog)).toEqual([])
})

test('a deletion whose database fails after a slice may be completed, and says so', async () => {
  const { url } = await newDatabase()
  const { catalog, postgres } = await openReplica(url, { limits })
  await putPaths(catalog, numbered(50, 'd'))
  const closed = afterNextCommit(catalog, () => postgres.close())

  await expect(catalog.removeBelow('d')).rejects.toThrow(unknown)
  await closed
})
