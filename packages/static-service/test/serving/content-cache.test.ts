import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { FileRow } from '../../src/catalog/tables.ts'
import { LruLoader } from '../../src/serving/content-stream.ts'
import { type Raw, startStatic } from '../support/static-start.ts'

const etagOf = (body: Buffer | string) => `"${createHash('sha256').update(body).digest('hex')}"`

/** What a caller can tell of an answer by itself: is it whole, and is its tag that of its bytes? */
const isWhole = ({ status, headers, body }: Raw) =>
  status === 200 && headers['content-length'] === `${body.length}` && headers.etag === etagOf(body)

describe('an answer is never older than what was answered before it was asked for', () => {
  test.each([
    ['small files, which are kept in memory', 100],
    ['files read from the disk', 300_000],
  ])('%s', async (_what, size) => {
    await using service = await startStatic()
    const contentOf = (version: number) => String(version).padStart(size, '.')
    await service.put('changing.bin', contentOf(0))
    let stored = 0
    const stop = new AbortController()
    const stale: number[] = []
    const broken: Raw[] = []
    let asked = 0

    const readers = Array.from({ length: 8 }, async () => {
      while (!stop.signal.aborted || asked <= 8) {
        const least = stored
        const answer = await service.ask('/static/changing.bin')
        asked += 1
        if (!isWhole(answer)) broken.push(answer)
        const version = Number(answer.body.toString().replace(/^\.+/, ''))
        if (version < least) stale.push(version)
      }
    })
    for (let version = 1; version <= 30; version += 1) {
      await service.put('changing.bin', contentOf(version))
      stored = version
    }
    stop.abort()
    await Promise.all(readers)

    expect([broken, stale]).toEqual([[], []])
  })

  test('a deleted file is gone, and one that is stored again is back', async () => {
    await using service = await startStatic()
    const statuses: number[] = []

    for (let round = 0; round < 20; round += 1) {
      await service.put('coming/and/going.txt', 'here')
      statuses.push((await service.ask('/static/coming/and/going.txt')).status)
      await service.catalog.writes.remove({ paths: ['coming/and/going.txt'] })
      statuses.push((await service.ask('/static/coming/and/going.txt')).status)
    }

    expect(statuses).toEqual(Array(20).fill([200, 404]).flat())
  })

  test('while a file comes and goes, each answer is all of it or a 404', async () => {
    await using service = await startStatic()
    const stop = new AbortController()
    const answers: Raw[] = []

    const readers = Array.from({ length: 8 }, async () => {
      while (!stop.signal.aborted) answers.push(await service.ask('/static/flicker.txt'))
    })
    for (let round = 0; round < 40; round += 1) {
      await service.put('flicker.txt', `round ${round}`)
      await service.catalog.writes.remove({ paths: ['flicker.txt'] })
    }
    stop.abort()
    await Promise.all(readers)

    expect(answers.filter((answer) => answer.status !== 404 && !isWhole(answer))).toEqual([])
  })

  test('an index is as fresh as any file', async () => {
    await using service = await startStatic({ STATIC_INDEX: 'index.html' })
    await service.put('site/index.html', 'one')
    const before = await service.ask('/static/site/')
    await service.put('site/index.html', 'two')

    const after = await service.ask('/static/site/')

    expect([before, after].map(({ body }) => body.toString())).toEqual(['one', 'two'])
  })

  test('the compressed form goes with its content', async () => {
    await using service = await startStatic()
    service.compressor.enqueue(await service.put('page.txt', 'one '.repeat(1000)))
    await service.compressor.idle()
    const before = await service.ask('/static/page.txt', { 'Accept-Encoding': 'br' })
    await service.put('page.txt', 'two '.repeat(1000))

    const after = await service.ask('/static/page.txt', { 'Accept-Encoding': 'br' })

    expect(before.headers['content-encoding']).toBe('br')
    expect(after.headers['content-encoding']).toBeUndefined()
    expect(after.body.toString()).toBe('two '.repeat(1000))
  })
})

