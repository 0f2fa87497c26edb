import { createHmac, createPublicKey } from 'node:crypto'
import { generateKeyPair } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { listTrusts, removeTrust } from '../../src/trusts/trusts.ts'
import { startIssuer } from '../support/issuer.ts'
import { forge, forms, makeUser, readClaims, start } from '../support/start.ts'

const grant = {
  grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
  subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
}

type Service = Awaited<ReturnType<typeof start>>

const post = ({ call }: Pick<Service, 'call'>, fields: Record<string, string> | string[][]) =>
  call('/api/auth/token', { method: 'POST', body: new URLSearchParams(fields) })
const exchange = (service: Pick<Service, 'call'>, token: string) => post(service, { ...grant, subject_token: token })
const refused = { status: 400, body: { error: 'invalid_grant' } }

let issuer: Awaited<ReturnType<typeof startIssuer>>
beforeAll(async () => {
  issuer = await startIssuer()
})
afterAll(() => issuer[Symbol.asyncDispose]())

const audience = 'static-service'

const wanted = () => ({
  name: 'site',
  issuer: issuer.url,
  audience: 'https://files.test',
  role: 'editor',
  claims: { repository: 'acme/site' },
  folders: ['site/'],
})

describe.each(forms)('workloads with users in %s', (_name, open) => {
  let service: Awaited<ReturnType<typeof open>>
  let admin: string
  beforeAll(async () => {
    service = await open({ audience })
    service.clock.ms = Date.now()
    service.other.clock.ms = Date.now()
    admin = await service.tokenOf('adam')
  })
  afterAll(() => service[Symbol.asyncDispose]())
  beforeEach(async () => {
    for (const { id } of await listTrusts(service.database)) await removeTrust(service.database, id)
  })

  const add = (more: object = {}) => service.send('POST', '/api/trusts', { ...wanted(), ...more }, admin)

  test('a token of the issuer becomes one of the service, with the rights of the trust', async () => {
    const added = await add()

    const { status, headers, body } = await exchange(service, await issuer.sign())

    expect(added.status).toBe(201)
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(body).toEqual({
      access_token: expect.any(String),
      token_type: 'Bearer',
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      expires_in: 900,
    })
    const me = await service.other.call('/api/auth/me', { token: body.access_token })
    expect(me.body).toMatchObject({
      user: { username: 'trust:site', role: 'editor', folders: ['site/'] },
    })
    expect(service.lines().find(({ msg }) => msg === 'token of a workload exchanged')).toMatchObject({
      trust: 'site',
      subject: 'repo:acme/site:ref:refs/heads/main',
    })
  })

  test('a trust of the domain service may be limited to domains and records', async () => {
    await using service = await open()
    service.clock.ms = Date.now()
    service.other.clock.ms = Date.now()
    const records = [{ name: '_acme-challenge', types: ['TXT'] }]
    const trust = { ...wanted(), folders: undefined, domains: ['example.com'], records }
    await service.send('POST', '/api/trusts', trust, await service.tokenOf('adam'))

    const { body } = await exchange(service, await issuer.sign())

    const token = body.access_token
    const me = await service.other.call('/api/auth/me', { token })
    expect(me.body).toMatchObject({ user: { domains: ['example.com'] } })
    expect((await service.other.call('/edit', { method: 'PUT', token })).status).toBe(403)
  })

  test('each token is exchanged once, at whichever replica, in whatever spelling', async () => {
    await add()
    const [plain, withoutId] = [await issuer.sign(), await issuer.sign({ jti: undefined })]
    // By bits of the signature that base64url does not use.
    const respell = (token: string) => {
      const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
      return token.slice(0, -1) + digits.charAt(digits.indexOf(token.slice(-1)) ^ 1)
    }
    const sameId = await issuer.sign({ jti: `${readClaims(plain).jti}` }, { kid: 'ES256' })

    for (const token of [plain, withoutId]) expect((await exchange(service, token)).status).toBe(200)
    for (const token of [plain, withoutId, respell(plain), respell(withoutId), sameId])
      expect(await exchange(service.other, token)).toMatchObject(refused)
  })

  test('of two exchanges at once one succeeds', async () => {
    await add()
    const token = await issuer.sign()

    const answers = await Promise.all([service, service.other, service].map((at) => exchange(at, token)))

    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400])
  })

  test('removing a trust ends its tokens at once, everywhere, also for what waits', async () => {
    const { body: trust } = await add()
    const { body } = await exchange(service, await issuer.sign())
    const caller = await service.other.call('/view', { token: body.access_token })
    expect(caller.status).toBe(200)
    expect(await service.findCaller(caller.body.id)).toMatchObject({ role: 'editor' })

    expect((await service.send('DELETE', `/api/trusts/${trust.id}`, undefined, admin)).status).toBe(204)

    expect((await service.other.call('/view', { token: body.access_token })).status).toBe(401)
    expect(await service.findCaller(caller.body.id)).toBeUndefined()
    expect(await exchange(service, await issuer.sign())).toMatchObject(refused)
    const again = await service.send('DELETE', `/api/trusts/${trust.id}`, undefined, admin)
    expect(again).toMatchObject({ status: 404, code: 'trust_not_found' })
  })

  test('a workload makes neither tokens nor users nor trusts, and its token ends in 15 minutes', async () => {
    await add({ role: 'admin', folders: undefined })
    const { body } = await exchange(service, await issuer.sign())
    const send = (path: string, json: object) => service.send('POST', path, json, body.access_token)

    const refusals = [
      await send('/api/tokens', { name: 'mine' }),
      await send('/api/users', { username: 'mine', role: 'viewer' }),
      await send('/api/trusts', { ...wanted(), name: 'mine' }),
    ]

    expect(refusals.map(({ status }) => status)).toEqual([403, 403, 403])
    expect(readClaims(body.access_token).exp - readClaims(body.access_token).iat).toBe(900)
  })

  test('an admin with limits manages no trusts', async () => {
    const { body } = await add()
    const limited = await makeUser('lara', { role: 'admin', folders: ['site/'] })
    await service.users.update((users) => [...users, limited])
    const token = await service.tokenOf('lara')

    const refusals = [
      await service.send('GET', '/api/trusts', undefined, token),
      await service.send('POST', '/api/trusts', { ...wanted(), name: 'mine' }, token),
      await service.send('DELETE', `/api/trusts/${body.id}`, undefined, token),
    ]

    expect(refusals.map(({ status }) => status)).toEqual([403, 403, 403])
    const { body: left } = await service.send('GET', '/api/trusts', undefined, admin)
    expect(left.pagination.total_items).toBe(1)
    await service.users.update((users) => users.filter(({ username }) => username !== 'lara'))
  })

  test('trusts have unique names and are listed for admins', async () => {
    await add()

    expect(await add()).toMatchObject({ status: 409, code: 'trust_exists' })
    const { body } = await service.send('GET', '/api/trusts', undefined, admin)
    expect(body).toMatchObject({
      trusts: [{ ...wanted(), id: expect.any(String) }],
      pagination: { total_items: 1 },
    })
    const editor = await service.tokenOf('edda')
    for (const [method, path, sent] of [
      ['GET', '/api/trusts'],
      ['POST', '/api/trusts', { ...wanted(), name: 'mine' }],
      ['DELETE', '/api/trusts/none'],
    ] as const)
      expect((await service.send(method, path, sent, editor)).status).toBe(403)
  })
})

