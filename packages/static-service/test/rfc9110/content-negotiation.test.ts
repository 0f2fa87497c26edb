import { createHash } from 'node:crypto'
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type StaticService, startStatic } from '../support/static-start.ts'

const text = 'The quick brown fox jumps over the lazy dog.\n'.repeat(100)
const digest = createHash('sha256').update(text).digest('hex')
let service: StaticService

beforeAll(async () => {
  service = await startStatic()
  service.compressor.enqueue(await service.put('long.txt', text))
  await service.compressor.idle()
})
afterAll(() => service[Symbol.asyncDispose]())

const decoders: Record<string, (body: Buffer) => Buffer> = {
  identity: (body) => body,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
  gzip: gunzipSync,
}

describe('the form is chosen by Accept-Encoding (RFC 9110, 12.5.3)', () => {
  test.each<[string | undefined, string, string]>([
    [undefined, 'identity', 'no field: what everybody can read'],
    ['', 'identity', 'an empty field: nothing but identity'],
    ['br', 'br', 'one coding'],
    ['zstd', 'zstd', 'one coding'],
    ['gzip', 'gzip', 'one coding'],
    ['x-gzip', 'gzip', 'the old name of gzip (8.4.1.3)'],
    ['GZip', 'gzip', 'codings are case-insensitive'],
    ['gzip, deflate, br, zstd', 'br', 'of those liked equally, the smallest'],
    ['gzip, zstd', 'zstd', 'of those liked equally, the smaller'],
    ['gzip, deflate', 'gzip', 'what we have of what is taken'],
    ['deflate, compress', 'identity', 'nothing that we have'],
    ['br;q=0.5, gzip;q=0.9', 'gzip', 'the higher weight'],
    ['br;q=0.001, gzip;q=0.002', 'gzip', 'three digits of weight'],
    ['br;q=0, gzip', 'gzip', 'weight 0 means not acceptable (12.4.2)'],
    ['br;q=0.000, zstd;q=0, gzip;q=0', 'identity', 'all refused'],
    ['*', 'br', 'a star takes all'],
    ['*;q=0', 'identity', 'all refused, and no 406'],
    ['br;q=0, *', 'zstd', 'a star takes what is not named'],
    ['gzip, *;q=0', 'gzip', 'nothing but what is named'],
    ['gzip;q=1.0, identity;q=0.5, *;q=0', 'gzip', 'the example of the RFC'],
    ['identity', 'identity', 'nothing else is named'],
    ['identity, br', 'br', 'liked equally'],
    ['identity;q=1, br;q=0.5', 'identity', 'identity is liked better'],
    ['identity;q=0, gzip', 'gzip', 'identity is refused, another is taken'],
    ['identity;q=0', 'identity', 'all refused, and no 406'],
    ['identity;q=0, *;q=0', 'identity', 'all refused, and no 406'],
    ['br ; q=0.2 ,gzip; q=0.3', 'gzip', 'white space'],
    ['br;q=x, gzip', 'gzip', 'a weight that is no number'],
    [', ,gzip,', 'gzip', 'empty elements'],
  ])('%s is %s: %s', async (field, form) => {
    const headers = field === undefined ? {} : { 'Accept-Encoding': field }

    const answer = await service.ask('/static/long.txt', headers)

    expect(answer.status).toBe(200)
    expect(decoders[form]?.(answer.body).toString()).toBe(text)
    expect(answer.headers).toMatchObject({
      etag: form === 'identity' ? `"${digest}"` : `"${digest}-${form}"`,
      vary: 'Accept-Encoding',
      'content-length': String(answer.body.length),
      'content-type': 'text/plain; charset=utf-8',
    })
    expect(answer.headers['content-encoding'] ?? 'identity').toBe(form)
  })
})

