import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { check } from '../../src/maintenance/files-command.ts'
import { makeFolder } from '../support/catalogs.ts'
import { startOwn } from '../support/s3/s3-server.ts'
import { startSharedStores } from '../support/shared-stores.ts'
import { filesBelow, type Service, start } from '../support/start.ts'

const secret = 'the-number-that-nobody-may-know'
const large = `${secret} `.repeat(10_000)
// Its compressed form is a row of its own.
const style = `/* ${secret} */\n${'p { color: black }\n'.repeat(300)}`

const Change = z.looseObject({ id: z.number(), forgotten: z.boolean().optional() })
const Changes = z.object({ changes: z.array(Change) })

const get = async (service: Service, path: string) => {
  const { status, bytes } = await service.call('GET', path)
  return { status, json: z.looseObject({}).parse(JSON.parse(bytes.toString())) }
}

const changesOf = async (service: Service) =>
  Changes.parse((await get(service, '/api/changes')).json).changes.toReversed()

const forget = (service: Service, paths: string[], user = 'admin') =>
  service.call('POST', '/api/files/delete', { json: { paths, forget: true }, user })

/** Changes 1 to 7: files whose bytes are small, large, compressed, replaced and deleted, and one that stays. */
async function fill(service: Service) {
  await service.put('a.txt', secret)
  await service.put('a.txt', large)
  await service.put('a.txt', 'harmless by now')
  await service.put('style.css', style)
  await service.put('gone.txt', `${secret}, deleted`)
  await service.call('DELETE', '/api/files/gone.txt')
  await service.put('kept.txt', 'kept')
  const request = { headers: { 'accept-encoding': 'br' } }
  const coding = async () => (await service.call('GET', '/static/style.css', request)).headers['content-encoding']
  await expect.poll(coding).toBe('br')
}

const forgotten = ['a.txt', 'style.css', 'gone.txt']

test('what is forgotten is gone with its past, and its entries keep the paths alone', async () => {
  await using service = await start({ env: { KEEP_HISTORY_DAYS: '30' } })
  await fill(service)

  const answer = await forget(service, forgotten)
  expect([answer.status, answer.body]).toMatchObject([200, { files_deleted: 2 }])

  const changes = await changesOf(service)
  expect(changes.map(({ forgotten: is }) => is)).toEqual([...Array.from({ length: 6 }, () => true), undefined, true])
  expect(changes.at(-1)).toMatchObject({ action: 'delete', by: 'admin', removed: 2 })
  const [first] = changes
  const { json } = await get(service, `/api/changes/${first?.id}`)
  expect(json.files).toEqual([{ path: 'a.txt', before: null, after: null, forgotten: true }])
  const { json: past } = await get(service, '/api/history?path=gone.txt')
  expect(past.history).toMatchObject([
    { sha256: null, forgotten: true },
    { sha256: null, forgotten: true },
    { sha256: null, forgotten: true },
  ])
  for (const [path, status] of [
    [`/api/history/content?path=a.txt&change=${first?.id}`, 410],
    ['/static/a.txt', 404],
    ['/static/kept.txt', 200],
  ] as const)
    expect((await service.call('GET', path)).status).toBe(status)
  const revert = await service.call('POST', `/api/changes/${changes.at(-1)?.id}/revert`)
  expect([revert.status, revert.body.code]).toEqual([410, 'history_gone'])
  // A tree of then is all that is not forgotten.
  const headers = { accept: 'application/json' }
  const tree = await service.call('GET', `/api/trees/?at=${changes[6]?.id}`, { headers })
  expect(JSON.parse(tree.bytes.toString()).files).toEqual({ 'kept.txt': expect.anything() })

  expect((await forget(service, forgotten)).body).toMatchObject({
    files_deleted: 0,
    bytes_freed: 0,
  })
  await service.put('a.txt', 'new')
  const { json: again } = await get(service, '/api/history?path=a.txt')
  expect(again.history).toMatchObject([{ is_current: true, size: 3 }, ...Array(5).fill({})])
})