describe('a service that trusts', () => {
  let service: Service
  beforeAll(async () => {
    service = await start({ audience })
    service.clock.ms = Date.now()
    const admin = await service.tokenOf('adam')
    await service.send('POST', '/api/trusts', wanted(), admin)
  })
  afterAll(() => service[Symbol.asyncDispose]())

  const now = () => Math.floor(Date.now() / 1000)
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

  test.each(['RS256', 'ES256', 'EdDSA'])('accepts a token that is signed with %s', async (kid) => {
    expect((await exchange(service, await issuer.sign({}, { kid }))).status).toBe(200)
  })

  const wrong: [string, () => Promise<string> | string][] = [
    ['is not signed', async () => `${encode({ alg: 'none' })}.${encode(readClaims(await issuer.sign()))}.`],
    [
      'is signed with the public key as a secret',
      async () => {
        const [jwk] = issuer.published
        const key = createPublicKey({ key: { ...jwk }, format: 'jwk' })
        const pem = key.export({ type: 'spki', format: 'pem' })
        const text = `${encode({ alg: 'HS256', kid: 'RS256' })}.${encode(readClaims(await issuer.sign()))}`
        return `${text}.${createHmac('sha256', pem).update(text).digest('base64url')}`
      },
    ],
    ['is signed with another algorithm', () => issuer.sign({}, { kid: 'PS256' })],
    ['is signed by another key', async () => issuer.sign({}, { key: (await generateKeyPair('RS256')).privateKey })],
    ['was changed', async () => forge(await issuer.sign(), { claims: { ref: 'refs/heads/other' } })],
    ['is for another audience', () => issuer.sign({ aud: 'https://other.test' })],
    ['is of an unknown issuer', () => issuer.sign({ iss: 'https://id.test' })],
    ['is of an issuer in another spelling', () => issuer.sign({ iss: `${issuer.url}/` })],
    ['is of another workload', () => issuer.sign({ repository: 'acme/site2' })],
    ['lacks the claim', () => issuer.sign({ repository: undefined })],
    ['has a list of claims', () => issuer.sign({ repository: ['acme/site'] })],
    ['has expired', () => issuer.sign({ exp: now() - 120 })],
    ['has no expiry', () => issuer.sign({ exp: undefined })],
    ['is not valid yet', () => issuer.sign({ nbf: now() + 120 })],
    ['was issued in the future', () => issuer.sign({ iat: now() + 120 })],
    ['has no subject', () => issuer.sign({ sub: undefined })],
    ['has a number as its subject', () => issuer.sign({ sub: 5 })],
    ['has a subject that no database can store', () => issuer.sign({ sub: 'a\0' })],
    ['is none', () => 'nonsense'],
    ['is a token of the service', () => service.tokenOf('adam')],
  ]

  test.each(wrong)('refuses a token that %s, and says why only in its log', async (_name, make) => {
    const token = await make()
    const { status, headers, body } = await exchange(service, token)

    expect([status, headers.get('content-type')]).toEqual([400, 'application/json; charset=utf-8'])
    expect(body).toEqual({ error: 'invalid_grant', error_description: expect.any(String) })
    expect(body.error_description).toBe('No trust admits this token, or it was used before: the log says why')
    const { reason } = service.lines().findLast(({ msg }) => msg === 'token of a workload refused') ?? {}
    expect(reason).toEqual(expect.any(String))
    expect(JSON.stringify(service.lines())).not.toContain(token.split('.')[2] || 'no such text')
  })

  test('clocks may differ by a minute', async () => {
    const at = Math.floor(service.clock.ms / 1000)
    const cases: [object, number][] = [
      [{ exp: at - 59 }, 200],
      [{ exp: at - 60 }, 400],
      [{ nbf: at + 60 }, 200],
      [{ nbf: at + 61 }, 400],
      [{ iat: at + 60 }, 200],
      [{ iat: at + 61 }, 400],
    ]
    const late = await issuer.sign({ exp: at - 30 })
    expect((await exchange(service, late)).status).toBe(200)
    expect(await exchange(service, late)).toMatchObject(refused)
    for (const [change, status] of cases)
      expect((await exchange(service, await issuer.sign({ ...change }))).status).toBe(status)
    expect((await exchange(service, await issuer.sign({ aud: ['a', 'https://files.test'] }))).status).toBe(200)
  })

  test('an unknown key is looked for once a minute', async () => {
    await exchange(service, await issuer.sign())
    await issuer.add('new', 'RS256')
    const before = issuer.fetches.length

    for (const _ of [1, 2, 3])
      expect(await exchange(service, await issuer.sign({}, { kid: 'new' }))).toMatchObject(refused)

    expect(issuer.fetches.length).toBe(before)
    expect(issuer.fetches.filter((path) => path === '/jwks').length).toBeGreaterThan(0)
  })

  const faults: [string, Record<string, string> | string[][], string][] = [
    ['another grant', { ...grant, subject_token: 'x', grant_type: 'password' }, 'unsupported_grant_type'],
    ['no grant', { subject_token: 'x' }, 'invalid_request'],
    ['no token', grant, 'invalid_request'],
    ['another type of token', { ...grant, subject_token: 'x', subject_token_type: 'y' }, 'invalid_request'],
    ['two tokens', [...Object.entries(grant), ['subject_token', 'x'], ['subject_token', 'y']], 'invalid_request'],
  ]

  test.each(faults)('refuses a form with %s', async (_name, fields, error) => {
    expect(await post(service, fields)).toMatchObject({ status: 400, body: { error } })
  })

  test('looks at each of thousands of equal parameters once: comparing all would block for a second', async () => {
    const compared = vi.spyOn(URLSearchParams.prototype, 'getAll')
    onTestFinished(() => compared.mockRestore())

    const answer = await post(service, Array<string[]>(5000).fill(['a', '']))

    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
    expect(compared).not.toHaveBeenCalled()
  })

  test('takes nothing but a form', async () => {
    expect((await service.send('POST', '/api/auth/token', grant)).status).toBe(415)
    expect((await post(service, { ...grant, subject_token: 'x'.repeat(20_000) })).status).toBe(413)
    const { paths } = Object((await service.send('GET', '/openapi.json')).body)
    const { responses } = paths['/api/auth/token'].post
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(['413', '415']))
  })

  test.each([
    ['no claims', { claims: {} }, '/claims'],
    ['no claim that names one workload', { claims: { ref: 'refs/heads/main' } }, '/claims'],
    ['an empty claim', { claims: { repository: '' } }, '/claims/repository'],
    ['an issuer over plain http', { issuer: 'http://id.test' }, '/issuer'],
    ['no audience', { audience: '' }, '/audience'],
    ['no role', { role: undefined }, '/role'],
    ['a limit of the other service', { domains: ['example.com'] }, '/domains'],
    ['a name with a space', { name: 'a b' }, '/name'],
  ])('refuses a trust with %s', async (_name, change, path) => {
    const admin = await service.tokenOf('adam')
    const { status, body } = await service.send('POST', '/api/trusts', { ...wanted(), ...change }, admin)

    expect([status, body.errors]).toEqual([400, [expect.objectContaining({ path })]])
  })
})

