import { request } from 'node:http'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { ChunkMemory } from '../../src/serving/content-stream.ts'
import { type Service, start } from '../support/start.ts'

const History = z.object({
  history: z.array(
    z.strictObject({
      change: z.number(),
      at: z.string(),
      by: z.string(),
      action: z.string(),
      sha256: z.string().nullable(),
      size: z.number().nullable(),
      content_type: z.string().nullable(),
      is_current: z.boolean(),
    }),
  ),
  pagination: z.object({ total_items: z.number() }),
  next: z.string().nullable(),
})

const keeping = { KEEP_HISTORY_DAYS: '30' }

const historyOf = async (service: Service, path: string, query = '') =>
  History.parse(JSON.parse((await service.call('GET', `/api/history?path=${path}${query}`)).bytes.toString()))

const contentAt = async (service: Service, path: string, change: number, headers = {}) =>
  service.call('GET', `/api/history/content?path=${path}&change=${change}`, { headers })

const large = 'large '.repeat(100_000)

/** A file that was stored three times, one of them large, then moved, and whose path is free now. */
let service: Service
let ids: number[]
beforeAll(async () => {
  service = await start({ env: keeping })
  await service.put('a.txt', 'first')
  await service.put('a.txt', large, { user: 'editor' })
  await service.put('other.txt', 'between')
  await service.put('a.txt', 'third')
  await service.call('POST', '/api/files/move', { json: { from: 'a.txt', to: 'b.html' } })
  const { history } = await historyOf(service, 'a.txt')
  ids = history.map(({ change }) => change).reverse()
})
afterAll(() => service[Symbol.asyncDispose]())

test('the history of a path has every state, also when the file is gone', async () => {
  const moved = await historyOf(service, 'b.html')
  const { history, pagination } = await historyOf(service, '/a.txt')

  expect(pagination.total_items).toBe(4)
  expect(history).toMatchObject([
    {
      action: 'move',
      by: 'admin',
      sha256: null,
      size: null,
      content_type: null,
      is_current: false,
    },
    { action: 'upload', by: 'admin', size: 5, content_type: 'text/plain', is_current: false },
    { action: 'upload', by: 'editor', size: large.length, is_current: false },
    { action: 'upload', by: 'admin', size: 5, is_current: false },
  ])
  expect(moved.history).toMatchObject([
    { action: 'move', sha256: history[1]?.sha256, content_type: 'text/html', is_current: true },
  ])
  const second = await historyOf(service, 'a.txt', '&page=2&page_size=3')
  expect(second.history).toEqual(history.slice(3))
  const first = await historyOf(service, 'b.html', '&page_size=1')
  expect(first.next).toBeNull()
  const { next } = await historyOf(service, 'a.txt', '&page_size=3')
  const following = await historyOf(service, 'a.txt', `&page_size=3&after=${next}`)
  expect(following).toMatchObject({ history: history.slice(3), next: null })
  expect(history.map(({ change }) => change)).toEqual(ids.toReversed())
})

test('a content is what it was after a change, whether the change touched the path or not', async () => {
  const [first = 0, second = 0, third = 0, moved = 0] = ids
  const read = async (path: string, change: number) => {
    const { status, bytes } = await contentAt(service, path, change)
    return status === 200 ? bytes.toString() : status
  }

  expect(await read('a.txt', first)).toBe('first')
  expect(await read('a.txt', second)).toBe(large)
  expect(await read('a.txt', second + 1)).toBe(large)
  expect(await read('a.txt', third)).toBe('third')
  expect(await read('a.txt', moved)).toBe(404)
  expect(await read('b.html', third)).toBe(404)
  expect(await read('b.html', moved)).toBe('third')
  expect((await service.call('GET', '/static/a.txt')).status).toBe(404)
})

test('a change that has not happened yet has no contents, as it has no tree', async () => {
  const next = (ids.at(-1) ?? 0) + 1

  const content = await contentAt(service, 'b.html', next)
  const tree = await service.call('GET', `/api/trees/?at=${next}`)

  expect([content.status, content.body.code]).toEqual([404, 'change_not_found'])
  expect([tree.status, tree.body.code]).toEqual([404, 'change_not_found'])
})

