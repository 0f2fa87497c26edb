import { Agent } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, ask, type Call, type Service, start } from '../support/start.ts'

const text = 'p { color: teal }\n'.repeat(200)
const large = Buffer.alloc(400_000, 'large ')

const stored: Record<string, string | Buffer> = {
  'open/a.css': text,
  'open/large.bin': large,
  'drafts/a.css': text,
  'drafts/small.bin': 'small',
  'drafts/large.bin': large,
  'drafts/shown/a.txt': 'shown',
  'site/index.html': '<h1>Site</h1>',
  'site/hidden/index.html': '<h1>Hidden</h1>',
  'site/hidden/guide.html': '<h1>Guide</h1>',
  'other/index.html': '<h1>Other</h1>',
  'other/404.html': '<h1>Secret not found</h1>',
}

// Only files in a folder are left to a proxy.
const canOffload = process.env.TEST_STORAGE !== 'shared'
const env = {
  STATIC_SITES: 'site/,other/',
  TRUST_PROXY: 'loopback',
  STATIC_OFFLOAD: canOffload ? 'nginx' : 'off',
}
const offload = { 'x-static-offload': 'nginx', 'x-forwarded-for': '192.0.2.1' }

let service: Service
let token = ''

beforeAll(async () => {
  service = await start({ env })
  for (const [path, content] of Object.entries(stored)) await service.put(path, content)
  await service.call('GET', '/static/drafts/a.css') // In memory before it is private.
  for (const [prefix, isPublic] of [
    ['drafts/', false],
    ['drafts/shown', true],
    ['site/hidden/', false],
    ['other/', false],
  ] as const)
    expect((await setRule(service, prefix, isPublic)).status).toBe(200)
  const json = { name: 'reader', role: 'viewer', folders: ['drafts/'] }
  token = String((await service.call('POST', '/api/tokens', { json })).body.token)
})

afterAll(() => service[Symbol.asyncDispose]())

const setRule = (to: Service, prefix: string, isPublic: boolean) =>
  to.call('PUT', `/api/access/${prefix}`, { json: { public: isPublic } })

const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  service.call(method, `/static/${path}`, { user: 'nobody', headers })

/** A response without what differs from request to request, and without the path. */
function shapeOf({ status, headers, bytes }: Answer, path: string) {
  const { date: _, 'x-request-id': id, ...rest } = headers
  const body = bytes.toString().replaceAll(path, 'PATH').replaceAll(String(id), 'ID')
  return { status, headers: { ...rest, 'content-length': '' }, body }
}

describe('a private file is absent for who may not read it', () => {
  const variants: [string, Record<string, string>, string?][] = [
    ['', {}],
    ['', {}, 'HEAD'],
    ['?v=0123456789abcdef', {}],
    ['?download', {}],
    ['', { range: 'bytes=0-3' }],
    ['', { range: 'bytes=999999999-' }],
    ['', { 'if-match': '"x"' }],
    ['', { 'if-none-match': '*' }],
    ['', { 'if-modified-since': new Date(Date.now() + 60_000).toUTCString() }],
    ['', { 'accept-encoding': 'br, gzip' }],
    ['', offload],
    ['', { origin: 'https://evil.example' }],
    ['', { authorization: 'Bearer wrong' }],
    ['', { authorization: 'Basic OnNlY3JldA==' }],
    ['', { 'x-api-key': 'ss_wrong' }],
  ]
  test.each(variants)('%s %j %s', async (query, headers, method) => {
    for (const path of ['drafts/a.css', 'drafts/large.bin']) {
      const absent = path.replace('drafts/', 'drafts/no-')

      const answer = await get(path + query, headers, method)
      const expected = await get(absent + query, headers, method)

      expect(answer.status).toBe(404)
      expect(shapeOf(answer, path)).toEqual(shapeOf(expected, absent))
      expect(answer.headers['cache-control']).toBe('no-store')
    }
  })

  test.each(['site/hidden', 'site/hidden/', 'site/hidden/guide', 'other/', 'other/missing'])(
    '%s of a site',
    async (path) => {
      const answer = await get(path)

      expect([answer.status, answer.body.code]).toEqual([404, 'file_not_found'])
      expect(answer.bytes.toString()).not.toContain('<h1>')
    },
  )

  test('a token that is limited to other folders reads none of it', async () => {
    const headers = { authorization: `Bearer ${token}` }

    expect((await get('site/hidden/guide.html', headers)).status).toBe(404)
    expect((await get('drafts/small.bin', headers)).status).toBe(200)
  })

  test('a preflight tells nothing of it', async () => {
    const headers = { origin: 'https://a.example', 'access-control-request-method': 'GET' }
    const preflight = (path: string) => get(path, headers, 'OPTIONS')

    expect(shapeOf(await preflight('drafts/a.css'), '')).toEqual(shapeOf(await preflight('drafts/none'), ''))
  })
})

