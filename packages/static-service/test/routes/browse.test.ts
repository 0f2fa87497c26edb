import { expect, test } from 'vitest'
import { z } from 'zod'
import { CategoryCount, DirectoryNode } from '../../src/routes/files/browse.ts'
import { FileList } from '../../src/routes/schemas.ts'
import { emptyService } from '../support/empty-service.ts'
import type { Service } from '../support/start.ts'

const putAll = async (service: Service, paths: string[]) => {
  for (const path of paths) await service.put(path)
}

const list = async (service: Service, query = '') => {
  const { body } = await service.call('GET', `/api/files${query}`)
  return body.files?.map(({ path }) => path)
}

test('the list is the same with and without a slash', async () => {
  await using service = await emptyService()
  await putAll(service, ['b', 'a'])

  const bare = await service.call('GET', '/api/files')
  const slashed = await service.call('GET', '/api/files/')

  expect(bare.body.files?.map(({ path }) => path)).toEqual(['a', 'b'])
  expect(slashed.body).toEqual(bare.body)
})

test('pages follow each other without gaps, and one past the end is empty', async () => {
  await using service = await emptyService()
  const paths = Array.from({ length: 7 }, (_, at) => `f${at}`)
  await putAll(service, paths)

  const pages = [1, 2, 3, 4].map((page) => list(service, `?page=${page}&page_size=3`))

  expect(await Promise.all(pages)).toEqual([['f0', 'f1', 'f2'], ['f3', 'f4', 'f5'], ['f6'], []])
  const { body } = await service.call('GET', '/api/files?page=1000000000&page_size=200')
  expect(body).toEqual({
    files: [],
    pagination: { page: 1_000_000_000, page_size: 200, total_items: 7, total_pages: 1 },
    next: null,
  })
})

test('files are sorted by path, size or the time of their last change, both ways', async () => {
  await using service = await emptyService()
  const putAt = async (path: string, content: string) => {
    const { body } = await service.put(path, content)
    // The next one has another time.
    const stored = Date.parse(String(body.updated_at))
    await expect.poll(() => Date.now(), { interval: 1 }).toBeGreaterThan(stored)
  }
  await putAt('b', '22')
  await putAt('a', '333')
  await putAt('c', '1')
  await putAt('b', '22')

  const orders = ['path', '-path', 'size', '-size', 'updated_at', '-updated_at']
  const lists = await Promise.all(orders.map((sort) => list(service, `?sort=${sort}`)))

  expect(lists.map((paths) => paths?.join(''))).toEqual(['abc', 'cba', 'cba', 'abc', 'acb', 'bca'])
})

test('a replaced file is found in its new category only', async () => {
  await using service = await emptyService()
  await service.put('logo', '\x89PNG\r\n\x1a\n not quite')
  const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
  await service.put('logo', png)

  const [images, others] = [await list(service, '?category=image'), await list(service, '?category=other')]

  expect([images, others]).toEqual([['logo'], []])
  expect(await list(service, '?search=log&category=image')).toEqual(['logo'])
  expect(await list(service, '?search=log&category=other')).toEqual([])
})

test.each([
  ['another case', 'ФАЙЛ', ['Файл.txt']],
  ['one letter of another alphabet', 'ф', ['Файл.txt']],
  ['two letters over a slash', 'r/', ['dir/straße.txt']],
  ['the other spelling of a letter', 'STRASSE', ['dir/straße.txt']],
  ['another normal form', 'cafe\u0301', ['Café.png']],
  ['letters that are only together elsewhere', 'xtd', []],
  ['a wildcard of SQL, as it is', '%', ['100%.txt']],
  ['an operator of the index, as it is', '" OR "', []],
  ['what every path has', '.', ['100%.txt', 'Café.png', 'dir/straße.txt', 'Файл.txt']],
])('a search finds a part of the path: %s', async (_what, search, expected) => {
  await using service = await emptyService()
  await putAll(service, ['Файл.txt', 'dir/straße.txt', 'Café.png', '100%.txt'])

  expect(await list(service, `?search=${encodeURIComponent(search)}`)).toEqual(expected)
})

test.each([
  ['page=0', '/query/page'],
  ['page=x', '/query/page'],
  ['page_size=201', '/query/page_size'],
  ['category=pictures', '/query/category'],
  ['sort=name', '/query/sort'],
  ['search=', '/query/search'],
  [`search=${'a'.repeat(201)}`, '/query/search'],
  ['search=a&search=b', '/query/search'],
  ['limit=3', '/query/limit'],
])('a list refuses ?%s', async (query, path) => {
  await using service = await emptyService()

  const { status, body } = await service.call('GET', `/api/files?${query}`)

  expect([status, body.code, body.errors?.map((fault) => fault.path)]).toEqual([400, 'validation_failed', [path]])
})

test('200 characters may be searched for, whatever their length in bytes', async () => {
  await using service = await emptyService()

  const { status } = await service.call('GET', `/api/files?search=${encodeURIComponent('🙂'.repeat(200))}`)

  expect(status).toBe(200)
})

test('an empty store has an empty tree, no categories and no files', async () => {
  await using service = await emptyService()

  const paths = ['/api/files/tree', '/api/files/categories', '/api/files']
  const [tree, categories, files] = await Promise.all(paths.map((path) => service.call('GET', path)))

  expect(tree?.body.tree).toEqual({
    name: '',
    path: '',
    type: 'directory',
    file_count: 0,
    total_size: 0,
    children: [],
  })
  expect(categories?.body.categories).toEqual([])
  expect(files?.body.pagination).toMatchObject({ total_items: 0, total_pages: 0 })
})