describe('each form is a representation of its own', () => {
  test.each([
    ['GET', { 'If-None-Match': `"${digest}-br"` }, 304],
    ['GET', { 'If-None-Match': `"${digest}"` }, 200],
    ['GET', { 'If-Match': `"${digest}-br"` }, 200],
    ['GET', { 'If-Match': `"${digest}"` }, 412],
    ['HEAD', { 'If-None-Match': `"${digest}-br"` }, 304],
  ])('%s with %o where br is taken is a %i', async (method, condition, status) => {
    const answer = await service.ask('/static/long.txt', { 'Accept-Encoding': 'br', ...condition }, method)

    expect([answer.status, answer.headers.vary]).toEqual([status, 'Accept-Encoding'])
  })

  test('HEAD tells the length of the form that GET would send', async () => {
    const head = await service.ask('/static/long.txt', { 'Accept-Encoding': 'br' }, 'HEAD')
    const get = await service.ask('/static/long.txt', { 'Accept-Encoding': 'br' })

    expect(head.headers['content-length']).toBe(String(get.body.length))
    expect(head.headers['content-encoding']).toBe('br')
    expect(head.body).toHaveLength(0)
  })

  test('a range is one of the identity form', async () => {
    const answer = await service.ask('/static/long.txt', {
      'Accept-Encoding': 'br',
      Range: 'bytes=4-8',
    })

    expect([answer.status, answer.body.toString()]).toEqual([206, 'quick'])
    expect(answer.headers).toMatchObject({ etag: `"${digest}"`, vary: 'Accept-Encoding' })
    expect(answer.headers['content-encoding']).toBeUndefined()
  })

  test('an ignored range is answered in the form that is taken', async () => {
    const answer = await service.ask('/static/long.txt', {
      'Accept-Encoding': 'br',
      Range: 'items=4-8',
    })

    expect([answer.status, answer.headers['content-encoding']]).toEqual([200, 'br'])
  })

  test('a 416 of a text varies, too', async () => {
    const answer = await service.ask('/static/long.txt', { Range: 'bytes=99999-' })

    expect([answer.status, answer.headers.vary]).toEqual([416, 'Accept-Encoding'])
  })
})

describe('what is compressed', () => {
  test.each([
    ['small.txt', 'x'.repeat(1023), 'Accept-Encoding', undefined],
    ['least.txt', 'x'.repeat(1024), 'Accept-Encoding', 'br'],
    ['picture.png', 'x'.repeat(4096), undefined, undefined],
    ['page.html', '<p>'.repeat(1000), 'Accept-Encoding', 'br'],
    ['table.json', '[1]'.repeat(1000), 'Accept-Encoding', 'br'],
    ['drawing.svg', '<g/>'.repeat(1000), 'Accept-Encoding', 'br'],
  ])('%s', async (path, content, vary, coding) => {
    await using own = await startStatic()
    own.compressor.enqueue(await own.put(path, content))
    await own.compressor.idle()

    const answer = await own.ask(`/static/${path}`, { 'Accept-Encoding': 'br' })

    expect(answer.headers.vary).toBe(vary)
    expect(answer.headers['content-encoding']).toBe(coding)
  })

  test('a form that is no smaller than the file is not kept', async () => {
    await using own = await startStatic()
    const noise = createHash('shake256', { outputLength: 4096 }).update('noise').digest()
    const row = await own.put('noise.txt', noise)
    own.compressor.enqueue(row)
    await own.compressor.idle()

    const answer = await own.ask('/static/noise.txt', { 'Accept-Encoding': 'br, zstd, gzip' })

    expect(answer.headers['content-encoding']).toBeUndefined()
    expect(answer.body).toEqual(noise)
  })

  test('a file that nobody compressed, as after a restart, is compressed once it is asked for', async () => {
    await using own = await startStatic()
    await own.put('old.txt', text)

    const first = await own.ask('/static/old.txt', { 'Accept-Encoding': 'br' })
    await own.compressor.idle()
    const second = await own.ask('/static/old.txt', { 'Accept-Encoding': 'br' })

    expect(first.headers['content-encoding']).toBeUndefined()
    expect(second.headers['content-encoding']).toBe('br')
    expect(brotliDecompressSync(second.body).toString()).toBe(text)
  })

  test('a larger text is sent from the disk in its own form', async () => {
    await using own = await startStatic()
    const large = text.repeat(600)
    own.compressor.enqueue(await own.put('large.txt', large))
    await own.compressor.idle()

    const answer = await own.ask('/static/large.txt', { 'Accept-Encoding': 'gzip' })

    expect(answer.headers['content-length']).toBe(String(answer.body.length))
    expect(gunzipSync(answer.body).toString()).toBe(large)
  })

  test('a file that is deleted while it waits leaves no form behind', async () => {
    await using own = await startStatic()
    const row = await own.put('gone.txt', text)
    await own.catalog.writes.remove({ paths: ['gone.txt'] })
    await own.store.settle()

    own.compressor.enqueue(row)
    await own.compressor.idle()

    expect(await own.store.forms(row.digest)).not.toContain('br')
  })

  test('a closed compressor finishes what it makes and takes no more', async () => {
    await using own = await startStatic()
    const row = await own.put('late.txt', text)

    await own.compressor.close()
    own.compressor.enqueue(row)
    await own.compressor.idle()

    expect(await own.store.forms(row.digest)).not.toContain('br')
  })
})
