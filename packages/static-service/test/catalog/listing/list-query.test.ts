import { describe, expect, test } from 'vitest'
import { type ListQuery, sorts } from '../../../src/catalog/listing/list-query.ts'
import type { NewFile } from '../../../src/catalog/tables.ts'
import { databases, openCatalog } from '../../support/catalogs.ts'

// More files directly in one directory, and below it, than a result is collected and sorted for.
const inLarge = Array.from({ length: 10_050 }, (_, at) => `large/${at % 97}-${at}.txt`)
const below = Array.from({ length: 60 }, (_, at) => `large/${at % 7}/${at}.png`)
const others = Array.from({ length: 500 }, (_, at) => `other/${at % 5}/${at}.txt`)
const siblings = ['large', 'large-x/1.txt', 'large.txt', 'larger/0', 'z'].slice(1)
const files = [...inLarge, ...below, ...others, ...siblings].map(
  (path, at): NewFile => ({
    path,
    digest: at.toString(16).padStart(64, '0'),
    size: (at * 7919) % 501,
    contentType: path.endsWith('.png') ? 'image/png' : 'text/plain',
    category: path.endsWith('.png') ? 'image' : 'document',
    uploadedBy: 'tester',
  }),
)

function expected({ prefix = '', recursive = true, category, search = '', sort }: ListQuery) {
  const start = prefix && `${prefix}/`
  const found = files
    .filter(({ path }) => path.startsWith(start))
    .filter(({ path }) => recursive || !path.slice(start.length).includes('/'))
    .filter((file) => !category || file.category === category)
    .filter(({ path }) => path.includes(search))
    .sort((one, other) => (one.path < other.path ? -1 : 1))
  if (sort.endsWith('size')) found.sort((one, other) => one.size - other.size)
  if (sort.startsWith('-')) found.reverse()
  return found.map(({ path }) => path)
}

describe.each(databases)('%s', (database) => {
  const open = async () => {
    const catalog = await openCatalog(database)
    for (let from = 0; from < files.length; from += 2000) {
      await catalog.writes.put({ files: files.slice(from, from + 2000) })
    }
    return catalog
  }

  test('a directory is listed page by page in every order, at every size', async () => {
    const catalog = await open()
    const filters: Partial<ListQuery>[] = [
      { prefix: 'large' },
      { prefix: 'large', recursive: false },
      { prefix: 'large', category: 'document' },
      { prefix: 'large', category: 'image' },
      { prefix: 'large', search: '.txt' },
      { prefix: 'large', search: '9-9' },
      { prefix: 'large', recursive: false, search: '.txt' },
      { prefix: 'large/3' },
      { prefix: 'other', search: '4', recursive: true },
      { recursive: false },
      { recursive: false, category: 'document' },
      { prefix: 'other', recursive: false },
    ]

    for (const filter of filters) {
      for (const sort of sorts.filter((each) => !each.endsWith('updated_at'))) {
        const query = { sort, page: 1, page_size: 200, ...filter }
        const all = expected(query)
        const last = Math.max(1, Math.ceil(all.length / 200))
        for (const page of [1, 3, last, Math.ceil(last / 2), last - 1, last + 1].filter(Boolean)) {
          const list = await catalog.reads.list({ ...query, page })
          const label = JSON.stringify({ ...query, page })
          expect([label, list.rows.map(({ path }) => path)]).toEqual([label, all.slice((page - 1) * 200, page * 200)])
          expect([label, list.total]).toEqual([label, list.isExact ? all.length : 10_000])
          expect([label, list.isExact]).toEqual([label, all.length <= 10_000 || !(filter.category || filter.search)])
        }
      }
    }
  })

  test('an update is seen on the next page, also where results are cached', async () => {
    const catalog = await open()
    const query: ListQuery = { prefix: 'other/1', sort: '-size', page: 1, page_size: 10 }
    const before = await catalog.reads.list(query)

    await catalog.writes.remove({ paths: [before.rows[0]?.path ?? ''] })
    const after = await catalog.reads.list(query)

    expect(after.rows.slice(0, 9)).toEqual(before.rows.slice(1))
    expect(after.total).toBe(before.total - 1)
  })
})
