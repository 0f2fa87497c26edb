import type { App } from '@domains-and-files/http'
import type { SqliteSql } from '@domains-and-files/persistence'
import { expect, test } from 'vitest'
import { createToken as makeToken } from '../../src/api-tokens/token-format.ts'
import { callerOfUser } from '../../src/rights.ts'
import { makeUser, start, writeUsers } from '../support/start.ts'

const basic = (password: string) => `Basic ${Buffer.from(`any:${password}`).toString('base64')}`
const post = (body: unknown) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
})
const records = [{ name: '_acme-challenge', types: ['TXT'] }]

test('a created token is shown once, with its record', async () => {
  await using service = await start()
  const token = await service.tokenOf('edda')

  const created = await service.call('/api/tokens', {
    ...post({ name: 'ci', role: 'editor', domains: ['Example.com'], networks: ['127.0.0.0/8'] }),
    token,
  })
  const listed = await service.call('/api/tokens', { token })

  expect(created.status).toBe(201)
  expect(created.headers.get('cache-control')).toBe('no-store')
  const { token: secret, ...record } = created.body
  expect(secret).toMatch(/^ds_[0-9A-Za-z]{38}$/)
  expect(record).toEqual({
    id: expect.any(String),
    name: 'ci',
    hint: secret.slice(-4),
    owner: 'edda',
    role: 'editor',
    domains: ['example.com'],
    folders: null,
    writes: null,
    records: null,
    replace: false,
    networks: ['127.0.0.0/8'],
    created_at: '2026-11-20T19:20:00.500Z',
    expires_at: '2027-02-18T19:20:00.500Z',
    last_used_at: null,
  })
  expect(listed.body).toEqual({
    tokens: [record],
    pagination: { page: 1, page_size: 50, total_items: 1, total_pages: 1 },
  })
})

test('a token is accepted as Bearer, as Basic password, and as X-Api-Key', async () => {
  await using service = await start()
  const { token } = await service.createToken('edda', { role: 'editor' })

  const headers = [
    { authorization: `Bearer ${token}` },
    { authorization: `bearer ${token}` },
    { authorization: basic(token) },
    { 'x-api-key': token },
  ]
  const answers = await Promise.all(headers.map((each) => service.call('/view', { headers: each })))

  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  expect(answers[0]?.body).toMatchObject({
    username: 'edda',
    role: 'editor',
    token: { name: expect.stringMatching(/^token /) },
  })
})

test('a token without a role is a viewer', async () => {
  await using service = await start()
  const { token } = await service.createToken('adam')

  const read = await service.call('/view', { token })
  const write = await service.call('/edit', { token, method: 'PUT' })

  expect([read.status, write.status]).toEqual([200, 403])
  expect((await service.call('/api/auth/me', { token })).body).toMatchObject({
    user: { username: 'adam', role: 'viewer' },
    expires_at: '2027-02-18T19:20:00.500Z',
  })
})

test.each([
  ['a typo', (token: string) => token.replace(/.$/, (last) => (last === 'a' ? 'b' : 'a'))],
  ['an unknown token', () => makeToken('ds_')],
  ['nothing', () => 'ds_'],
])('%s is unauthorized', async (_name, change) => {
  await using service = await start()
  const { token } = await service.createToken('edda')

  const headers = { authorization: basic(change(token)) }
  const answer = await service.call('/view', { headers })

  expect(answer).toMatchObject({ status: 401, code: 'unauthorized' })
  expect(answer.headers.get('www-authenticate')).toContain('error="invalid_token"')
})

test('a token expires', async () => {
  await using service = await start()
  const { token } = await service.createToken('edda', { expires_in: 60 })

  service.clock.ms += 59_999
  const before = await service.call('/view', { token })
  service.clock.ms += 1
  const after = await service.call('/view', { token })

  expect([before.status, after.code]).toEqual([200, 'token_expired'])
})

test('only an admin creates a token that never expires', async () => {
  await using service = await start()
  const create = async (user: string) =>
    service.call('/api/tokens', {
      ...post({ name: 'x', expires_in: 0 }),
      token: await service.tokenOf(user),
    })

  const [editor, admin] = [await create('edda'), await create('adam')]

  expect(editor).toMatchObject({ status: 403, code: 'forbidden' })
  expect(admin).toMatchObject({ status: 201, body: { expires_at: null } })
  expect((await service.call('/api/auth/me', { token: admin.body.token })).body.expires_at).toBeNull()
})

test.each([
  ['edda', { role: 'admin' }],
  ['vera', { domains: ['other.com'] }],
  ['vera', { domains: ['*.org.uk'] }],
])('%s cannot create a token with more rights than their own: %j', async (user, request) => {
  await using service = await start()

  const answer = await service.call('/api/tokens', {
    ...post({ name: 'x', ...request }),
    token: await service.tokenOf(user),
  })

  expect(answer).toMatchObject({ status: 403, code: 'forbidden' })
})