test('while an issuer is away, or its discovery is wrong, its tokens can be exchanged later', async () => {
  await using service = await start({ audience })
  service.clock.ms = Date.now()
  const away = await startIssuer()
  const token = await away.sign()
  const trust = { ...wanted(), issuer: away.url }
  await service.send('POST', '/api/trusts', trust, await service.tokenOf('adam'))
  const right = { ...away.metadata }
  const unprotected = right.jwks_uri.replace('127.0.0.1', '[::ffff:127.0.0.1]')
  for (const wrong of [{ issuer: issuer.url }, { jwks_uri: unprotected }]) {
    Object.assign(away.metadata, right, wrong)
    expect((await exchange(service, token)).status).toBe(503)
  }
  Object.assign(away.metadata, right)
  for (const path of ['/.well-known/openid-configuration', '/jwks']) {
    away.moved.add(path)
    expect((await exchange(service, token)).status).toBe(503)
    away.moved.clear()
  }
  await away[Symbol.asyncDispose]()

  const { status, headers, code } = await exchange(service, token)

  expect([status, headers.get('retry-after'), code]).toEqual([503, '10', 'unavailable'])
  const line = service.lines().findLast(({ msg }) => msg === 'request refused')
  expect(JSON.stringify(line)).toContain(away.url)
})

