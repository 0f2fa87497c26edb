import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { SqliteSql, sql } from '@domains-and-files/persistence'
import { expect, test } from 'vitest'
import { PostgresProxy } from '../../../../test/support/postgres/postgres-proxy.ts'
import { type SharedStores, startSharedStores } from '../support/shared-stores.ts'
import { filesBelow, type Service, start } from '../support/start.ts'
import { beginPatch, offsetOf, tus, urlOf } from '../support/tus.ts'

// Each of the first four waits ten seconds for the service.
test.concurrent('a second writer takes over once the first has been silent for ten seconds', async ({ expect }) => {
  await using service = await start({ env: { BODY_IDLE_TIMEOUT_MS: '10000' } })
  const { create, patch } = tus(service)
  const bytes = randomBytes(2_000_000)
  const sent = 1_100_000
  const url = urlOf(await create('a', bytes.length))
  const silent = await beginPatch(service, url, bytes.length)
  const closed = once(silent.resume(), 'close')
  silent.write(bytes.subarray(0, sent))
  await expect.poll(() => service.storedContents()).not.toEqual([])
  const locked = await patch(url, 0, bytes)

  await expect.poll(async () => (await patch(url, sent, '')).status).toBe(204)
  await closed
  await patch(url, sent, bytes.subarray(sent))

  expect(locked.status).toBe(423)
  const { bytes: served } = await service.call('GET', '/static/a')
  expect(served.equals(bytes)).toBe(true)
})

test.concurrent('what has expired is removed, and its space', async ({ expect }) => {
  await using service = await start({ env: { UPLOAD_EXPIRES_S: '60' } })
  const { create, head } = tus(service)
  const url = urlOf(await create('a', 100_001, { body: randomBytes(100_000) }))
  const before = await service.storedContents()

  await expire(service, undefined)

  expect(before).toHaveLength(1)
  await expect.poll(async () => (await head(url)).status).toBe(410)
  await expect.poll(() => service.storedContents()).toEqual([])
})

test.concurrent.for(['a folder', 'PostgreSQL and S3'])(
  'of uploads in %s that were cut or refused, and are deleted or expire, nothing is left',
  async (where, { expect }) => {
    await using stores = where === 'a folder' ? undefined : await startSharedStores()
    await using service = await start({ env: { GARBAGE_GRACE_S: '0', ...stores?.env } })
    const { create, patch, head, send } = tus(service)
    const bytes = randomBytes(9_000_000)
    const beginCut = async () => {
      const url = urlOf(await create('cut', 20_000_000))
      const socket = await beginPatch(service, url, 20_000_000)
      socket.write(bytes, () => socket.destroy())
      await expect.poll(async () => offsetOf(await head(url))).toBe(bytes.length)
      return url
    }
    const beginRefused = async () => {
      const url = urlOf(await create({ path: 'a', overwrite: 'false' }, bytes.length))
      await service.put('a', 'other')
      const { status } = await patch(url, 0, bytes)
      expect(status).toBe(412)
      await service.call('DELETE', '/api/files/a')
      return url
    }
    const deleted = [await beginCut(), await beginRefused()]
    const expired = [await beginCut(), await beginRefused()]

    for (const url of deleted) await expect.poll(async () => (await send('DELETE', url)).status).toBe(204)
    await expire(service, stores)

    for (const url of [...deleted, ...expired]) await expect.poll(async () => (await head(url)).status).toBe(410)
    const contents = () => (stores ?? service).storedContents(service.dataDir)
    await expect.poll(contents).toEqual([])
    if (!stores) return
    const { objects, uploads } = stores.s3.store
    const left = () => [...objects.keys(), ...uploads.keys()].filter((key) => !/probe$/.test(key))
    await expect.poll(left).toEqual([])
    expect(filesBelow(join(service.dataDir, 'tmp'))).toEqual([])
  },
)

test('a lease that ended by itself lets nobody write to the file of a writer that is still there', async () => {
  await using service = await start()
  const { create, patch } = tus(service)
  const bytes = randomBytes(2_000_000)
  const url = urlOf(await create('a', bytes.length))
  const slow = await beginPatch(service, url, bytes.length)
  slow.write(bytes.subarray(0, 1_100_000))
  await expect.poll(() => service.storedContents()).not.toEqual([])

  const database = new SqliteSql({ file: join(service.dataDir, 'uploads.sqlite') })
  await database.run(sql`update uploads set writer_until = 1`)
  await database.close()
  const locked = await patch(url, 0, bytes)
  slow.write(bytes.subarray(1_100_000))
  await once(slow, 'data')
  slow.destroy()

  expect(locked.status).toBe(423)
  const { bytes: served } = await service.call('GET', '/static/a')
  expect(served.equals(bytes)).toBe(true)
})