test.each([
  [{}, '/name'],
  [{ name: '' }, '/name'],
  [{ name: 'x'.repeat(101) }, '/name'],
  [{ name: 'half a pair \ud83d' }, '/name'],
  [{ name: 'x', role: 'root' }, '/role'],
  [{ name: 'x', expires_in: -1 }, '/expires_in'],
  [{ name: 'x', domains: [] }, '/domains'],
  [{ name: 'x', domains: ['a b'] }, '/domains/0'],
  [{ name: 'x', folders: ['..'] }, '/folders/0'],
  [{ name: 'x', folders: ['docs/'] }, '/folders'],
  [{ name: 'x', records: [{ name: 'a' }] }, '/records/0/types'],
  [{ name: 'x', networks: ['localhost'] }, '/networks/0'],
  [{ name: 'x', scope: 'all' }, '/scope'],
])('%j is not valid: %s', async (body, path) => {
  await using service = await start()

  const answer = await service.call('/api/tokens', {
    ...post(body),
    token: await service.tokenOf('adam'),
  })

  expect(answer).toMatchObject({ status: 400, body: { errors: [{ path }] } })
})

test('a token sees at most the folders of its owner', async () => {
  await using service = await start({ audience: 'static-service' })
  const [vera, edda, adam] = service.people
  const { token } = await service.createToken('edda', { role: 'editor', folders: ['a/', 'b/c'] })
  await writeUsers(service.file, [vera, { ...edda, folders: ['b/'] }, adam])

  const read = await service.call('/api/auth/me', { token })
  const wider = await service.call('/api/tokens', {
    ...post({ name: 'x', folders: ['a/'] }),
    token: await service.tokenOf('edda'),
  })

  expect(read.body.user.folders).toEqual(['b/c/'])
  expect(wider).toMatchObject({ status: 403, code: 'forbidden' })
})

test('a token has at most the rights that its owner has now', async () => {
  await using service = await start()
  const { token } = await service.createToken('edda', {
    role: 'editor',
    domains: ['a.com', 'b.com'],
  })
  const [vera, edda, adam] = service.people

  await writeUsers(service.file, [vera, { ...edda, role: 'viewer', domains: ['b.com'] }, adam])
  const read = await service.call('/view', { token })
  const write = await service.call('/edit', { token, method: 'PUT' })

  expect(read.body).toMatchObject({ role: 'viewer', domains: ['b.com'] })
  expect(write.status).toBe(403)
})

test('a token dies with its owner, and a new user of that name does not inherit it', async () => {
  await using service = await start()
  const { token } = await service.createToken('edda')
  const [vera, edda, adam] = service.people

  await writeUsers(service.file, [vera, adam])
  const removed = await service.call('/view', { token })
  await writeUsers(service.file, [vera, { ...edda, id: 'another' }, adam])
  const returned = await service.call('/view', { token })

  expect([removed.status, returned.status]).toEqual([401, 401])
})

test('a changed password does not end API tokens', async () => {
  await using service = await start()
  const { token } = await service.createToken('edda')
  const [vera, edda, adam] = service.people
  const { password } = await makeUser('other')

  await writeUsers(service.file, [vera, { ...edda, password }, adam])

  expect((await service.call('/view', { token })).status).toBe(200)
})

test('from outside its networks a token is as good as unknown', async () => {
  await using service = await start({ trustProxy: true })
  const { token } = await service.createToken('edda', { networks: ['192.0.2.0/24'] })

  const from = (address: string) => service.call('/view', { token, headers: { 'x-forwarded-for': address } })
  const [inside, outside] = [await from('192.0.2.9:4711'), await from('198.51.100.9')]
  const unknown = await service.call('/view', { token: makeToken('ds_') })

  expect(inside.status).toBe(200)
  expect(outside).toMatchObject({ status: 401, body: { detail: unknown.body.detail } })
})

test('a revoked token stops working at once', async () => {
  await using service = await start()
  const { id, token } = await service.createToken('edda')
  const owner = { token: await service.tokenOf('edda'), method: 'DELETE' }

  const revoked = await service.call(`/api/tokens/${id}`, owner)
  const used = await service.call('/view', { token })
  const again = await service.call(`/api/tokens/${id}`, owner)

  expect([revoked.status, used.status]).toEqual([204, 401])
  expect(again).toMatchObject({ status: 404, code: 'token_not_found' })
})

test('users list and revoke their own tokens, an admin those of all', async () => {
  await using service = await start()
  const { id } = await service.createToken('edda')
  const [vera, adam] = [await service.tokenOf('vera'), await service.tokenOf('adam')]

  const foreign = await service.call('/api/tokens?owner=edda', { token: vera })
  const hidden = await service.call(`/api/tokens/${id}`, { token: vera, method: 'DELETE' })
  const own = await service.call('/api/tokens', { token: adam })
  const listed = await service.call('/api/tokens?owner=edda', { token: adam })
  const revoked = await service.call(`/api/tokens/${id}`, { token: adam, method: 'DELETE' })

  expect([foreign.status, hidden.status]).toEqual([403, 404])
  expect(own.body.tokens).toEqual([])
  expect(listed.body.tokens).toMatchObject([{ id, owner: 'edda' }])
  expect(revoked.status).toBe(204)
})

