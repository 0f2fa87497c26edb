import { expect, test } from 'vitest'
import { z } from 'zod'
import { type Service, start } from '../support/start.ts'

const get = async (service: Service, path: string) => {
  const { status, bytes } = await service.call('GET', path)
  return { status, json: z.looseObject({}).parse(JSON.parse(bytes.toString())) }
}

const record = (service: Service, version: string) =>
  service.call('POST', '/api/versions', { json: { version, changelog: '' } })

const keptOf = async (service: Service) => {
  const { json } = await get(service, '/api/versions')
  return z
    .array(z.object({ files_kept: z.boolean() }))
    .parse(json.versions)
    .map(({ files_kept }) => files_kept)
    .toReversed()
}

const names = (files: unknown) =>
  z
    .array(z.looseObject({ path: z.string() }))
    .parse(files)
    .map(({ path }) => path)

test('a version lists its files as they were, page by page, and tells what differs from others', async () => {
  await using service = await start({ env: { KEEP_HISTORY_DAYS: '30' } })
  for (const path of ['a', 'b', 'docs/c', 'docs/d']) await service.put(path, `one ${path}`)
  await record(service, '1')
  const then = await get(service, '/api/files?page_size=3')
  await service.put('b', 'two')
  await service.call('DELETE', '/api/files/docs/c')
  await service.put('docs/e', 'new')
  await service.put('passing', 'between two versions')
  await service.call('DELETE', '/api/files/passing')
  await record(service, '2')
  await service.put('b', 'one b')

  const first = await get(service, '/api/versions/1/files?page_size=3')
  expect(first.json).toMatchObject({ files: then.json.files, pagination: then.json.pagination })
  const second = await get(service, `/api/versions/1/files?page_size=3&after=${first.json.next}`)
  expect([names(second.json.files), second.json.next]).toEqual([['docs/d'], null])
  const paged = await get(service, '/api/versions/1/files/?page=2&page_size=3')
  expect(names(paged.json.files)).toEqual(['docs/d'])
  const below = await get(service, '/api/versions/2/files?prefix=docs/')
  expect(names(below.json.files)).toEqual(['docs/d', 'docs/e'])

  const { json } = await get(service, '/api/versions/1/diff?to=2')
  expect(json).toMatchObject({
    added: [{ path: 'docs/e', before: null, after: { size: 3 } }],
    removed: [{ path: 'docs/c', before: { size: 10 }, after: null }],
    changed: [{ path: 'b', before: { size: 5 }, after: { size: 3 } }],
    pagination: { total_items: 3 },
    next: null,
  })
  const back = await get(service, '/api/versions/2/diff?to=1')
  expect([names(back.json.added), names(back.json.removed)]).toEqual([['docs/c'], ['docs/e']])
  const current = await get(service, '/api/versions/1/diff')
  expect(current.json).toMatchObject({ changed: [], pagination: { total_items: 2 } })
  const page = await get(service, '/api/versions/1/diff?to=2&page_size=2')
  expect([names(page.json.changed), names(page.json.removed)]).toEqual([['b'], ['docs/c']])
  const rest = await get(service, `/api/versions/1/diff?to=2&page_size=2&after=${page.json.next}`)
  expect([names(rest.json.added), names(rest.json.changed)]).toEqual([['docs/e'], []])
  const inside = await get(service, '/api/versions/1/diff?to=2&prefix=docs/')
  expect(inside.json).toMatchObject({ changed: [], pagination: { total_items: 2 } })
  expect((await get(service, '/api/versions/3/files')).json.code).toBe('version_not_found')
  expect((await get(service, '/api/versions/1/diff?to=3')).json.code).toBe('version_not_found')
})

test('a version filters and sorts its files as the list of files does', async () => {
  await using service = await start({ env: { KEEP_HISTORY_DAYS: '30' } })
  const paths = ['İstanbul/Straße.txt', 'Ünïcöde/😀/b.png', 'docs/a.txt', 'docs/deep/c.txt', 'docs/ß.txt', 'top.png']
  for (const [at, path] of paths.entries()) await service.put(encodeURI(path), 'x'.repeat((at * 3) % 7))
  await service.put('docs/a.txt', 'changed before the version')
  await record(service, '1')
  const queries = [
    ...['sort=-path', 'sort=size', 'sort=-size', 'sort=updated_at', 'sort=-updated_at&page=2', 'page=4'],
    ...['category=image', 'category=image&prefix=Ünïcöde', 'recursive=false', 'recursive=false&prefix=docs'],
    ...['recursive=false&prefix=Ünïcöde/😀', 'search=STRASSE', 'search=SS&sort=-size', 'search=ß&category=document'],
    ...['search=c&recursive=false&prefix=docs/deep', 'search=none', 'prefix=nowhere', 'prefix=nowhere&recursive=false'],
  ].map((query) => encodeURI(`?page_size=2&${query}`))
  const read = (list: string) => Promise.all(queries.map((query) => get(service, list + query)))
  const then = await read('/api/files')
  for (const path of paths.slice(1)) await service.put(encodeURI(path), 'replaced')
  await service.call('POST', '/api/files/delete', { json: { paths: paths.slice(3) } })
  await service.put('docs/deep/c.txt/later', 'new')

  expect(await read('/api/versions/1/files')).toEqual(then)
  const [, { json }] = then as [unknown, { json: { next: string } }]
  const next = await get(service, `/api/versions/1/files?sort=size&page_size=2&after=${json.next}`)
  expect(next.json.files).toEqual((await get(service, '/api/versions/1/files?sort=size&page_size=2&page=2')).json.files)
})

test('a version says whether its files are kept, and does not show a part of them', async () => {
  await using service = await start({ env: { KEEP_HISTORY_DAYS: '0', KEEP_VERSIONS: '1' } })
  await service.put('a', 'one')
  await service.put('stays', 'stays')
  await record(service, '1')
  await record(service, 'same')
  await service.put('a', 'two')
  expect(await keptOf(service)).toEqual([true, true])
  await record(service, '2')
  await expect.poll(() => keptOf(service)).toEqual([false, false, true])

  for (const path of ['/api/versions/1/files', '/api/versions/1/diff?to=2', '/api/trees/?at=1'])
    expect(await get(service, path)).toMatchObject({ status: 410, json: { code: 'history_gone' } })
  const { json } = await get(service, '/api/versions/2/files')
  expect(names(json.files)).toEqual(['a', 'stays'])
})

test('where nothing is kept, the first change after a version takes its files', async () => {
  await using service = await start({ env: { KEEP_HISTORY_DAYS: '0', KEEP_VERSIONS: '0' } })
  await record(service, 'before')
  await service.put('a', 'one')
  await record(service, '1')
  await service.put('b', 'new')
  expect(await keptOf(service)).toEqual([true, true])
  await service.put('a', 'two')

  expect(await keptOf(service)).toEqual([true, false])
})
