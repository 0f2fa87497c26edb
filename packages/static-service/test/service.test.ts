import { createHash } from 'node:crypto'
import { brotliDecompressSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { start } from './support/start.ts'
import { exchange, type Raw, request } from './support/static-start.ts'

// The static routes in the whole service, with what the API does to the files.

const ask = (port: number, target: string, headers: Record<string, string> = {}) =>
  exchange(port, request(target, headers, 'GET'))

const sha256 = (body: Buffer) => createHash('sha256').update(body).digest('hex')
const isWhole = ({ status, headers, body }: Raw) =>
  status === 200 && headers['content-length'] === String(body.length) && headers.etag === `"${sha256(body)}"`

test('whoever asks while a file is replaced gets all of one version, and then only the new one', async () => {
  await using service = await start()
  const contentOf = (version: number) => `version ${version} `.repeat(1 + (version % 3) * 40)
  await service.put('app.js', contentOf(0))
  const before = await ask(service.port, '/static/app.js')
  const during: Raw[] = []
  const after: string[] = []

  for (let version = 1; version <= 15; version += 1) {
    const upload = service.put('app.js', contentOf(version))
    const asked = Array.from({ length: 6 }, () => ask(service.port, '/static/app.js'))
    await upload
    after.push((await ask(service.port, '/static/app.js')).body.toString())
    during.push(...(await Promise.all(asked)))
  }

  expect(isWhole(before)).toBe(true)
  expect(during.filter((answer) => !isWhole(answer))).toEqual([])
  expect(after).toEqual(Array.from({ length: 15 }, (_, index) => contentOf(index + 1)))
})

test('a file is gone as soon as its deletion has been answered', async () => {
  await using service = await start()
  await service.put('a.txt')
  const before = await ask(service.port, '/static/a.txt')
  await service.call('DELETE', '/api/files/a.txt')

  const after = await ask(service.port, '/static/a.txt')

  expect([before.status, after.status]).toEqual([200, 404])
})

test('an uploaded text is served compressed without anybody asking for it first', async () => {
  await using service = await start()
  const text = 'export const answer = 42\n'.repeat(200)
  const { body } = await service.put('app.js', text)
  const askBrotli = () => ask(service.port, '/static/app.js', { 'Accept-Encoding': 'br' })
  await expect.poll(async () => (await askBrotli()).headers['content-encoding']).toBe('br')

  const answer = await askBrotli()

  expect(brotliDecompressSync(answer.body).toString()).toBe(text)
  expect(answer.headers.etag).toBe(`"${body.sha256}-br"`)
})

test('nobody needs a token, and one that is wrong does no harm', async () => {
  await using service = await start()
  await service.put('a.txt', 'hello')

  const answer = await ask(service.port, '/static/a.txt', { Authorization: 'Bearer nonsense' })

  expect([answer.status, answer.body.toString()]).toEqual([200, 'hello'])
})

test('the static routes are described, without a token', async () => {
  await using service = await start()

  const { bytes } = await service.call('GET', '/openapi.json', { user: 'nobody' })

  const { get } = JSON.parse(bytes.toString()).paths['/static/{path}']
  expect(get.summary).toBe('The content of a file')
  expect(get.security).toEqual([])
})

test('the access log names the user of an authenticated request, and nobody for a public one', async () => {
  await using service = await start()
  const find = (path: string) => service.lines().find((line) => line.path === path)

  await service.call('GET', '/api/files/', { user: 'viewer' })
  await service.call('GET', '/api/versions/current', { user: 'viewer' })

  await expect.poll(() => find('/api/files/')).toMatchObject({ user: 'viewer', level: 'info' })
  await expect.poll(() => find('/api/versions/current')).toBeDefined()
  expect(find('/api/versions/current')).not.toHaveProperty('user')
})