describe('who may read a private file gets it, for itself alone', () => {
  const credentials: (() => Promise<Record<string, string>>)[] = [
    async () => ({ authorization: `Bearer ${await service.tokenOf('viewer')}` }),
    async () => ({ authorization: `Bearer ${token}` }),
    async () => ({ authorization: `Basic ${Buffer.from(`x:${token}`).toString('base64')}` }),
    async () => ({ 'x-api-key': token }),
  ]
  const digest = async (path: string) => String((await service.call('GET', `/api/files/${path}`)).body.sha256)

  test.each(credentials.map((each, index) => [index, each] as const))(
    'with the credentials %i',
    async (_index, credentialsOf) => {
      const headers = await credentialsOf()
      const sha256 = await digest('drafts/large.bin')
      const whole = await get('drafts/large.bin', { ...headers, ...offload })
      const answers = [
        whole,
        await get(`drafts/large.bin?v=${sha256}`, headers),
        await get('drafts/large.bin', { ...headers, range: 'bytes=0-5' }),
        await get('drafts/large.bin', { ...headers, range: 'bytes=0-1,4-5' }),
        await get('drafts/large.bin', { ...headers, 'if-none-match': String(whole.headers.etag) }),
        await get('drafts/large.bin', headers, 'HEAD'),
        await get('drafts/a.css', { ...headers, 'accept-encoding': 'br' }),
      ]

      expect(answers.map(({ status }) => status)).toEqual([200, 200, 206, 206, 304, 200, 200])
      expect(whole.bytes.equals(large)).toBe(true)
      expect(whole.headers['x-accel-redirect']).toBeUndefined()
      for (const answer of answers) {
        expect(answer.headers).toMatchObject({
          'cache-control': 'private, no-cache',
          'cross-origin-resource-policy': 'same-origin',
          vary: expect.stringMatching(/^Authorization\b/),
        })
      }
      expect(answers.at(-1)?.headers.vary).toBe('Authorization, Accept-Encoding')
    },
  )

  test('a refused condition and a refused range are theirs, too', async () => {
    const headers = { 'x-api-key': token }
    const failed = await get('drafts/a.css', { ...headers, 'if-match': '"x"' })
    const outside = await get('drafts/a.css', { ...headers, range: 'bytes=999999-' })

    expect([failed.status, outside.status]).toEqual([412, 416])
    expect(failed.headers.vary).toBe('Authorization, Accept-Encoding')
    expect(outside.headers['cross-origin-resource-policy']).toBe('same-origin')
  })

  test('a private site has its index, clean URLs and its own page for missing paths', async () => {
    const headers = { authorization: `Bearer ${await service.tokenOf('viewer')}` }

    expect((await get('site/hidden/', headers)).bytes.toString()).toBe('<h1>Hidden</h1>')
    expect((await get('site/hidden/guide', headers)).bytes.toString()).toBe('<h1>Guide</h1>')
    expect((await get('site/hidden', headers)).status).toBe(302)
    expect((await get('other/missing', headers)).bytes.toString()).toContain('Secret not found')
  })
})

test('public files stay as they were, with credentials or without, also below a private folder', async () => {
  const own = { 'x-api-key': token }
  for (const headers of [{}, own]) {
    const shown = await get('drafts/shown/a.txt', headers)
    const open = await get('open/large.bin', { ...headers, ...offload })

    expect([shown.status, shown.bytes.toString()]).toEqual([200, 'shown'])
    expect(shown.headers['cache-control']).toBe('public, max-age=0, must-revalidate')
    expect(open.headers['x-accel-redirect'] !== undefined).toBe(canOffload)
  }
})

test('records say whether a file is public', async () => {
  const { body: list } = await service.call('GET', '/api/files?prefix=drafts')
  const at = async (path: string) => (await service.call('GET', `/api/files/${path}`)).body.public

  expect(list.files?.map((file) => [file.path, file.public])).toEqual([
    ['drafts/a.css', false],
    ['drafts/large.bin', false],
    ['drafts/shown/a.txt', true],
    ['drafts/small.bin', false],
  ])
  expect([await at('drafts/a.css'), await at('open/a.css')]).toEqual([false, true])
  expect((await service.put('drafts/new/b.txt')).body.public).toBe(false)
})

test('the tag of a record changes with its access, and each of its tags meets a condition', async () => {
  await service.put('tagged/a.txt', 'a')
  const record = () => service.call('GET', '/api/files/tagged/a.txt')
  const before = String((await record()).headers.etag)
  await setRule(service, 'tagged', false)

  const headers = { 'if-none-match': before }
  const after = await service.call('GET', '/api/files/tagged/a.txt', { headers })

  expect([after.status, after.body.public]).toEqual([200, false])
  const ifMatch = (tag: unknown): Call => ({ headers: { 'if-match': String(tag) } })
  expect((await service.put('tagged/a.txt', 'b', ifMatch(before))).status).toBe(200)
  const { etag } = (await record()).headers
  expect((await service.call('DELETE', '/api/files/tagged/a.txt', ifMatch(etag))).status).toBe(204)
})