test('within seconds no byte of it is in a data directory', async () => {
  await using service = await start({
    dataDir: join(makeFolder(), 'data'),
    env: { KEEP_HISTORY_DAYS: '30' },
  })
  await fill(service)
  const places = () => filesBelow(service.dataDir).filter((file) => readFileSync(file).includes(secret))
  expect(places().length).toBeGreaterThan(0)

  await forget(service, forgotten)

  await expect.poll(places).toEqual([])
  await service.close()
  expect(await check({ DATA_DIR: service.dataDir })).toMatchObject({ damages: [], orphans: [] })
})

test('in a bucket nothing of it waits for the grace of deleted objects, also what was deleted before', async () => {
  await using stores = await startSharedStores()
  await using s3 = await startOwn() // Its objects are seen, whatever store the other tests use.
  const env = { ...stores.env, ...s3.env, KEEP_HISTORY_DAYS: '30', GARBAGE_GRACE_S: '86400' }
  await using service = await start({ env })
  await service.put('b.txt', `${large}, dropped`)
  await service.call('DELETE', '/api/files/b.txt')
  await stores.query("update static_service.past_files set ended_at = '2001'")
  await service.call('POST', '/api/versions', { json: { version: '1', changelog: '' } })
  const garbage = () => stores.query('select object_key from static_service.garbage')
  await expect.poll(garbage).toHaveLength(1)
  await fill(service)
  const objects = () => [...s3.store.objects.keys()].filter((key) => !key.endsWith('probe'))
  expect(objects()).toHaveLength(2)

  await forget(service, [...forgotten, 'b.txt'])

  await expect.poll(objects).toEqual([])
  expect(await stores.query('select digest from static_service.contents')).toHaveLength(1)
  await service.close()
  expect(await check(env)).toMatchObject({ damages: [], orphans: [] })
})

test('only admins forget, all or nothing, and single files', async () => {
  await using service = await start({ env: { KEEP_HISTORY_DAYS: '30' } })
  await service.put('a.txt', secret)

  expect((await forget(service, ['a.txt'], 'editor')).body.code).toBe('forbidden')
  expect((await forget(service, ['a.txt', 'never'])).body.code).toBe('file_not_found')
  const prefix = { json: { prefix: '/', forget: true } }
  const below = await service.call('POST', '/api/files/delete', prefix)
  expect([below.status, below.body.errors?.[0]?.path]).toEqual([400, '/forget'])
  expect((await service.call('GET', '/static/a.txt')).bytes.toString()).toBe(secret)
})

test('a content that another file has, now or in the past, stays', async () => {
  await using service = await start({ env: { KEEP_HISTORY_DAYS: '30' } })
  await service.put('a.txt', secret)
  await service.put('b.txt', secret)
  await service.call('DELETE', '/api/files/b.txt')
  const deletion = (await changesOf(service)).at(-1)?.id

  expect((await forget(service, ['a.txt'])).body).toMatchObject({ bytes_freed: 0 })

  const revert = await service.call('POST', `/api/changes/${deletion}/revert`)
  expect(revert.status).toBe(200)
  expect((await service.call('GET', '/static/b.txt')).bytes.toString()).toBe(secret)
})

test('a content that waits for a manifest goes with the forgotten file that has it', async () => {
  await using service = await start({ env: { KEEP_HISTORY_DAYS: '30' } })
  const digest = hash('sha256', secret)
  await service.call('PUT', `/api/contents/${digest}`, { body: secret })
  await service.put('a.txt', secret)

  await forget(service, ['a.txt'])

  const json = { files: { 'b.txt': { sha256: digest } } }
  const manifest = await service.call('PUT', '/api/trees/b/', { json })
  expect(manifest.body.code).toBe('contents_missing')
  await expect.poll(() => service.storedContents()).toEqual([])
})
