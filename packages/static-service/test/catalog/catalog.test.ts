import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Catalog } from '../../src/catalog/catalog.ts'
import type { TreeSource } from '../../src/catalog/changes/tree-changes.ts'
import { type ListQuery, sorts } from '../../src/catalog/listing/list-query.ts'
import { parentOf } from '../../src/files/file-path.ts'
import { databases, openCatalog, putPaths, toFile } from '../support/catalogs.ts'
import type { Node } from '../support/start.ts'

const numbered = (count: number, write: (number: string) => string) =>
  Array.from({ length: count }, (_, at) => write(String(at).padStart(5, '0')))

const list = async (catalog: Catalog, query: Partial<ListQuery>) => {
  const found = await catalog.reads.list({ sort: 'path', page: 1, page_size: 3, ...query })
  return { ...found, paths: found.rows.map(({ path }) => path) }
}

const Tree = z.object({ tree: z.custom<Node>() })

const tree = async (catalog: Catalog, prefix = '', depth = 32): Promise<Node> => {
  const text = Buffer.from((await catalog.reads.tree({ prefix, depth })) ?? '').toString()
  return Tree.parse(JSON.parse(text)).tree
}

const count = ({ children }: Node): number => 1 + (children ?? []).reduce((total, child) => total + count(child), 0)

const unopened = (node: Node): Node[] =>
  node.type === 'directory' && node.children === null ? [node] : (node.children ?? []).flatMap(unopened)

