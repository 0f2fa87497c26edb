import { describe, expect, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { startStatic } from '../support/static-start.ts'

// What the service says to the proxy; what the client then gets of a real one is tried by test/e2e/proxies.

const settings = { STATIC_OFFLOAD: 'nginx', STATIC_OFFLOAD_BYTES: '1000', TRUST_PROXY: '127.0.0.1' }
const proxied = { 'X-Forwarded-For': '203.0.113.7' }
const large = 'The quick brown fox jumps over the lazy dog.\n'.repeat(100)

describe('the body of a large file is left to the proxy', () => {
  test('by the place of its content, with every header that the client is to see', async () => {
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
    // nginx would keep these beside its own.
    const names = ['accept-ranges', 'cache-control', 'content-disposition']
    expect(names.filter((name) => headers[name] !== undefined)).toEqual([])
  })

  test('and Caddy takes the headers by their names', async () => {
    await using service = await startStatic({ ...settings, STATIC_OFFLOAD: 'caddy' })
    await service.put('a.html', large)

    const { headers } = await service.ask('/static/a.html', proxied)

    expect(headers['x-accel-redirect']).toMatch(/^\/blobs\//)
    expect(headers).toMatchObject({
      'accept-ranges': 'bytes',
      'cache-control': 'public, max-age=0, must-revalidate',
    })
  })

  test.each([
    ['bytes=0-9', true, 'one range that everybody reads alike'],
    ['bytes=5-', true, 'an open end'],
    ['bytes=-5', true, 'a suffix'],
    ['bytes=0-9999999', true, 'an end past the end'],
    ['bytes=0-1,2-3', false, 'several, whose frame is ours'],
    ['bytes=0-9,5-14', false, 'several that are one'],
    ['bytes=,0-9', false, 'an empty element'],
    ['Bytes=0-9', false, 'a unit in capitals'],
    ['bytes=0-99999999999999999999', false, 'a number larger than any machine word'],
    ['bytes=5-4', false, 'what is to be ignored'],
    ['items=0-9', false, 'an unknown unit'],
  ])('%s: %s, for it is %s', async (range, isLeft) => {
    await using service = await startStatic(settings)
    await service.put('a.bin', large)

    const { headers, body } = await service.ask('/static/a.bin', { ...proxied, Range: range })

    expect(headers['x-accel-redirect'] !== undefined).toBe(isLeft)
    expect(headers['x-static-accept-ranges']).toBe(isLeft ? 'bytes' : undefined)
    expect(body.length > 0).toBe(!isLeft)
  })

  test('a compressed form to nginx, not to Caddy, which does not tell its length', async () => {
    await using nginx = await startStatic(settings)
    await using caddy = await startStatic({ ...settings, STATIC_OFFLOAD: 'caddy' })
    const taken = { ...proxied, 'Accept-Encoding': 'br' }

    const answers = await Promise.all(
      [nginx, caddy].map(async (service) => {
        service.compressor.enqueue(await service.put('a.txt', large))
        await service.compressor.idle()
        return service.ask('/static/a.txt', taken)
      }),
    )

    expect(answers.map(({ headers }) => headers['content-encoding'])).toEqual(['br', 'br'])
    const places = answers.map(({ headers }) => headers['x-accel-redirect'])
    expect(places).toEqual([expect.stringMatching(/[0-9a-f]{64}\.br$/), undefined])
  })
})

describe('it is sent from here', () => {
  test.each([
    ['to who comes directly', {}, 'GET'],
    ['to a proxy that found nothing there', { ...proxied, 'X-Static-Offload': 'off' }, 'GET'],
    ['where nothing is sent', proxied, 'HEAD'],
    ['under If-None-Match', { ...proxied, 'If-None-Match': '"0"' }, 'GET'],
    ['under If-Match', { ...proxied, 'If-Match': '*' }, 'GET'],
    [
      'under If-Modified-Since',
      { ...proxied, 'If-Modified-Since': 'Sun, 06 Nov 1994 08:49:37 GMT' },
      'GET',
    ],
    [
      'under If-Unmodified-Since',
      { ...proxied, 'If-Unmodified-Since': 'Fri, 31 Dec 2399 23:59:59 GMT' },
      'GET',
    ],
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

  test('where it is small', async () => {
    await using service = await startStatic(settings)
    await service.put('a.bin', 'x'.repeat(999))

    const answer = await service.ask('/static/a.bin', proxied)

    expect([answer.headers['x-accel-redirect'], answer.body.length]).toEqual([undefined, 999])
  })

  test('by default, whoever asks', async () => {
    await using service = await startStatic({ TRUST_PROXY: 'true', STATIC_OFFLOAD_BYTES: '0' })
    await service.put('a.bin', large)

    const answer = await service.ask('/static/a.bin', proxied)

    expect([answer.headers['x-accel-redirect'], answer.body.length]).toEqual([
      undefined,
      large.length,
    ])
  })
})

test('a content that is damaged is not left to anybody', async () => {
  await using service = await startStatic(settings)
  const row = await service.put('a.bin', large)
  await service.cut(row, 1200)

  const answer = await service.ask('/static/a.bin', proxied)

  expect([answer.status, answer.headers['x-accel-redirect']]).toEqual([500, undefined])
})

test('without a proxy that is trusted the service does not start', () => {
  expect(() => readConfig({ STATIC_OFFLOAD: 'nginx' })).toThrow(
    'TRUST_PROXY: must say who the proxy is that STATIC_OFFLOAD leaves the bodies to',
  )
})