test('an upload whose bytes were removed goes back to the beginning', async () => {
  await using service = await start()
  const { create, patch, head } = tus(service)
  const url = urlOf(await create('a', 9, { body: 'abc' }))
  for (const file of filesBelow(join(service.dataDir, 'uploads'))) rmSync(file)

  const conflict = await patch(url, 3, 'def')
  const known = await head(url)
  const done = await patch(url, 0, 'ghijklmno')

  expect([conflict.status, conflict.body.code, offsetOf(known), done.status]).toEqual([409, 'offset_conflict', 0, 204])
  const { bytes: served } = await service.call('GET', '/static/a')
  expect(served.toString()).toBe('ghijklmno')
})

test.each([
  ['as its next part is sent', 17_500_000],
  ['as it is completed', 9_000_000],
])('an upload that a rule of the bucket removed goes back to the beginning %s', async (_when, size) => {
  await using stores = await startSharedStores()
  await using service = await start({ env: stores.env })
  const { create, patch, head } = tus(service)
  const bytes = randomBytes(size)
  const sent = 8_500_000
  const url = urlOf(await create('a', size))
  await patch(url, 0, bytes.subarray(0, sent))
  stores.s3.store.uploads.clear()

  const conflict = await patch(url, sent, bytes.subarray(sent))
  const known = await head(url)
  const done = await patch(url, 0, bytes)

  expect([conflict.status, conflict.body.code, offsetOf(conflict)]).toEqual([409, 'offset_conflict', 0])
  expect([offsetOf(known), done.status]).toEqual([0, 204])
  const { bytes: served } = await service.call('GET', '/static/a')
  expect(served.equals(bytes)).toBe(true)
})

test('a whole upload that the bucket has lost goes back to the beginning', async () => {
  await using stores = await startSharedStores()
  await using service = await start({ env: stores.env })
  const { create, patch, head } = tus(service)
  const bytes = randomBytes(9_000_000)
  const url = urlOf(await create({ path: 'a', overwrite: 'false' }, bytes.length))
  await service.put('a', 'other')
  const refused = await patch(url, 0, bytes)
  await service.call('DELETE', '/api/files/a')
  const { objects } = stores.s3.store
  for (const key of objects.keys()) if (key.includes('/uploads/')) objects.delete(key)

  const conflict = await patch(url, bytes.length, '')
  const known = await head(url)
  const done = await patch(url, 0, bytes)

  expect([refused.status, conflict.status, offsetOf(conflict)]).toEqual([412, 409, 0])
  expect([offsetOf(known), done.status]).toEqual([0, 204])
  const { bytes: served } = await service.call('GET', '/static/a')
  expect(served.equals(bytes)).toBe(true)
})

test('what a replica knows of bytes that were lost meanwhile is not the digest of those that came instead', async () => {
  await using stores = await startSharedStores()
  await using first = await start({ env: stores.env })
  await using second = await start({ env: stores.env })
  const sent = 8_500_000
  const url = urlOf(await tus(first).create('a', sent + 1, { body: randomBytes(sent) }))
  stores.s3.store.uploads.clear()
  const bytes = randomBytes(sent + 1)

  const conflict = await tus(second).patch(url, sent, 'x')
  await tus(second).patch(url, 0, bytes.subarray(0, sent))
  const done = await tus(first).patch(url, sent, bytes.subarray(sent))

  expect([conflict.status, done.status]).toEqual([409, 204])
  const { body } = await first.call('GET', '/api/files/a')
  expect(body.sha256).toBe(createHash('sha256').update(bytes).digest('hex'))
})

test('the parts of an upload in S3 outlive its row, whose time each PATCH extends', async () => {
  await using stores = await startSharedStores()
  await using service = await start({ env: { ...stores.env, GARBAGE_GRACE_S: '1' } })
  const { create, patch } = tus(service)
  const sent = 8_500_000
  const url = urlOf(await create('a', sent + 1, { body: randomBytes(sent) }))
  const outlives = async () => {
    const [found] = await stores.query<{ outlives: boolean }>(
      `select extract(epoch from due_at) * 1000 - expires_at > 8_388_608 outlives
       from static_service.garbage, static_service.uploads`,
    )
    return found?.outlives
  }

  const begun = await outlives()
  await stores.query(`update static_service.garbage set due_at = clock_timestamp() + interval '1 hour'`)
  const empty = await patch(url, sent, '')

  // A part of 8 MiB may arrive with 1 KiB in a second.
  expect([begun, empty.status, await outlives()]).toEqual([true, 204, true])
})