test('a past content is an attachment, with ranges and conditions', async () => {
  const [, second = 0] = ids
  const whole = await contentAt(service, 'a.txt', second)
  const etag = String(whole.headers.etag)

  const part = await contentAt(service, 'a.txt', second, { range: 'bytes=599990-' })
  const current = await contentAt(service, 'a.txt', second, { 'if-none-match': etag })
  const failed = await contentAt(service, 'a.txt', second, { 'if-match': '"other"' })
  const outside = await contentAt(service, 'a.txt', second, { range: 'bytes=600000-' })

  expect(whole.headers).toMatchObject({
    'content-disposition': 'attachment; filename=a.txt',
    'content-length': '600000',
    'accept-ranges': 'bytes',
    'cache-control': 'private, no-cache',
  })
  // CORS_ORIGIN names none.
  expect(whole.headers).not.toHaveProperty('access-control-allow-origin')
  const head = await service.call('HEAD', `/api/history/content?path=a.txt&change=${second}`)
  expect([head.status, head.headers['content-length'], head.headers.etag]).toEqual([200, '600000', etag])
  expect([part.status, part.bytes.toString()]).toEqual([206, large.slice(599_990)])
  expect(part.headers['content-range']).toBe('bytes 599990-599999/600000')
  expect([current.status, failed.status, outside.status]).toEqual([304, 412, 416])
})

test.each([
  ['/api/history?path=never.txt', 404, 'file_not_found'],
  ['/api/history', 400, 'validation_failed'],
  ['/api/history?path=a//b', 400, 'invalid_path'],
  ['/api/history/content?path=never.txt&change=1', 404, 'file_not_found'],
  ['/api/history/content?path=a.txt', 400, 'validation_failed'],
])('GET %s is refused with %i %s', async (path, status, code) => {
  const answer = await service.call('GET', path)

  expect([answer.status, answer.body.code]).toEqual([status, code])
})

test('the past needs a login', async () => {
  for (const path of ['/api/history?path=a.txt', '/api/history/content?path=a.txt&change=1']) {
    expect((await service.call('GET', path, { user: 'nobody' })).status).toBe(401)
  }
})

test('a past content is closed where its client leaves before the first byte, which is no error', async () => {
  const { request: describe } = ChunkMemory.prototype
  const [opened, released, closed] = [0, 1, 2].map(() => Promise.withResolvers<void>())
  vi.spyOn(ChunkMemory.prototype, 'request').mockImplementationOnce(function (this: ChunkMemory, blob, key) {
    const read: typeof blob.read = async (...range) => {
      const bytes = await blob.read(...range)
      opened?.resolve()
      await released?.promise
      return bytes
    }
    const close = () => blob[Symbol.asyncDispose]().then(closed?.resolve)
    return {
      ...describe.call(this, { ...blob, read, [Symbol.asyncDispose]: close }, key),
      isCached: false,
    }
  })
  const client = request({
    port: service.port,
    path: `/api/history/content?path=a.txt&change=${ids[1]}`,
    headers: { authorization: `Bearer ${await service.tokenOf('admin')}` },
  })
  client.on('error', () => undefined).end()
  await opened?.promise

  client.destroy()
  await expect.poll(() => JSON.stringify(service.lines())).toContain('request aborted')
  released?.resolve()

  await expect(closed?.promise).resolves.toBeUndefined()
  await historyOf(service, 'a.txt')
  expect(service.lines().filter(({ level }) => level === 'error')).toEqual([])
})

test('without KEEP_HISTORY_DAYS the states are listed, their contents gone but for those of a version', async () => {
  await using bare = await start()
  await bare.put('x.txt', 'gone')
  await bare.put('x.txt', 'in the version')
  await bare.call('POST', '/api/versions', { json: { version: '1', changelog: '' } })
  await bare.put('x.txt', 'after it')
  await bare.put('x.txt', 'now')

  const { history } = await historyOf(bare, 'x.txt')
  const answers = []
  for (const { change } of history) answers.push(await contentAt(bare, 'x.txt', change))

  expect(answers.map(({ status }) => status)).toEqual([200, 410, 200, 410])
  expect(answers[1]?.body.code).toBe('history_gone')
  expect(answers[2]?.bytes.toString()).toBe('in the version')
})