test('refused tokens are limited by the network of the client, right ones do not count', async () => {
  await using service = await start({ audience })
  service.clock.ms = Date.now()
  await service.send('POST', '/api/trusts', wanted(), await service.tokenOf('adam'))

  for (let count = 0; count < 119; count += 1) expect(await exchange(service, 'nonsense')).toMatchObject(refused)
  expect((await exchange(service, await issuer.sign())).status).toBe(200)
  expect(await exchange(service, 'nonsense')).toMatchObject(refused)
  const { status, code, headers } = await exchange(service, await issuer.sign())

  expect([status, code]).toEqual([429, 'too_many_requests'])
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await service.login('vera')).status).toBe(200)
})

test('an unknown key is looked for again after a minute; keys that an issuer has withdrawn no longer count after ten', async () => {
  await using service = await start({ audience })
  await using own = await startIssuer()
  const begun = Date.now()
  service.clock.ms = begun
  const trust = { ...wanted(), issuer: own.url }
  await service.send('POST', '/api/trusts', trust, await service.tokenOf('adam'))
  const exchangeAfter = async (ms: number, kid = 'RS256') => {
    vi.setSystemTime(begun + ms)
    service.clock.ms = begun + ms
    return exchange(service, await own.sign({}, { kid }))
  }

  vi.useFakeTimers({ toFake: ['Date'] })
  try {
    expect((await exchangeAfter(0)).status).toBe(200)
    const countFetches = () => own.fetches.filter((path) => path === '/jwks').length
    const fetches = countFetches()
    await own.add('late', 'RS256')
    expect(await exchangeAfter(59_000, 'late')).toMatchObject(refused)
    expect(countFetches()).toBe(fetches)
    expect((await exchangeAfter(61_000, 'late')).status).toBe(200)
    own.published.splice(0)
    expect((await exchangeAfter(590_000)).status).toBe(200)
    expect(countFetches()).toBe(fetches + 1)
    expect(await exchangeAfter(670_000)).toMatchObject(refused)
    expect(countFetches()).toBeGreaterThan(fetches + 1)
  } finally {
    vi.useRealTimers()
  }
})