test('admins list, set and remove rules; nobody else does', async () => {
  const before = Date.now()
  const { status, body } = await setRule(service, encodeURIComponent('m\u00e4rz/'), false)
  expect(Date.parse(String(body.at))).toBeGreaterThanOrEqual(before)
  expect([status, body]).toMatchObject([200, { prefix: 'm\u00e4rz/', public: false, by: 'admin' }])
  const { body: listed } = await service.call('GET', '/api/access')
  expect(listed.rules).toContainEqual(body)
  const remove = () => service.call('DELETE', '/api/access/m%C3%A4rz')
  expect((await remove()).status).toBe(204)
  expect([(await remove()).status, (await remove()).body.code]).toEqual([404, 'rule_not_found'])

  const json = { public: false }
  for (const user of ['editor', 'viewer']) {
    expect((await service.call('GET', '/api/access', { user })).status).toBe(403)
    expect((await service.call('PUT', '/api/access/x', { user, json })).status).toBe(403)
    expect((await service.call('DELETE', '/api/access/drafts', { user })).status).toBe(403)
  }
  expect((await service.call('PUT', '/api/access/a//b', { json })).status).toBe(400)
  expect((await service.call('PUT', '/api/access/x', { json: {} })).status).toBe(400)
})

test('an admin limited to folders lists, sets and removes rules of these only', async () => {
  const json = { name: 'limited', role: 'admin', folders: ['drafts/'] }
  const { body } = await service.call('POST', '/api/tokens', { json })
  const headers = { authorization: `Bearer ${body.token}` }
  const send = (method: string, prefix: string) =>
    service.call(method, `/api/access/${prefix}`, { json: { public: true }, headers })

  const { body: listed } = await service.call('GET', '/api/access', { headers })
  const prefixes = (listed.rules as { prefix: string }[]).map(({ prefix }) => prefix)
  expect(prefixes.sort()).toEqual(['drafts/', 'drafts/shown/'])
  for (const prefix of ['other', 'none', 'draft'])
    for (const method of ['PUT', 'DELETE']) expect((await send(method, prefix)).body.code).toBe('directory_not_found')
  expect((await send('PUT', 'drafts/mine')).status).toBe(200)
  expect((await send('DELETE', 'drafts/mine')).status).toBe(204)
})

test('a rule may name one file, and is at its path only', async () => {
  for (const path of ['named/a.txt', 'named/a.txt.gz', 'named/b.txt']) await service.put(path, text)
  const read = (path: string) =>
    Promise.all([path, `${path}.gz`, 'named/b.txt'].map(async (each) => (await get(each)).status))
  await setRule(service, 'named/a.txt', false)

  expect(await read('named/a.txt')).toEqual([404, 200, 200])
  expect((await service.call('GET', '/api/files/named/a.txt')).body.public).toBe(false)
  await setRule(service, 'named', false)
  await setRule(service, 'named/a.txt', true)
  expect(await read('named/a.txt')).toEqual([200, 404, 404])
})

test('a token limited to records reads no private file', async () => {
  const json = { name: 'records', records: [{ name: 'www', types: ['A'] }] }
  const { body } = await service.call('POST', '/api/tokens', { json })

  expect((await get('drafts/small.bin', { 'x-api-key': String(body.token) })).status).toBe(404)
})

test('with STATIC_DEFAULT_ACCESS=private files are private that no rule makes public', async () => {
  await using hidden = await start({ env: { STATIC_DEFAULT_ACCESS: 'private' } })
  await hidden.put('a.txt', 'a')
  await hidden.put('shown/b.txt', 'b')
  await setRule(hidden, 'shown/', true)
  const read = async (path: string, user?: string) =>
    (await hidden.call('GET', `/static/${path}`, { user: user ?? 'nobody' })).status

  expect([await read('a.txt'), await read('a.txt', 'viewer')]).toEqual([404, 200])
  expect(await read('shown/b.txt')).toBe(200)
  await hidden.call('DELETE', '/api/access/shown')
  expect(await read('shown/b.txt')).toBe(404)
})

test('a file made private while 50 connections read it is absent in the next answer on each', async () => {
  await service.put('hot/a.css', text)
  const agents = Array.from({ length: 50 }, () => new Agent({ keepAlive: true, maxSockets: 1 }))
  const read = (path: string) =>
    Promise.all(
      agents.map((agent) => ask(service.port, { method: 'GET', path: `/static/${path}`, headers: {}, agent })),
    )
  const statuses = async (path: string) => new Set((await read(path)).map(({ status }) => status))

  for (let round = 0; round < 3; round += 1) expect(await statuses('hot/a.css')).toEqual(new Set([200]))
  const reading = read('hot/a.css')
  await setRule(service, 'hot/', false)
  await reading
  expect(await statuses('hot/a.css')).toEqual(new Set([404]))
  await setRule(service, 'hot/', true)
  expect(await statuses('hot/a.css')).toEqual(new Set([200]))
  await service.call('POST', '/api/files/move', { json: { from: 'hot/', to: 'drafts/hot/' } })
  expect(await statuses('drafts/hot/a.css')).toEqual(new Set([404]))
  for (const agent of agents) agent.destroy()
})
