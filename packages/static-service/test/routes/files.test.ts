import { expect, test } from 'vitest'
import { emptyService } from '../support/empty-service.ts'
import type { Service } from '../support/start.ts'

const putAll = async (service: Service, paths: string[]) => {
  for (const path of paths) await service.put(path)
}

const list = async (service: Service, query = '') => {
  const { body } = await service.call('GET', `/api/files${query}`)
  return body.files?.map(({ path }) => path)
}

test('a record is not sent again while it is the same, and has another tag once it is not', async () => {
  await using service = await emptyService()
  await service.put('a', 'content')
  const first = await service.call('GET', '/api/files/a')
  const headers = { 'if-none-match': `"x", W/${first.headers.etag}` }

  const other = await service.call('GET', '/api/files/a', { headers: { ...headers, 'if-match': '"x"' } })
  const same = await service.call('GET', '/api/files/a', { headers })
  await service.put('a', 'content', { user: 'editor' })
  const changed = await service.call('GET', '/api/files/a', { headers })

  expect([other.status, other.body.code]).toEqual([412, 'precondition_failed'])
  expect([same.status, same.bytes.length, same.headers.etag]).toEqual([304, 0, first.headers.etag])
  expect([changed.status, changed.body.uploaded_by]).toEqual([200, 'editor'])
})

test('a record that was read before is answered alike, to whom it may be, and never after its change', async () => {
  await using service = await emptyService()
  await service.put('a', 'content')
  const read = (path = '/api/files/a', options = {}) => service.call('GET', path, options)
  const first = await read()

  const again = await read()
  const nobody = await read('/api/files/a', { user: 'nobody' })
  const faulty = await read('/api/files/a?x=1')
  const head = await service.call('HEAD', '/api/files/a')
  await service.put('a', 'other content')
  const replaced = await read()
  await service.call('DELETE', '/api/files/a')
  const deleted = await read()

  expect([again.status, again.bytes]).toEqual([200, first.bytes])
  for (const name of ['etag', 'cache-control', 'content-type', 'content-length']) {
    expect([name, again.headers[name]]).toEqual([name, first.headers[name]])
    expect([name, head.headers[name]]).toEqual([name, first.headers[name]])
  }
  expect([head.status, head.bytes.length]).toEqual([200, 0])
  expect([nobody.status, faulty.status]).toEqual([401, 400])
  expect([replaced.status, replaced.body.size]).toEqual([200, 13])
  expect([deleted.status, deleted.body.code]).toEqual([404, 'file_not_found'])
})

test('a deleted file is gone everywhere, and its bytes with it', async () => {
  await using service = await emptyService()
  await putAll(service, ['d/e/a', 'b'])

  const { status, bytes } = await service.call('DELETE', '/api/files/d/e/a')

  expect([status, bytes.length]).toEqual([204, 0])
  const answers = await Promise.all(
    ['/api/files/d/e/a', '/static/d/e/a', '/api/files/tree?prefix=d'].map((path) => service.call('GET', path)),
  )
  expect(answers.map(({ body }) => body.code)).toEqual(['file_not_found', 'file_not_found', 'directory_not_found'])
  expect(await list(service)).toEqual(['b'])
  await expect.poll(() => service.storedContents()).toHaveLength(1)
  const again = await service.call('DELETE', '/api/files/d/e/a')
  expect([again.status, again.body.code]).toEqual([404, 'file_not_found'])
})

test('a file is deleted only if it is still the one that was seen', async () => {
  await using service = await emptyService()
  await service.put('a', '1')
  const { headers: seen } = await service.call('GET', '/api/files/a')
  await service.put('a', '2')
  const { headers: current } = await service.call('GET', '/api/files/a')
  const remove = (headers: Record<string, string>) => service.call('DELETE', '/api/files/a', { headers })

  const answers = [
    await remove({ 'if-match': String(seen.etag) }),
    await remove({ 'if-none-match': '*' }),
    await remove({ 'if-match': String(current.etag) }),
    await remove({ 'if-match': '*' }),
  ]

  expect(answers.map(({ status, body }) => body.code ?? status)).toEqual([
    'precondition_failed',
    'precondition_failed',
    204,
    'file_not_found',
  ])
})

test('a file is deleted only if it was not stored after a date', async () => {
  await using service = await emptyService()
  const { body } = await service.put('a', '1')
  const stored = Date.parse(String(body.updated_at))
  const dateOf = (ms: number) => new Date(ms).toUTCString()
  const remove = (headers: Record<string, string>) => service.call('DELETE', '/api/files/a', { headers })

  const answers = [
    await remove({ 'if-unmodified-since': dateOf(stored - 1000) }),
    await remove({ 'if-unmodified-since': dateOf(stored - 1000), 'if-match': '"other"' }),
    await remove({ 'if-unmodified-since': dateOf(stored) }),
    await remove({ 'if-unmodified-since': dateOf(stored) }),
  ]

  expect(answers.map((answer) => answer.body.code ?? answer.status)).toEqual([
    'precondition_failed',
    'precondition_failed',
    204,
    'file_not_found',
  ])
})

test('a path that was a directory can be a file once it is empty', async () => {
  await using service = await emptyService()
  await service.put('a/b/c')
  await service.call('DELETE', '/api/files/a/b/c')

  const { status } = await service.put('a/b')

  expect(status).toBe(201)
})

test.each([
  ['POST', '/api/files', 'GET, HEAD'],
  ['GET', '/api/files/upload', 'POST'],
  ['DELETE', '/api/files/tree', 'GET, HEAD'],
  ['POST', '/api/files/a', 'DELETE, GET, HEAD, PUT'],
  ['PATCH', '/api/files/a', 'DELETE, GET, HEAD, PUT'],
])('%s of %s is refused, and what is possible is said', async (method, path, allow) => {
  await using service = await emptyService()

  const { status, headers } = await service.call(method, path)

  expect([status, headers.allow]).toEqual([405, allow])
})

test('who may only look can look, and nobody else can', async () => {
  await using service = await emptyService()
  await service.put('a')
  const paths = ['/api/files', '/api/files/a', '/api/files/tree', '/api/files/categories']

  const viewer = await Promise.all(paths.map((path) => service.call('GET', path, { user: 'viewer' })))
  const nobody = await Promise.all(paths.map((path) => service.call('GET', path, { user: 'nobody' })))
  const deleting = await service.call('DELETE', '/api/files/a', { user: 'viewer' })

  expect(viewer.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  expect(nobody.map(({ status }) => status)).toEqual([401, 401, 401, 401])
  expect(deleting.status).toBe(403)
})