describe.each(databases)('%s', (database) => {
  const open = async (paths: string[] = []) => {
    const catalog = await openCatalog(database)
    await putPaths(catalog, paths)
    return catalog
  }

  test.each<[string, TreeSource, object]>([
    ['one of its contents went meanwhile', { files: ['a', 'b'].map(toFile), areStored: true }, { status: 503 }],
    ['a path would be one of the API', { from: 'from' }, { status: 400, code: 'reserved_path' }],
  ])('a tree stores nothing where %s', async (_what, source, refusal) => {
    const catalog = await open(['a', 'from/tree/a'])
    const change = catalog.writes.replaceTree({
      actor: { by: 'tester', token: null, requestId: '' },
      directory: '',
      source,
      isMerge: true,
      conditions: {},
      version: undefined,
      isDryRun: false,
      maxFiles: 9,
    })

    await expect(change).rejects.toMatchObject(refusal)
    expect((await list(catalog, {})).paths).toEqual(['a', 'from/tree/a'])
  })

  test('a file that was replaced does not move with the type of its former content', async () => {
    const catalog = await open(['a'])
    const type = { digest: '1'.repeat(64), contentType: 'image/png', category: 'image' as const }

    const moved = await catalog.writes.moveFiles({ moves: [{ from: 'a', to: 'b', overwrite: false, type }] })

    expect([moved, (await list(catalog, {})).paths]).toEqual([undefined, ['a']])
  })

  test.each(sorts)('pages by %s are the same in whatever order they are asked for', async (sort) => {
    const paths = numbered(90, (number) => `${Number(number) % 7}/f${number}`)
    const catalog = await open(paths)
    const pages = (order: number[]) =>
      order.reduce<Promise<string[][]>>(async (before, page) => {
        const read = [...(await before)]
        read[page - 1] = (await list(catalog, { sort, page, page_size: 10 })).paths
        return read
      }, Promise.resolve([]))

    const first = await pages([1, 2, 3, 4, 5, 6, 7, 8, 9])
    const again = await pages([4, 9, 2, 3, 8, 5, 1, 7, 6])
    await catalog.writes.remove({ paths: [paths[17] ?? ''] })
    await catalog.writes.put({ files: [toFile('0/a'), toFile('3/f'), toFile('9')] })
    const changed = await pages([7, 9, 3, 4, 1, 2, 5, 8, 6])
    const whole = await list(catalog, { sort, page_size: 200 })

    expect(again).toEqual(first)
    expect(new Set(first.flat())).toEqual(new Set(paths))
    expect(changed.flat()).toEqual(whole.paths.slice(0, 90))
  })

  test('hits are counted exactly up to 10,000 and no further, and every page of them can be read', async () => {
    const catalog = await open([
      ...numbered(10_001, (number) => `many/${number}.txt`),
      ...numbered(10_000, (number) => `just/${number}.png`),
    ])

    const exact = await list(catalog, { search: 'just', page: 3334 })
    const capped = await list(catalog, { search: 'MANY' })
    const deep = await list(catalog, { search: 'many', page: 3334 })
    const last = await list(catalog, { search: 'many', sort: '-path' })
    const letter = await list(catalog, { search: 'a', category: 'document' })

    expect([exact.total, exact.isExact, exact.paths]).toEqual([10_000, true, ['just/09999.png']])
    expect([capped.total, capped.isExact]).toEqual([10_000, false])
    expect(capped.paths).toEqual(['many/00000.txt', 'many/00001.txt', 'many/00002.txt'])
    expect(deep.paths).toEqual(['many/09999.txt', 'many/10000.txt'])
    expect(last.paths).toEqual(['many/10000.txt', 'many/09999.txt', 'many/09998.txt'])
    expect([letter.total, letter.isExact]).toEqual([10_000, false])
  })

  test('the pages of the second half are the same as counted from the beginning', async () => {
    const paths = numbered(100, (number) => `f${number}`)
    const catalog = await open(paths)

    const pages = await Promise.all(
      Array.from({ length: 15 }, (_, at) => list(catalog, { page: at + 1, page_size: 7 })),
    )

    expect(pages.flatMap((page) => page.paths)).toEqual(paths)
  })

  test('a tree has 10,000 nodes at most, and what is left unopened can be asked for', async () => {
    const paths = numbered(12_000, (number) => `d${number.slice(0, 2)}/${number.slice(2, 3)}/${number}.txt`)
    const catalog = await open(paths)

    const all = await tree(catalog)
    const [left] = unopened(all)
    const rest = await tree(catalog, left?.path)

    expect(count(all)).toBeLessThanOrEqual(10_000)
    expect(count(all)).toBeGreaterThan(9_000)
    expect(all).toMatchObject({ file_count: 12_000 })
    // 120 directories in 12, the last of which do not fit.
    const last = [...new Set(paths.map(parentOf))].slice(Math.floor((10_000 - 133) / 100))
    expect(unopened(all).map(({ path }) => path)).toEqual(last)
    expect(rest.children).toHaveLength(100)
  })

  test('a directory that is too large for an answer says that there is more', async () => {
    const catalog = await open([...numbered(10_500, (number) => `flat/${number}`), 'small/x'])

    const root = await tree(catalog)
    const flat = await tree(catalog, 'flat')

    expect(root.children?.map((child) => child.children?.length ?? null)).toEqual([null, 1])
    expect(root.truncated).toBeUndefined()
    expect([flat.children?.length, flat.truncated, flat.file_count]).toEqual([9_999, true, 10_500])
  })

  test('changes that come together are each done or refused alone, and told before they are answered', async () => {
    const catalog = await open(['taken'])
    const events: string[] = []
    catalog.onChange((paths) => events.push(...paths))
    const put = async (path: string) => {
      try {
        await catalog.writes.put({ files: [toFile(path)], conditions: { ifNoneMatch: '*' } })
        events.push(`answered ${path}`)
      } catch (error) {
        events.push(`refused ${path}: ${error instanceof Error && 'code' in error && error.code}`)
      }
    }

    await Promise.all(['a', 'taken', 'taken/x', 'b', 'a'].map(put))

    expect(events.filter((event) => /^[ab]$/.test(event))).toEqual(['a', 'b'])
    expect(events.indexOf('a')).toBeLessThan(events.indexOf('answered a'))
    expect(events.filter((event) => event.startsWith('refused')).sort()).toEqual([
      'refused a: precondition_failed',
      'refused taken/x: path_conflict',
      'refused taken: precondition_failed',
    ])
  })
  test('a batch that is rejected after its first file leaves no trace in changes that share its commit', async () => {
    const catalog = await open(['taken'])
    const put = (...paths: string[]) =>
      catalog.writes.put({ files: paths.map(toFile) }).then(
        () => 'stored',
        (error) => error.code,
      )

    const outcomes = await Promise.all([
      put('a'),
      put('new/1', 'new/2', 'taken/x'),
      put('b'),
      catalog.moveDirectory({ from: 'missing', to: 'x', overwrite: false }).catch((e) => e.code),
      put('c'),
    ])

    expect(outcomes).toEqual(['stored', 'path_conflict', 'stored', 'directory_not_found', 'stored'])
    const root = await tree(catalog)
    expect(root.children?.map(({ name }) => name)).toEqual(['a', 'b', 'c', 'taken'])
    expect([root.file_count, root.total_size]).toEqual([4, 8])
    expect((await list(catalog, { search: 'new' })).total).toBe(0)
    expect(await catalog.totals()).toMatchObject({ totalFiles: 4, storedSize: 8 })
  })

  test('a page of long changelogs is read while the event loop goes on, and brings it 1 KiB of each', async () => {
    const catalog = await open()
    for (const version of numbered(10, (number) => number)) {
      await catalog.writes.record({ version, changelog: 'é'.repeat(32_768), createdBy: 'tester' })
    }
    const order: string[] = []

    const reading = catalog.reads.versions({ skip: 0, take: 10 }).then((page) => {
      order.push('page')
      return page
    })
    setImmediate(() => order.push('another request'))
    const page = await reading

    expect(order).toEqual(['another request', 'page'])
    expect(page).toHaveLength(10)
    expect(page.every(({ changelog }) => Buffer.byteLength(changelog) <= 1024)).toBe(true)
  })

  test('a refused version takes no number', async () => {
    const catalog = await open()
    const record = (version: string) => catalog.writes.record({ version, changelog: '', createdBy: 'x' })

    const first = await record('1')
    await expect(record('1')).rejects.toMatchObject({ code: 'version_exists' })
    const second = await record('2')

    expect([first.id, second.id]).toEqual([1, 2])
    expect((await catalog.totals()).versions).toBe(2)
  })
})
