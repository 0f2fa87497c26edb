import { expect, test } from 'vitest'
import { start } from './support/start.ts'

const preflight = {
  origin: 'https://other.example',
  'access-control-request-method': 'GET',
  'access-control-request-headers': 'if-none-match, range',
}

test.each(['', 'https://example.com'])(
  'a page of any origin may ask for parts of files and on conditions, with CORS_ORIGIN=%s',
  async (origin) => {
    await using service = await start({ env: { CORS_ORIGIN: origin } })

    const file = await service.call('OPTIONS', '/static/a.png', { headers: preflight })
    const api = await service.call('OPTIONS', '/api/files/a.png', { headers: preflight })
    const post = await service.call('POST', '/static/a.png')

    expect(file.status).toBe(204)
    expect(file.headers).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET, HEAD',
      'access-control-allow-headers': '*, authorization',
    })
    expect(api.headers['access-control-allow-origin']).toBeUndefined()
    expect([post.status, post.headers.allow]).toEqual([405, 'GET, HEAD'])
  },
)

test('without CORS_ORIGIN, OPTIONS that is no preflight is a method like others', async () => {
  await using service = await start()

  const { status, headers } = await service.call('OPTIONS', '/static/a.png')

  expect([status, headers.allow]).toEqual([405, 'GET, HEAD'])
})