describe('the memory', () => {
  test('does not cache a value whose load began before it was invalidated', async () => {
    const cache = new LruLoader<{ version: number }>(10_000, () => 1)
    const slow = Promise.withResolvers<{ version: number }>()
    const early = cache.get('a', () => slow.promise)
    cache.invalidate(['a'])

    const late = await cache.get('a', async () => ({ version: 2 }))
    slow.resolve({ version: 1 })

    expect(late).toEqual({ version: 2 })
    expect(await early).toEqual({ version: 1 })
    expect(await cache.get('a', async () => ({ version: 3 }))).toEqual({ version: 2 })
  })

  test.each([10_000, 0])('of %i bytes looks up once for all who ask at once', async (maxBytes) => {
    const cache = new LruLoader<{ version: number }>(maxBytes, () => 1)
    let loads = 0
    const load = async () => ({ version: ++loads })

    const found = await Promise.all(['a', 'b', 'a'].map((key) => cache.get(key, load)))

    expect(found.map((each) => each?.version)).toEqual([1, 2, 1])
  })

  test('does not remember what is not there, nor a failure', async () => {
    const cache = new LruLoader<{ version: number }>(10_000, () => 1)
    const absent = await cache.get('a', async () => undefined)
    const failed = Promise.resolve(cache.get('a', () => Promise.reject(new Error('disk'))))
    await expect(failed).rejects.toThrow('disk')

    const found = await cache.get('a', async () => ({ version: 1 }))

    expect([absent, found]).toEqual([undefined, { version: 1 }])
  })

  test.each([
    ['was invalidated', (cache: LruLoader<Buffer>) => cache.invalidate(['a'])],
    ['was evicted', (cache: LruLoader<Buffer>) => ['b', 'c'].map((key) => cache.set(key, Buffer.alloc(6000)))],
  ])('finds nothing where there is nothing, also if it %s meanwhile', async (_name, drop) => {
    const cache = new LruLoader<Buffer>(10_000, (value) => value.length)
    const slow = Promise.withResolvers<undefined>()
    const found = cache.get('a', () => slow.promise)

    drop(cache)
    slow.resolve(undefined)

    expect(await found).toBeUndefined()
  })

  test('is bounded', async () => {
    const cache = new LruLoader<Buffer>(10_000, (value) => value.length)
    let loads = 0
    const load = async () => {
      loads += 1
      return Buffer.alloc(4000)
    }
    for (const key of ['a', 'b', 'c']) await cache.get(key, load)

    await cache.get('c', load)
    await cache.get('a', load)

    expect(loads).toBe(4)
  })

  test('of size 0 keeps nothing, and everything is served all the same', async () => {
    await using service = await startStatic({ MEMORY_CACHE_BYTES: '0' })
    await service.put('a.txt', 'hello')

    const first = await service.ask('/static/a.txt')
    const second = await service.ask('/static/a.txt')

    expect([first, second].map(({ body }) => body.toString())).toEqual(['hello', 'hello'])
  })

  test('answers a file that it keeps although the disk has lost it', async () => {
    await using service = await startStatic()
    const row = await service.put('kept.txt', 'kept')
    await service.ask('/static/kept.txt')
    await service.lose(row)

    const answer = await service.ask('/static/kept.txt')

    expect(answer.body.toString()).toBe('kept')
  })
})

describe('damage on the disk is a 500 that a person can find', () => {
  test.each([
    ['a small file without its bytes', 10, (damage: Damage, row: FileRow) => damage.lose(row)],
    ['a small file cut short', 10, (damage: Damage, row: FileRow) => damage.cut(row, 9)],
    ['a large file without its bytes', 400_000, (damage: Damage, row: FileRow) => damage.lose(row)],
    ['a large file cut short', 400_000, (damage: Damage, row: FileRow) => damage.cut(row, 399_999)],
  ])('%s', async (_what, size, harm) => {
    await using service = await startStatic()
    const row = await service.put('damaged.bin', Buffer.alloc(size, 'x'))
    await harm(service, row)

    const answer = await service.ask('/static/damaged.bin')

    expect(answer.status).toBe(500)
    expect(JSON.parse(answer.body.toString())).toMatchObject({ code: 'internal_error' })
    expect(answer.headers['cache-control']).toBe('no-store')
    expect(answer.body.toString()).not.toContain(row.digest)
    expect(JSON.stringify(service.lines().filter(({ level }) => level === 'error'))).toContain('damaged.bin')
  })

  test('a form that is lost is replaced by the file itself', async () => {
    await using service = await startStatic()
    const row = await service.put('page.txt', 'text '.repeat(1000))
    service.compressor.enqueue(row)
    await service.compressor.idle()
    await service.ask('/static/page.txt', { 'Accept-Encoding': 'gzip' })
    await service.lose(row, 'br')

    const answer = await service.ask('/static/page.txt', { 'Accept-Encoding': 'br' })

    expect(answer.status).toBe(200)
    expect(isWhole(answer)).toBe(true)
  })
})

interface Damage {
  lose: (row: FileRow) => Promise<void>
  cut: (row: FileRow, length: number) => Promise<void>
}
