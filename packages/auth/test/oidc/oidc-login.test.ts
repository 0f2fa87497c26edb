import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { begin, challengeOf, logIn, oidcConfig, returnTo, startProvider, startSignOn } from '../support/openid.ts'
import { forms, start } from '../support/start.ts'

const accounts = {
  a1: { name: 'alice', groups: ['shop', 'staff'] },
  b1: { name: 'bob', groups: ['ops'] },
  d1: { name: 'dora', groups: ['web'] },
}

describe.each(forms)('single sign-on with users in %s', (_name, open) => {
  let at: Awaited<ReturnType<typeof startSignOn>>
  beforeAll(async () => {
    at = await startSignOn(open, accounts)
  })
  afterAll(() => at[Symbol.asyncDispose]())
  beforeEach(() => at.service.users.update(() => at.service.people))

  test('a login at the provider gives a token with the rights of the groups, at any replica', async () => {
    const { location = '', code, verifier } = await logIn(at.service, 'a1', at.service.other)
    const { status, headers, body } = await at.redeem(code, verifier)

    const back = new URL(location)
    back.searchParams.delete('code')
    expect(back.href).toBe(returnTo)
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('no-store')
    const user = {
      username: 'oidc:alice',
      role: 'editor',
      domains: ['example.com'],
      source: 'oidc',
    }
    expect(body).toMatchObject({ user, token_type: 'Bearer', expires_in: 3600 })
    expect(await at.me(body.access_token)).toMatchObject({ user })
  })

  test('a browser brings its client a code for the error of a failed login', async () => {
    const { status, location, code, verifier } = await logIn(at.service, 'd1', at.service, 'text/html')

    expect([status, location?.startsWith(returnTo)]).toEqual([302, true])
    expect(await at.redeem(code, verifier)).toMatchObject({ status: 403, code: 'not_allowed' })
    expect(await at.redeem(code, verifier)).toMatchObject({ status: 401 })
  })

  test('a code counts once, for 60 seconds, and only with its verifier', async () => {
    const used = await logIn(at.service, 'b1')
    const stolen = await logIn(at.service, 'b1')
    const [inTime, late] = [await logIn(at.service, 'b1'), await logIn(at.service, 'b1')]

    expect((await at.redeem(used.code, used.verifier)).status).toBe(200)
    expect((await at.redeem(used.code, used.verifier, at.service)).code).toBe('invalid_credentials')
    expect((await at.redeem(stolen.code, used.verifier)).code).toBe('invalid_credentials')
    expect((await at.redeem(stolen.code, stolen.verifier)).code).toBe('invalid_credentials')
    at.service.clock.ms += 59_999
    at.service.other.clock.ms = at.service.clock.ms
    expect((await at.redeem(inTime.code, inTime.verifier)).status).toBe(200)
    at.service.clock.ms += 1
    at.service.other.clock.ms = at.service.clock.ms
    expect((await at.redeem(late.code, late.verifier)).code).toBe('invalid_credentials')
  })

  test('a callback needs the cookie of its login, for ten minutes', async () => {
    const done = await logIn(at.service, 'b1')
    const { browse } = await begin(at.service)

    const ofOther = await browse(done.callback)
    expect(ofOther.response.status).toBe(400)
    expect(await ofOther.response.json()).toMatchObject({ code: 'login_not_begun' })
    const again = await done.browse(done.callback)
    expect(again.response.status).toBe(400)
    const late = await begin(at.service)
    at.service.clock.ms += 600_000
    const state = new URL(late.provider).searchParams.get('state')
    const { response } = await late.browse(`${at.service.url}/api/auth/oidc/callback?code=x&state=${state}`)
    expect(response.status).toBe(400)
  })

  test('the cookie of one login does not serve another one', async () => {
    const [own, planted] = [await begin(at.service), await begin(at.service)]
    const [, value = ''] = planted.response.headers.get('set-cookie')?.split(/[=;]/) ?? []
    const state = new URL(own.provider).searchParams.get('state')
    const renamed = await fetch(`${at.service.url}/api/auth/oidc/callback?code=x&state=${state}`, {
      headers: { cookie: `sso_${state}=${value}` },
    })
    expect(await renamed.json()).toMatchObject({ code: 'login_not_begun' })
  })

  test('logging out ends a session', async () => {
    const { body } = await at.signOn('b1')

    await at.service.send('POST', '/api/auth/logout', undefined, body.access_token)

    expect((await at.service.other.call('/view', { token: body.access_token })).status).toBe(401)
  })

  test.each([
    ['no address', 'somewhere'],
    ['another origin', 'https://evil.test/'],
    ['an origin that begins like an allowed one', 'https://console.test.evil.test/'],
    ['localhost', 'http://localhost:49152/'],
    ['loopback without a port', 'http://127.0.0.1/'],
    ['loopback in https', 'https://127.0.0.1:49152/'],
    ['user information', 'http://127.0.0.1:1@evil.test/'],
    ['user information at an allowed origin', 'https://evil@console.test/'],
    ['a program', 'javascript:alert(1)'],
    ['an object of an allowed origin', 'blob:https://console.test/1'],
  ])('a login does not return to %s', async (_name, to) => {
    const query = new URLSearchParams({ return_to: to, challenge: challengeOf('x') })

    expect(await at.service.call(`/api/auth/oidc/login?${query}`)).toMatchObject({
      status: 400,
      code: 'validation_failed',
      body: { errors: [{ path: '/query/return_to' }] },
    })
  })

  test.each([{}, { challenge: 'plain' }])('no login begins with %j as its challenge', async (sent) => {
    const query = new URLSearchParams({ return_to: 'https://console.test/', ...sent })

    expect(await at.service.call(`/api/auth/oidc/login?${query}`)).toMatchObject({
      status: 400,
      code: 'validation_failed',
      body: { errors: [{ path: '/query/challenge' }] },
    })
  })

  test.each(['https://console.test/', 'https://console.test/a?b=c', 'http://[::1]:49152/'])(
    'a login returns to %s',
    async (to) => {
      const query = new URLSearchParams({ return_to: to, challenge: challengeOf('x') })
      const response = await fetch(`${at.service.url}/api/auth/oidc/login?${query}`, {
        redirect: 'manual',
      })

      expect(response.status).toBe(302)
      expect(response.headers.get('location')).toContain(at.provider.url)
      expect(response.headers.get('set-cookie')).toMatch(
        /^sso_[\w-]{43}=[^;]+; Path=\/base\/api\/auth\/oidc; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/,
      )
    },
  )

  test('neither codes nor cookies are in the log', async () => {
    const { code, callback } = await logIn(at.service, 'b1')

    const log = JSON.stringify(at.service.lines())

    expect(log).toContain('/api/auth/oidc/callback')
    for (const secret of [code, new URL(callback).searchParams.get('code') ?? '']) expect(log).not.toContain(secret)
  })
})