test('a request that sends several parts to S3 postpones the expiry of its object with each', async () => {
  await using stores = await startSharedStores()
  await using service = await start({ env: { ...stores.env, GARBAGE_GRACE_S: '1' } })
  const { create, head } = tus(service)
  const part = 8_388_608
  const url = urlOf(await create('a', 3 * part))
  const socket = await beginPatch(service, url, 3 * part)
  const sendPart = async (end: number) => {
    socket.write(randomBytes(part))
    const readOffset = async () => {
      socket.write(randomBytes(10)) // A silent request would be cut.
      return offsetOf(await head(url))
    }
    await expect.poll(readOffset).toBe(end)
  }
  await sendPart(part)
  await stores.query(`update static_service.garbage set due_at = clock_timestamp() + interval '1 hour'`)

  await sendPart(2 * part)

  const [object] = await stores.query<{ hours: number }>(
    `select extract(epoch from due_at - clock_timestamp()) / 3600 hours from static_service.garbage`,
  )
  expect(Number(object?.hours)).toBeGreaterThan(24)
  socket.destroy()
})

/** Lets every upload expire. */
async function expire(service: Service, stores: SharedStores | undefined) {
  if (stores) return stores.query('update static_service.uploads set expires_at = 0, writer_until = 0')
  const database = new SqliteSql({ file: join(service.dataDir, 'uploads.sqlite') })
  await database.run(sql`update uploads set expires_at = 0, writer_until = 0`)
  await database.close()
}

test('the last PATCH is a success where the file was stored, and that could not be recorded, and can be repeated', async () => {
  await using service = await start()
  const { create, patch, head } = tus(service)
  const url = urlOf(await create({ path: 'a', overwrite: 'false' }, 6))
  await patch(url, 0, 'abc')
  const database = new SqliteSql({ file: join(service.dataDir, 'uploads.sqlite') })
  database.database.exec(`create trigger fault before update of outcome on uploads
    begin select raise(fail, 'the database is away'); end`)

  const stored = await patch(url, 3, 'def')
  const known = await head(url)
  database.database.exec('drop trigger fault')
  await database.close()
  const partial = await patch(url, 3, 'de')
  const repeated = await patch(url, 3, 'def')

  expect([offsetOf(stored), offsetOf(known), partial.status]).toEqual([6, 5, 409])
  for (const { status, headers } of [stored, repeated])
    expect([status, headers['content-location']]).toEqual([204, '/api/files/a'])
  expect(repeated.headers.etag).toBe(stored.headers.etag)
  expect(service.lines().map(({ msg }) => msg)).toContain('end of an upload not recorded')
  const { body } = await service.call('GET', '/api/changes')
  expect(body.pagination?.total_items).toBe(1)
})

test('a last PATCH whose outcome is unknown can be repeated, and is no conflict with the file that it stored', async () => {
  await using stores = await startSharedStores()
  await using proxy = await PostgresProxy.open(stores.env.DATABASE_URL ?? '')
  await using service = await start({ env: { ...stores.env, DATABASE_URL: proxy.url } })
  const { create, patch } = tus(service)
  const url = urlOf(await create({ path: 'a', overwrite: 'false' }, 6, { body: 'abc' }))
  let isStoring = false
  proxy.onStatement = (statement) => {
    isStoring ||= /insert into \S*files /.test(statement)
    return statement.includes('is_fence') ? 'lose' : undefined
  }
  proxy.onCommit = () => (isStoring ? 'hide' : undefined)

  const unknown = await patch(url, 3, 'def')
  proxy.onCommit = undefined
  proxy.onStatement = undefined
  const repeated = await patch(url, 3, 'def')

  expect([unknown.status, unknown.body.code]).toEqual([503, 'outcome_unknown'])
  expect([repeated.status, repeated.headers['content-location']]).toEqual([204, '/api/files/a'])
  const { headers } = await service.call('GET', '/api/files/a')
  expect(repeated.headers.etag).toBe(headers.etag)
})

test('after an attempt whose outcome is unknown, a refused one does not hide that the first has stored the file', async () => {
  await using service = await start()
  const { create, patch } = tus(service)
  const url = urlOf(await create({ path: 'a', overwrite: 'false' }, 6, { body: 'abc' }))
  const database = new SqliteSql({ file: join(service.dataDir, 'uploads.sqlite') })
  await database.run(sql`update uploads set tried = 1`)
  await database.close()

  const refused = await patch(url, 3, 'def', { headers: { 'if-match': '"other"' } })
  await service.put('a', 'abcdef') // As if the first attempt were committed only now.
  const found = await patch(url, 3, 'def')

  expect([refused.status, found.status]).toEqual([412, 204])
})
