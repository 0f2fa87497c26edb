import { expect, test } from 'vitest'
import { z } from 'zod'
import { emptyService } from '../support/empty-service.ts'
import { type Service, start } from '../support/start.ts'

const State = z.strictObject({ sha256: z.string(), size: z.number() }).nullable()

const Change = z.looseObject({
  id: z.number(),
  at: z.string(),
  request_id: z.string(),
  paths: z.array(z.string()),
})

const ChangeList = z.object({
  changes: z.array(Change),
  pagination: z.object({ total_items: z.number() }),
  next: z.string().nullable(),
})

const ChangePage = Change.extend({
  files: z.array(z.strictObject({ path: z.string(), before: State, after: State })),
  pagination: z.object({ total_items: z.number() }),
  next: z.string().nullable(),
})

const get = async (service: Service, path: string): Promise<unknown> =>
  JSON.parse((await service.call('GET', path)).bytes.toString())

const changesOf = async (service: Service, query = '') => ChangeList.parse(await get(service, `/api/changes?${query}`))

const readChange = async (service: Service, id: number, query = '') =>
  ChangePage.parse(await get(service, `/api/changes/${id}?${query}`))

const counts = (action: string, [added, replaced, removed]: number[], bytes: number) => ({
  action,
  added,
  replaced,
  removed,
  bytes,
})

test('each request that changes files is one change, with what it did and who sent it', async () => {
  await using service = await start()
  const call = (path: string, json: unknown) => service.call('POST', path, { json, user: 'editor' })
  const sent = { headers: { 'x-request-id': 'the-first-request' } }
  await service.put('a/1.txt', 'one', sent)
  await service.put('a/1.txt', 'other', { user: 'editor' })
  await service.send('upload/batch', [
    { name: 'files', content: 'x', filename: 'a/2.txt' },
    { name: 'files', content: 'yy', filename: 'b/3.txt' },
  ])
  await call('/api/files/move', { from: 'a/1.txt', to: 'c.txt' })
  await call('/api/files/move', { from: 'a/', to: 'd/' })
  await service.call('DELETE', '/api/files/c.txt')
  await call('/api/files/delete', { paths: ['b/3.txt'] })
  await call('/api/files/delete', { prefix: 'd/' })
  await service.call('DELETE', '/api/files/c.txt')
  await call('/api/files/move', { from: 'none', to: 'other' })

  const { changes, pagination } = await changesOf(service)

  expect(pagination.total_items).toBe(8)
  expect(changes.toReversed()).toMatchObject([
    { ...counts('upload', [1, 0, 0], 3), by: 'admin', token: null, paths: ['a/1.txt'] },
    { ...counts('upload', [0, 1, 0], 5), by: 'editor', prefix: null, version: null },
    { ...counts('upload', [2, 0, 0], 3), paths: ['a/2.txt', 'b/3.txt'] },
    { ...counts('move', [1, 0, 1], 5), by: 'editor', paths: ['a/1.txt', 'c.txt'] },
    { ...counts('move', [1, 0, 1], 1), paths: ['a/2.txt', 'd/2.txt'] },
    { ...counts('delete', [0, 0, 1], 5), by: 'admin', paths: ['c.txt'] },
    { ...counts('delete', [0, 0, 1], 2), by: 'editor', paths: ['b/3.txt'] },
    { ...counts('delete', [0, 0, 1], 1), by: 'editor', prefix: 'd/' },
  ])
  expect(changes.at(-1)?.request_id).toBe('the-first-request')
  const times = changes.map(({ at }) => at)
  expect(times).toEqual(times.toSorted().reverse())
})

test('a change names ten of its paths at most', async () => {
  await using service = await emptyService()
  const parts = Array.from({ length: 11 }, (_, at) => ({ name: 'files', filename: `${at}` }))
  await service.send(
    'upload/batch',
    parts.map((part) => ({ ...part, content: 'x' })),
  )

  const { changes } = await changesOf(service, 'page_size=1')

  expect(changes[0]).toMatchObject({ added: 11, paths: { length: 10 } })
})

test('a change made with an API token names the token', async () => {
  await using service = await start()
  const json = { name: 'deployer', role: 'editor', expires_in: 3600 }
  const { status, body } = await service.call('POST', '/api/tokens', { json })
  expect(status).toBe(201)

  const put = await service.call('PUT', '/api/files/by-token.txt', {
    body: 'x',
    headers: { authorization: `Bearer ${body.token}` },
  })

  expect(put.status).toBe(201)
  const { changes } = await changesOf(service, 'page_size=1')
  expect(changes).toMatchObject([{ by: 'admin', token: json.name, paths: ['by-token.txt'] }])
})