test('a token cannot manage tokens', async () => {
  await using service = await start()
  const { id, token } = await service.createToken('adam', { role: 'admin' })

  const answers = [
    await service.call('/api/tokens', { ...post({ name: 'x' }), token }),
    await service.call('/api/tokens', { token }),
    await service.call(`/api/tokens/${id}`, { token, method: 'DELETE' }),
  ]

  expect(answers.map(({ status }) => status)).toEqual([403, 403, 403])
})

test('last_used_at is written at most once a minute', async () => {
  await using service = await start()
  const { token } = await service.createToken('edda')
  const owner = { token: await service.tokenOf('edda') }
  const lastUsed = async () => (await service.call('/api/tokens', owner)).body.tokens[0].last_used_at

  await service.call('/view', { token })
  await expect.poll(lastUsed).toBe('2026-11-20T19:20:00.500Z')
  service.clock.ms += 59_999
  await service.call('/view', { token })
  const within = await lastUsed()
  service.clock.ms += 1
  await service.call('/view', { token })

  expect(within).toBe('2026-11-20T19:20:00.500Z')
  await expect.poll(lastUsed).toBe('2026-11-20T19:21:00.500Z')
})

test('a token limited to records passes only routes that enforce its limits', async () => {
  const routes = (app: App) => {
    const config = { access: 'editor', enforcesRecordLimits: true } as const
    app.put('/limited', { config }, async ({ caller }) => caller)
  }
  await using service = await start({ routes })
  const alone = await service.createToken('edda', { records })
  const reading = await service.createToken('edda', { records, role: 'viewer' })
  const powerless = await service.createToken('vera', { records })
  const statusesOf = async ({ token }: { token: string }) => [
    (await service.call('/limited', { token, method: 'PUT' })).status,
    (await service.call('/edit', { token, method: 'PUT' })).status,
    (await service.call('/view', { token })).status,
  ]

  expect(await statusesOf(alone)).toEqual([200, 403, 403])
  expect(await statusesOf(reading)).toEqual([200, 403, 200])
  expect(await statusesOf(powerless)).toEqual([403, 403, 403])
  const refused = await service.call('/edit', { token: alone.token, method: 'PUT' })
  expect(refused.body.detail).toBe('This token may read and write only _acme-challenge TXT, not PUT /edit')
})

test('the log names the owner and the token, and never the secret', async () => {
  await using service = await start()
  const { token } = await service.createToken('edda', { name: 'nightly' })

  await service.call('/view', { token })

  const isView = ({ path }: Record<string, unknown>) => path === '/view'
  await expect
    .poll(() => service.lines().find(isView))
    .toMatchObject({
      user: 'edda',
      token_name: 'nightly',
    })
  expect(JSON.stringify(service.lines())).not.toContain(token)
})

test('a name that one has given already is refused', async () => {
  await using service = await start()
  const create = async (username: string) =>
    service.call('/api/tokens', { ...post({ name: 'ci' }), token: await service.tokenOf(username) })

  const [first, again, other] = [await create('edda'), await create('edda'), await create('adam')]

  expect([first.status, again.status, other.status]).toEqual([201, 409, 201])
  expect(again.code).toBe('token_exists')
})

test('the 201st token of an owner is refused', async () => {
  await using service = await start()
  const owner = callerOfUser(await makeUser('edda', { role: 'editor' }))
  for (let count = 0; count < 200; count += 1) await service.apiTokens.create(owner, { name: `token ${count}` })

  const answer = await service.call('/api/tokens', {
    ...post({ name: 'one more' }),
    token: await service.tokenOf('edda'),
  })

  expect(answer).toMatchObject({ status: 409, code: 'too_many_tokens' })
})

test('a disk that cannot be written refuses a new token and keeps the old ones', async () => {
  await using service = await start()
  const { token } = await service.createToken('edda')
  const owner = await service.tokenOf('edda')
  const { database } = service.database as SqliteSql
  database.exec('vacuum')
  database.pragma(`max_page_count = ${database.pragma('page_count', { simple: true })}`)
  const name = 'x'.repeat(100)
  const domains = Array.from({ length: 100 }, (_, at) => `${'d'.repeat(60)}${at}.com`)

  const refused = await service.call('/api/tokens', { ...post({ name, domains }), token: owner })
  const used = await service.call('/view', { token })

  expect(refused).toMatchObject({ status: 507, code: 'insufficient_storage' })
  expect(used.status).toBe(200)
})