test('a provider that is away stops no start and no password login', async () => {
  const provider = await startProvider(accounts)
  const issuer = provider.url
  await provider[Symbol.asyncDispose]()
  await using service = await start({ oidc: oidcConfig(issuer) })

  const { response } = await begin(service)

  expect(response.status).toBe(503)
  expect(response.headers.get('retry-after')).toBe('10')
  const { verifier, provider: back } = await begin(service, 'text/html')
  const code = new URL(back).searchParams.get('code')
  const redeemed = await service.send('POST', '/api/auth/oidc/token', { code, verifier })
  expect(redeemed).toMatchObject({ status: 503, code: 'unavailable' })
  expect((await service.login('vera')).status).toBe(200)
})

test('passwords can be switched off, and the ways to log in are told', async () => {
  await using provider = await startProvider(accounts)
  await using service = await start({ oidc: oidcConfig(provider.url), passwordLogin: false })

  expect(await service.login('vera')).toMatchObject({ status: 403, code: 'password_login_off' })
  const invited = { username: 'vera', invite: 'x', new: 'words of an invited person' }
  expect(await service.send('POST', '/api/auth/password', invited)).toMatchObject({
    status: 403,
    code: 'password_login_off',
  })
  expect((await service.call('/api/auth/methods')).body).toEqual({
    password: false,
    oidc: { name: 'Test ID' },
  })
  expect((await logIn(service, 'b1')).status).toBe(302)
})

test('without a provider there is no single sign-on', async () => {
  await using service = await start()
  const query = new URLSearchParams({ return_to: returnTo, challenge: challengeOf('x') })

  expect((await service.call(`/api/auth/oidc/login?${query}`)).status).toBe(404)
  expect((await service.call('/api/auth/oidc/callback?code=x&state=y')).status).toBe(404)
  expect((await service.call('/api/auth/methods')).body).toEqual({ password: true, oidc: null })
})
