import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { startStatic } from '../support/static-start.ts'

// What the service tells the proxy; test/e2e/proxies tests what clients of a real one get.

const settings = { STATIC_OFFLOAD: 'nginx', STATIC_OFFLOAD_BYTES: '1000', TRUST_PROXY: '127.0.0.1' }
const forwarded = { 'X-Forwarded-For': '203.0.113.7' }
const proxied = { ...forwarded, 'X-Static-Offload': 'nginx' }
const byCaddy = { ...forwarded, 'X-Static-Offload': 'caddy' }
// Noise, so that its compressed forms are files as well: smaller ones are in the database.
const large = createHash('shake256', { outputLength: 60_000 }).update('x').digest('base64')

describe('the proxy sends the body of a large file', () => {
  test('by the path of its blob, with every header for the client', async () => {
    await using service = await startStatic(settings)
    const { digest } = await service.put('a.html', large)
    const target = `/static/a.html?download&v=${digest.slice(0, 8)}`
    const own = await service.ask(target)

    const { status, headers, body } = await service.ask(target, proxied)

    expect([status, body.length, headers['content-length']]).toEqual([200, 0, '0'])
    expect(headers).toMatchObject({
      'x-accel-redirect': `/blobs/${digest.slice(0, 2)}/${digest.slice(2, 4)}/${digest}`,
      'x-static-cache-control': 'public, max-age=31536000, immutable',
      'x-static-content-disposition': 'attachment; filename=a.html',
    })
    const kept = ['content-type', 'etag', 'last-modified', 'vary', 'content-security-policy']
    for (const name of kept) expect(headers[name]).toBe(own.headers[name])
    // nginx would send these twice.
    const names = ['accept-ranges', 'cache-control', 'content-disposition']
    expect(names.filter((name) => headers[name] !== undefined)).toEqual([])
  })

  test('Caddy gets the headers by their own names', async () => {
    await using service = await startStatic({ ...settings, STATIC_OFFLOAD: 'caddy' })
    await service.put('a.html', large)

    const { headers } = await service.ask('/static/a.html', byCaddy)

    expect(headers['x-accel-redirect']).toMatch(/^\/blobs\//)
    expect(headers).toMatchObject({
      'accept-ranges': 'bytes',
      'cache-control': 'public, max-age=0, must-revalidate',
    })
  })

  test.each([
    ['bytes=0-9', true, 'one range that all servers read alike'],
    ['bytes=5-', true, 'an open end'],
    ['bytes=-5', true, 'a suffix'],
    ['bytes=0-9999999', true, 'an end past the end'],
    ['bytes=0-1,2-3', false, 'several ranges'],
    ['bytes=0-9,5-14', false, 'several that overlap'],
    ['bytes=,0-9', false, 'an empty element'],
    ['Bytes=0-9', false, 'a unit in capitals'],
    ['bytes=0-99999999999999999999', false, 'a number larger than any machine word'],
    ['bytes=5-4', false, 'a malformed range'],
    ['items=0-9', false, 'an unknown unit'],
  ])('Range %s: %s (%s)', async (range, isLeft) => {
    await using service = await startStatic(settings)
    await service.put('a.bin', large)

    const { headers, body } = await service.ask('/static/a.bin', { ...proxied, Range: range })

    expect(headers['x-accel-redirect'] !== undefined).toBe(isLeft)
    expect(headers['x-static-accept-ranges']).toBe(isLeft ? 'bytes' : undefined)
    expect(body.length > 0).toBe(!isLeft)
  })

  test('nginx sends compressed forms, Caddy does not: it would omit their length', async () => {
    await using nginx = await startStatic(settings)
    await using caddy = await startStatic({ ...settings, STATIC_OFFLOAD: 'caddy' })
    const proxies = [
      { service: nginx, headers: proxied },
      { service: caddy, headers: byCaddy },
    ]

    const answers = await Promise.all(
      proxies.map(async ({ service, headers }) => {
        service.compressor.enqueue(await service.put('a.txt', large))
        await service.compressor.idle()
        return service.ask('/static/a.txt', { ...headers, 'Accept-Encoding': 'br' })
      }),
    )

    expect(answers.map(({ headers }) => headers['content-encoding'])).toEqual(['br', 'br'])
    const places = answers.map(({ headers }) => headers['x-accel-redirect'])
    expect(places).toEqual([expect.stringMatching(/[0-9a-f]{64}\.br$/), undefined])
  })
})

describe('the service sends the body itself', () => {
  test.each([
    ['to a client that no proxy forwards', { 'X-Static-Offload': 'nginx' }, 'GET'],
    ['to a proxy that does not say that it can', forwarded, 'GET'],
    ['to a proxy that says nothing after it found no file', { ...proxied, 'X-Static-Offload': '' }, 'GET'],
    ['to another kind of proxy', byCaddy, 'GET'],
    ['for HEAD', proxied, 'HEAD'],
    ['under If-None-Match', { ...proxied, 'If-None-Match': '"0"' }, 'GET'],
    ['under If-Match', { ...proxied, 'If-Match': '*' }, 'GET'],
    ['under If-Modified-Since', { ...proxied, 'If-Modified-Since': 'Sun, 06 Nov 1994 08:49:37 GMT' }, 'GET'],
    ['under If-Unmodified-Since', { ...proxied, 'If-Unmodified-Since': 'Fri, 31 Dec 2399 23:59:59 GMT' }, 'GET'],
    ['under If-Range', { ...proxied, Range: 'bytes=0-', 'If-Range': '"0"' }, 'GET'],
  ])('%s', async (_when, headers, method) => {
    await using service = await startStatic(settings)
    await service.put('a.bin', large)

    const answer = await service.ask('/static/a.bin', headers, method)

    expect(answer.status).toBe(200)
    expect(answer.headers['x-accel-redirect']).toBeUndefined()
    expect(answer.headers['content-length']).toBe(String(large.length))
    expect(answer.body.toString()).toBe(method === 'HEAD' ? '' : large)
  })

  test('if it is small', async () => {
    await using service = await startStatic(settings)
    await service.put('a.bin', 'x'.repeat(999))

    const answer = await service.ask('/static/a.bin', proxied)

    expect([answer.headers['x-accel-redirect'], answer.body.length]).toEqual([undefined, 999])
  })

  test('if its compressed form is too small for a file of its own', async () => {
    await using service = await startStatic(settings)
    service.compressor.enqueue(await service.put('a.txt', 'x'.repeat(100_000)))
    await service.compressor.idle()

    const answer = await service.ask('/static/a.txt', { ...proxied, 'Accept-Encoding': 'br' })

    expect(answer.headers['x-accel-redirect']).toBeUndefined()
    expect(Number(answer.headers['content-length'])).toBe(answer.body.length)
    expect(answer.headers['content-encoding']).toBe('br')
  })

  test('by default, whatever the proxy says', async () => {
    await using service = await startStatic({ TRUST_PROXY: '127.0.0.1', STATIC_OFFLOAD_BYTES: '0' })
    await service.put('a.bin', large)

    const answer = await service.ask('/static/a.bin', proxied)

    expect([answer.headers['x-accel-redirect'], answer.body.length]).toEqual([undefined, large.length])
  })
})

test('a damaged content is not offloaded', async () => {
  await using service = await startStatic(settings)
  const row = await service.put('a.bin', large)
  await service.cut(row, 40_000)

  const answer = await service.ask('/static/a.bin', proxied)

  expect([answer.status, answer.headers['x-accel-redirect']]).toEqual([500, undefined])
})

test('offload without TRUST_PROXY is refused at startup', () => {
  expect(() => readConfig({ STATIC_OFFLOAD: 'nginx' })).toThrow(
    'TRUST_PROXY: must name the proxy that STATIC_OFFLOAD leaves bodies to',
  )
})