test('lists, categories and the tree have the same address with and without a slash', async () => {
  await using service = await emptyService()
  await service.put('a/b')
  const paths = ['/api/files', '/api/files/categories', '/api/files/tree']

  const answers = await Promise.all(
    paths.map(async (path) => [await service.call('GET', path), await service.call('GET', `${path}/`)]),
  )

  for (const [plain, slashed] of answers) {
    expect(slashed?.status).toBe(200)
    expect(slashed?.body).toEqual(plain?.body)
  }
})

// No schema checks them on the way out.
test.each([
  ['/api/files?search=a%00b', 'validation_failed'],
  ['/api/changes?by=a%00b', 'validation_failed'],
  ['/api/versions/a%00b', 'validation_failed'],
  ['/api/links?path=a%00b', 'validation_failed'],
  ['/api/changes?by=a%00b&prefix=a%00b', 'invalid_path'],
  ['/api/history?path=a%00b', 'invalid_path'],
])('U+0000 is refused in whichever database: %s', async (path, code) => {
  await using service = await emptyService()

  const { status, body } = await service.call('GET', path)

  expect([status, body.code]).toEqual([400, code])
})

test.each([
  ['/api/files?search=a', FileList],
  ['/api/files/categories', z.object({ categories: z.array(CategoryCount) })],
  ['/api/files/tree', z.object({ tree: DirectoryNode })],
])('%s answers exactly the fields of its schema', async (path, schema) => {
  await using service = await emptyService()
  await putAll(service, ['a/b.txt', 'c.png'])

  const { body } = await service.call('GET', path)

  expect(JSON.parse(JSON.stringify(schema.parse(body)))).toStrictEqual(body)
})

test('a tree is opened as deep as it is asked', async () => {
  await using service = await emptyService()
  await putAll(service, ['a/b/c/d', 'a/x', 'y'])

  const depths = await Promise.all(
    [0, 1, 2].map((depth) => service.call('GET', `/api/files/tree?prefix=a&depth=${depth}`)),
  )

  expect(depths.map(({ body }) => body.tree?.children)).toMatchObject([
    null,
    [
      { path: 'a/b', file_count: 1, children: null },
      { path: 'a/x', type: 'file' },
    ],
    [{ path: 'a/b', children: [{ path: 'a/b/c', children: null }] }, { path: 'a/x' }],
  ])
})

test.each([
  ['prefix=nowhere', 404, 'directory_not_found'],
  ['prefix=a', 404, 'directory_not_found'],
  ['prefix=../x', 400, 'invalid_path'],
  ['prefix=//', 400, 'invalid_path'],
  ['prefix=%ff', 400, 'invalid_path'],
  ['prefix=tree', 400, 'reserved_path'],
  ['depth=-1', 400, 'validation_failed'],
  ['deep=1', 400, 'validation_failed'],
])('a tree of ?%s is refused', async (query, status, code) => {
  await using service = await emptyService()
  await service.put('a')

  const answer = await service.call('GET', `/api/files/tree?${query}`)

  expect([answer.status, answer.body.code]).toEqual([status, code])
})

test.each([
  ['prefix=a', ['a/b/1', 'a/b/c/2', 'a/x']],
  ['prefix=/a/', ['a/b/1', 'a/b/c/2', 'a/x']],
  ['prefix=a&recursive=false', ['a/x']],
  ['prefix=a/b&recursive=true&sort=-path', ['a/b/c/2', 'a/b/1']],
  ['recursive=false', ['ab', 'z']],
  ['recursive=false&sort=-path', ['z', 'ab']],
  ['prefix=&recursive=false&page=2&page_size=1', ['z']],
  ['prefix=a&search=B', ['a/b/1', 'a/b/c/2']],
  ['prefix=a&recursive=false&search=b', []],
  ['prefix=a/b&category=image', []],
  ['prefix=nowhere', []],
  ['prefix=a/x', []],
])('a list of ?%s has the files of that directory only', async (query, expected) => {
  await using service = await emptyService()
  await putAll(service, ['a/b/1', 'a/b/c/2', 'a/x', 'ab', 'z', 'a-b/y'])

  expect(await list(service, `?${query}`)).toEqual(expected)
})

test('a list of a directory has the total of that directory', async () => {
  await using service = await emptyService()
  await putAll(service, ['a/b/1', 'a/b/c/2', 'a/x', 'z'])

  const totals = await Promise.all(
    ['prefix=a', 'prefix=a&recursive=false', 'prefix=a&sort=size', 'recursive=false'].map(
      async (query) => (await service.call('GET', `/api/files?page_size=1&${query}`)).body.pagination?.total_items,
    ),
  )

  expect(totals).toEqual([3, 1, 3, 1])
})

test.each([
  ['prefix=../x', 'invalid_path'],
  ['prefix=a//b', 'invalid_path'],
  ['prefix=%ff', 'invalid_path'],
  ['prefix=tree/a', 'reserved_path'],
  ['prefix=a&prefix=b', 'validation_failed'],
  ['recursive=no', 'validation_failed'],
])('a list of ?%s is refused', async (query, code) => {
  await using service = await emptyService()

  const { status, body } = await service.call('GET', `/api/files?${query}`)

  expect([status, body.code]).toEqual([400, code])
})