test('a change has its files with their contents before and after, in pages', async () => {
  await using service = await emptyService()
  const { body: first } = await service.put('p/a.txt', 'one')
  const { body: second } = await service.put('p/b.txt', 'three')
  await service.call('POST', '/api/files/move', {
    json: { from: 'p/a.txt', to: 'p/b.txt', overwrite: true },
  })
  const id = (await changesOf(service, 'page_size=1')).changes[0]?.id ?? 0

  const whole = await readChange(service, id)
  const begin = await readChange(service, id, 'page_size=1')
  const rest = await readChange(service, id, `page_size=1&after=${begin.next}`)

  const [one, three] = [
    { sha256: first.sha256, size: 3 },
    { sha256: second.sha256, size: 5 },
  ]
  expect(whole.files).toEqual([
    { path: 'p/a.txt', before: one, after: null },
    { path: 'p/b.txt', before: three, after: one },
  ])
  expect([whole.next, whole.pagination.total_items]).toEqual([null, 2])
  expect([begin.files, rest.files, rest.next]).toEqual([whole.files.slice(0, 1), whole.files.slice(1), null])
  expect(await readChange(service, id, 'page_size=1&page=2')).toMatchObject({ files: rest.files })
})

test('the list is filtered, and paged by a position that stays', async () => {
  await using service = await emptyService()
  await service.put('f/x.txt', 'x', { user: 'editor' })
  await service.put('f/deep/y.txt', 'y')
  await service.put('other/z.txt', 'z')
  await service.call('POST', '/api/files/move', { json: { from: 'f/deep/', to: 'g/' } })
  await service.call('DELETE', '/api/files/f/x.txt')
  const [newest] = (await changesOf(service, 'page_size=1')).changes
  const actions = async (query: string) => (await changesOf(service, query)).changes.map((change) => change.action)

  expect(await actions('prefix=f')).toEqual(['delete', 'move', 'upload', 'upload'])
  expect(await actions('prefix=/f/deep/')).toEqual(['move', 'upload'])
  expect(await actions('prefix=f&by=editor')).toEqual(['upload'])
  expect(await actions('prefix=f&action=move')).toEqual(['move'])
  expect(await actions(`prefix=f&since=${newest?.at}`)).toContain('delete')
  for (const since of ['2999-01-01T00:00:00%2B01:00', '9999-12-31T23:59:59-23:59'])
    expect(await actions(`prefix=f&since=${since}`)).toEqual([])
  const first = await changesOf(service, 'prefix=f&page_size=3')
  await service.put('f/later.txt')
  const rest = await changesOf(service, `prefix=f&page_size=3&after=${first.next}`)
  expect([first.changes.length, first.pagination.total_items]).toEqual([3, 4])
  expect(rest).toMatchObject({ changes: [{ action: 'upload', by: 'editor' }], next: null })
})

test.each([
  ['/api/changes/999999', 404, 'change_not_found'],
  ['/api/changes/0', 404, 'change_not_found'],
  ['/api/changes/x', 404, 'change_not_found'],
  ['/api/changes/99999999999999999999', 404, 'change_not_found'],
  ['/api/history/content?path=a.txt&change=x', 400, 'validation_failed'],
  ['/api/changes?action=steal', 400, 'validation_failed'],
  ['/api/changes?since=yesterday', 400, 'validation_failed'],
  ['/api/changes?after=x', 400, 'validation_failed'],
  ['/api/changes/1?page_size=201', 400, 'validation_failed'],
  ['/api/versions/1.0/files?page_size=201', 400, 'validation_failed'],
  ['/api/versions/1.0/diff?to=current&page_size=201', 400, 'validation_failed'],
  ['/api/changes?prefix=a//b', 400, 'invalid_path'],
])('GET %s is refused with %i %s', async (path, status, code) => {
  await using service = await emptyService()

  const answer = await service.call('GET', path)

  expect([answer.status, answer.body.code]).toEqual([status, code])
})

test('changes need a login', async () => {
  await using service = await emptyService()

  for (const path of ['/api/changes', '/api/changes/', '/api/changes/1']) {
    expect((await service.call('GET', path, { user: 'nobody' })).status).toBe(401)
  }
})
