import { expect, test } from 'vitest'
import { z } from 'zod'
import { type Service, start } from '../support/start.ts'

const startKeeping = () => start({ env: { KEEP_HISTORY_DAYS: '30' } })

const Change = z.looseObject({ id: z.number(), action: z.string(), removed: z.number() })

const newest = async (service: Service) => {
  const { bytes } = await service.call('GET', '/api/changes?page_size=1')
  const { changes } = z.object({ changes: z.array(Change) }).parse(JSON.parse(bytes.toString()))
  return changes[0]?.id ?? 0
}

const revert = async (service: Service, id: number, json?: unknown) => {
  const { status, bytes } = await service.call('POST', `/api/changes/${id}/revert`, {
    ...(json === undefined ? {} : { json }),
    user: 'editor',
  })
  return { status, body: z.looseObject({}).parse(JSON.parse(bytes.toString())) }
}

const contents = async (service: Service, ...paths: string[]) => {
  const found = []
  for (const path of paths) {
    const { status, bytes } = await service.call('GET', `/static/${path}`)
    found.push(status === 200 ? bytes.toString() : status)
  }
  return found
}

const post = (service: Service, path: string, json: unknown) => service.call('POST', path, { json })

test('a revert takes back an upload, a replacement, a move and a deletion, and nothing else', async () => {
  await using service = await startKeeping()
  await service.put('a', 'one')
  const upload = await newest(service)
  await service.put('a', 'two')
  const replacement = await newest(service)
  await service.put('x/1', 'x1')
  await service.put('x/2', 'x2')
  await post(service, '/api/files/move', { from: 'x/', to: 'y/' })
  const move = await newest(service)
  await service.put('y/3', 'new')

  const moved = await revert(service, move)
  expect(moved).toMatchObject({
    status: 200,
    body: { action: 'revert', by: 'editor', added: 2, removed: 2, replaced: 0 },
  })
  expect(await contents(service, 'x/1', 'x/2', 'y/1', 'y/3')).toEqual(['x1', 'x2', 404, 'new'])

  await post(service, '/api/files/delete', { prefix: '/' })
  const deletion = await newest(service)
  expect((await revert(service, deletion)).body).toMatchObject({ id: deletion + 1, added: 4 })
  expect(await contents(service, 'a', 'x/1', 'x/2', 'y/3')).toEqual(['two', 'x1', 'x2', 'new'])

  expect((await revert(service, replacement)).body).toMatchObject({ replaced: 1 })
  expect(await contents(service, 'a')).toEqual(['one'])
  expect((await revert(service, upload)).body).toMatchObject({ removed: 1 })
  expect(await contents(service, 'a')).toEqual([404])
})

test('a revert needs no body, also where JSON is announced', async () => {
  await using service = await startKeeping()
  await service.put('a', 'one')

  const { status } = await service.call('POST', `/api/changes/${await newest(service)}/revert`, {
    headers: { 'content-type': 'application/json' },
  })

  expect([status, ...(await contents(service, 'a'))]).toEqual([200, 404])
})

test('a revert can be reverted, again and again', async () => {
  await using service = await startKeeping()
  await service.put('a', 'one')
  await service.call('DELETE', '/api/files/a')
  const found = []
  for (let at = 0; at < 4; at += 1) {
    await revert(service, await newest(service))
    found.push(...(await contents(service, 'a')))
  }

  expect(found).toEqual(['one', 404, 'one', 404])
})

test('a revert of files that were changed since names them and changes nothing, unless it overwrites', async () => {
  await using service = await startKeeping()
  for (let at = 0; at < 12; at += 1) await service.put(`d/${at}`, `${at}`)
  await post(service, '/api/files/delete', { prefix: 'd/' })
  const deletion = await newest(service)
  await service.put('d/5', 'later')
  await service.put('d/7', 'later')

  const refused = await revert(service, deletion)
  expect(refused).toMatchObject({
    status: 409,
    body: { code: 'revert_conflict', paths: ['d/5', 'd/7'] },
  })
  expect(await contents(service, 'd/1', 'd/5')).toEqual([404, 'later'])

  const done = await revert(service, deletion, { overwrite: true })
  expect(done).toMatchObject({ status: 200, body: { added: 10, replaced: 2 } })
  expect(await contents(service, 'd/1', 'd/5')).toEqual(['1', '5'])

  await post(service, '/api/files/delete', { prefix: '/' })
  const second = await newest(service)
  for (let at = 0; at < 12; at += 1) await service.put(`d/${at}`, 'later')
  expect((await revert(service, second)).body.paths).toHaveLength(10)
})

test('a file that came back has its author, its creation time and a new modification time', async () => {
  await using service = await startKeeping()
  const { body: before } = await service.put('a.txt', 'text', { user: 'editor' })
  await service.call('DELETE', '/api/files/a.txt')
  await service.call('POST', `/api/changes/${await newest(service)}/revert`)

  const { body } = await service.call('GET', '/api/files/a.txt')

  const { path, sha256, size, content_type, uploaded_by, created_at } = before
  expect(body).toMatchObject({ path, sha256, size, content_type, uploaded_by, created_at })
  expect(Date.parse(String(body.updated_at))).toBeGreaterThanOrEqual(Date.parse(String(before.updated_at)))
})

test('what is not kept cannot come back; what needs no past still can be reverted', async () => {
  await using service = await start()
  await service.put('a', 'one')
  const upload = await newest(service)
  await service.put('b', 'two')
  await service.call('DELETE', '/api/files/b')
  const deletion = await newest(service)

  expect(await revert(service, deletion)).toMatchObject({
    status: 410,
    body: { code: 'history_gone' },
  })
  expect(await revert(service, upload)).toMatchObject({ status: 200, body: { removed: 1 } })
})

test('a file does not come back where a directory is now', async () => {
  await using service = await startKeeping()
  await service.put('a', 'file')
  await service.call('DELETE', '/api/files/a')
  const deletion = await newest(service)
  await service.put('a/b', 'in the directory')

  for (const json of [undefined, { overwrite: true }]) {
    expect(await revert(service, deletion, json)).toMatchObject({
      status: 409,
      body: { code: 'path_conflict' },
    })
  }
  expect(await contents(service, 'a/b')).toEqual(['in the directory'])
})

test('what a revert needs', async () => {
  await using service = await startKeeping()
  await service.put('a', 'one')
  const id = await newest(service)
  const statuses = []
  for (const [path, options] of [
    [`/api/changes/${id + 100}/revert`, {}],
    [`/api/changes/${id}/revert`, { json: { force: true } }],
    [`/api/changes/${id}/revert`, { user: 'viewer' }],
    [`/api/changes/${id}/revert`, { user: 'nobody' }],
  ] as const) {
    statuses.push((await service.call('POST', path, options)).status)
  }

  expect(statuses).toEqual([404, 400, 403, 401])
})
