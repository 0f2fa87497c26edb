import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PostgresProxy } from '../../../test/support/postgres/postgres-proxy.ts'
import { startSharedStores } from './support/shared-stores.ts'
import { start } from './support/start.ts'

const large = randomBytes(300_000)

test('a file that one replica stores is listed and served by another, and gone when it is deleted', async () => {
  await using stores = await startSharedStores()
  await using one = await start({ env: stores.env })
  await using other = await start({ env: stores.env })

  for (const [path, content] of [
    ['a/small.txt', Buffer.from('small')],
    ['a/large.bin', large],
  ] as const) {
    expect((await one.put(path, content)).status).toBe(201)
    const served = await other.call('GET', `/static/${path}`)
    expect(served.bytes.equals(content)).toBe(true)
  }
  const part = await other.call('GET', '/static/a/large.bin', {
    headers: { range: 'bytes=100-199' },
  })
  expect(part.status).toBe(206)
  expect(part.bytes.equals(large.subarray(100, 200))).toBe(true)
  expect((await other.call('GET', '/api/files/')).body.pagination?.total_items).toBe(2)
  expect((await other.call('DELETE', '/api/files/a/large.bin')).status).toBe(204)
  expect((await one.call('GET', '/static/a/large.bin')).status).toBe(404)
  expect(await readdir(join(one.dataDir, 'tmp'))).toEqual([])
})

test('a replica compresses what another stored, and serves the form that a third made', async () => {
  await using stores = await startSharedStores()
  await using one = await start({ env: stores.env })
  await using other = await start({ env: stores.env })
  await one.put('a.css', 'p { color: black }\n'.repeat(5000))
  const codingAt = async (service: typeof one) => {
    const headers = { 'accept-encoding': 'br' }
    return (await service.call('GET', '/static/a.css', { headers })).headers['content-encoding']
  }

  await expect.poll(() => codingAt(one)).toBe('br')
  await expect.poll(() => codingAt(other)).toBe('br')
})

test('while S3 is away small files are served and stored, large ones get 503, and all of it recovers', async () => {
  await using stores = await startSharedStores()
  await using service = await start({ env: stores.env })
  await service.put('large.bin', large)
  await stores.s3.pause()

  expect((await service.put('small.txt', 'small')).status).toBe(201)
  expect((await service.call('GET', '/static/small.txt')).status).toBe(200)
  const stored = await service.put('other.bin', randomBytes(300_000))
  expect([stored.status, stored.body.code, stored.headers['retry-after']]).toEqual([503, 'unavailable', '2'])
  const read = await service.call('GET', '/static/large.bin')
  expect([read.status, read.body.code]).toEqual([503, 'unavailable'])
  const healthOf = async () => (await service.call('GET', '/health')).status
  await expect.poll(healthOf).toBe(503)

  await stores.s3.resume()
  await expect.poll(healthOf).toBe(200)
  expect((await service.call('GET', '/static/large.bin')).bytes.equals(large)).toBe(true)
  expect((await service.call('GET', '/static/other.bin')).status).toBe(404)
})

test('while PostgreSQL is away every request gets 503 at once, and health says so', async () => {
  await using stores = await startSharedStores()
  const proxy = await PostgresProxy.open(stores.env.DATABASE_URL ?? '')
  await using service = await start({ env: { ...stores.env, DATABASE_URL: proxy.url } })
  await service.put('a.txt', 'cached')
  expect((await service.call('GET', '/static/a.txt')).status).toBe(200)
  await proxy[Symbol.asyncDispose]()

  const answers = await Promise.all([
    service.call('GET', '/static/a.txt'),
    service.call('GET', '/api/files/'),
    service.call('PUT', '/api/files/b.txt', { body: 'b' }),
    service.put('c.txt', 'c'),
  ])

  expect(answers.map(({ status, body }) => [status, body.code])).toEqual(Array(4).fill([503, 'unavailable']))
  expect(answers.map(({ headers }) => headers['retry-after'])).toEqual(Array(4).fill('2'))
  const healthOf = async () => (await service.call('GET', '/health')).status
  await expect.poll(healthOf).toBe(503)
})

test('calls to S3 and the objects that wait for their deletion are metrics', async () => {
  await using stores = await startSharedStores()
  await using service = await start({ env: stores.env })
  await service.put('large.bin', large)
  await service.call('DELETE', '/api/files/large.bin')

  const { bytes } = await service.call('GET', '/metrics', {
    headers: { authorization: 'Bearer metrics-token-of-tests' },
    user: 'nobody',
  })

  const text = bytes.toString()
  expect(text).toMatch(/^static_s3_calls_total\{operation="put"\} [1-9]/m)
  expect(text).toMatch(/^static_s3_objects_waiting 1$/m)
})

test('what a deploy has removed is absent at every replica with the rule that makes it private', async () => {
  await using stores = await startSharedStores()
  const env = { ...stores.env, STATIC_SITES: 'app/', KEEP_HISTORY_DAYS: '1' }
  await using one = await start({ env })
  await using other = await start({ env })
  await one.put('app/a.js', 'a()')
  await one.put('next/index.html', 'new')
  await one.call('PUT', '/api/trees/app/', { json: { from: 'next/' } })
  const read = async () => (await other.call('GET', '/static/app/a.js', { user: 'nobody' })).status

  expect(await read()).toBe(200)
  await one.call('PUT', '/api/access/app', { json: { public: false } })
  expect(await read()).toBe(404)
})

test('rules and deletions of links count with the response at every replica', async () => {
  await using stores = await startSharedStores()
  await using one = await start({ env: stores.env })
  await using other = await start({ env: stores.env })
  await one.put('a/b.txt', 'b')
  const prefixes = async () => {
    const { rules } = (await other.call('GET', '/api/access')).body
    return (rules as { prefix: string }[]).map(({ prefix }) => prefix)
  }
  await one.call('PUT', '/api/access/z', { json: { public: false } })
  expect(await prefixes()).toEqual(['z/'])
  const read = async () => (await other.call('GET', '/static/a/b.txt', { user: 'nobody' })).status
  const isPublic = async () => (await other.call('GET', '/api/files')).body.files?.[0]?.public

  const seen: unknown[] = [await read()]
  for (const shown of [false, true, false]) {
    await one.call('PUT', '/api/access/a', { json: { public: shown } })
    seen.push(await isPublic(), await read())
  }
  await one.call('DELETE', '/api/access/a')
  seen.push(await read(), await isPublic())

  expect(seen).toEqual([200, false, 404, true, 200, false, 404, 200, true])
  const opened: number[] = []
  for (const isDeleted of [true, false]) {
    const json = { path: 'a/b.txt', ...(!isDeleted && { downloads: 1 }) }
    const { body: link } = await one.call('POST', '/api/links', { json })
    const page = () => other.call('HEAD', String(link.url), { user: 'nobody' })
    expect((await page()).status).toBe(200)
    if (isDeleted) await one.call('DELETE', `/api/links/${link.id}`)
    for (const replica of [other, one])
      opened.push((await replica.call('GET', String(link.url), { user: 'nobody' })).status)
  }
  expect(opened).toEqual([404, 404, 200, 404])
})