test('a token for the audience of one trust gets nothing of another', async () => {
  await using service = await start({ audience })
  service.clock.ms = Date.now()
  const admin = await service.tokenOf('adam')
  const other = {
    name: 'other',
    audience: 'https://other.test',
    claims: { repository: 'acme/none' },
  }
  for (const trust of [wanted(), { ...wanted(), ...other }])
    expect((await service.send('POST', '/api/trusts', trust, admin)).status).toBe(201)

  const ofOther = await exchange(service, await issuer.sign({ aud: other.audience }))

  expect(ofOther).toMatchObject(refused)
  expect((await exchange(service, await issuer.sign())).status).toBe(200)
})

test('of several trusts the one with the most claims counts', async () => {
  await using service = await start({ audience })
  service.clock.ms = Date.now()
  const admin = await service.tokenOf('adam')
  const claims = { repository: 'acme/site', ref: 'refs/heads/main' }
  const less = { ...wanted(), name: 'branches', role: 'viewer' }
  await service.send('POST', '/api/trusts', less, admin)
  await service.send('POST', '/api/trusts', { ...wanted(), claims }, admin)

  const ofMain = await exchange(service, await issuer.sign())
  const ofBranch = await exchange(service, await issuer.sign({ ref: 'refs/heads/other' }))

  expect(readClaims(ofMain.body.access_token)).toMatchObject({ role: 'editor', sub: 'trust:site' })
  expect(readClaims(ofBranch.body.access_token)).toMatchObject({ role: 'viewer' })
})
