import { type IncomingMessage, request } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { start } from '../support/start.ts'

test('the docs page loads nothing from other hosts', async () => {
  await using service = await start()

  const page = await fetch(`${service.url}/docs`)

  const html = await page.text()
  expect(page.headers.get('content-security-policy')).toContain("default-src 'self'")
  const assets = [...html.matchAll(/(?:src|href)="(docs[^"]+)"/g)].map((match) => match[1])
  expect(assets).toHaveLength(3)
  for (const asset of assets) expect((await fetch(`${service.url}/${asset}`)).status).toBe(200)
  expect(html).not.toMatch(/https?:\/\//)
})

test('/docs/ redirects to /docs, relative to its prefix', async () => {
  await using service = await start()

  const answer = await fetch(`${service.url}/docs/`, { redirect: 'manual' })

  expect([answer.status, answer.headers.get('location')]).toEqual([308, '../docs'])
})

test.each(['/openapi.json', '/docs', '/docs/', '/docs/start.js'])(
  '%s rejects unknown query parameters',
  async (path) => {
    await using service = await start()

    const answer = await fetch(`${service.url}${path}?utm_source=a`, { redirect: 'manual' })

    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ errors: [{ path: '/query/utm_source' }] })
  },
)

test('requests from the page go to the prefix it was loaded from', async () => {
  await using service = await start()

  const document: unknown = await (await fetch(`${service.url}/openapi.json`)).json()

  expect(document).toMatchObject({ servers: [{ url: '.' }] })
})

test.each([
  ['gzip, br', 'gzip'],
  ['gzip;q=0.5', 'gzip'],
  ['gzip;q=0, br', undefined],
  ['identity', undefined],
])('for Accept-Encoding: %s the bundle is encoded as %s', async (accepted, coding) => {
  await using service = await start()

  const asked = request(`${service.url}/docs/swagger-ui-bundle.js`, {
    headers: { 'accept-encoding': accepted },
  })
  asked.end()
  const { promise, resolve } = Promise.withResolvers<IncomingMessage>()
  asked.on('response', resolve)
  const response = await promise
  const chunks = await response.toArray()

  expect(response.headers['content-encoding']).toBe(coding)
  expect(response.headers.vary).toBe('accept-encoding')
  const body = Buffer.concat(chunks)
  const plain = coding === 'gzip' ? gunzipSync(body) : body
  expect(plain.toString()).toContain('SwaggerUIBundle')
})

test('an unknown asset is a 404 problem', async () => {
  await using service = await start()

  const answer = await fetch(`${service.url}/docs/other.js`)

  expect(await answer.json()).toMatchObject({ status: 404, code: 'not_found' })
})
