import { createHmac, createPublicKey } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { begin, listen, oidcConfig, type Place } from '../support/openid.ts'
import { start } from '../support/start.ts'

const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true })
const { privateKey: foreignKey } = await generateKeyPair('RS256')
const jwk = await exportJWK(publicKey)
const pem = createPublicKey({ key: { ...jwk }, format: 'jwk' }).export({
  type: 'spki',
  format: 'pem',
})

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const sign = (claims: JWTPayload, { key = privateKey, kid = 'known', alg = 'RS256' } = {}) =>
  new SignJWT(claims).setProtectedHeader({ alg, kid }).sign(key)
const unsigned = (claims: JWTPayload) => `${encode({ alg: 'none' })}.${encode(claims)}.`

/** HS256 with the public key of RS256 as the secret. */
function confused(claims: JWTPayload) {
  const text = `${encode({ alg: 'HS256', kid: 'known' })}.${encode(claims)}`
  return `${text}.${createHmac('sha256', pem).update(text).digest('base64url')}`
}

interface Answers {
  discovery: () => object | undefined
  userinfo: () => object
  idToken: () => Promise<string> | string
}

const answers: Answers = {
  discovery: () => undefined,
  userinfo: () => ({}),
  idToken: () => '',
}
/** The credentials of the last request for a token. */
let sent: { authorization: string | undefined; form: URLSearchParams }
let metadata: object
let server: Awaited<ReturnType<typeof listen>>
let service: Awaited<ReturnType<typeof start>>
beforeAll(async () => {
  server = await listen(async (request, response) => {
    const bodies: Record<string, () => unknown> = {
      '/.well-known/openid-configuration': answers.discovery,
      '/userinfo': () => answers.userinfo(),
      '/jwks': () => ({ keys: [{ ...jwk, kid: 'known', alg: 'RS256', use: 'sig' }] }),
      '/token': async () => ({
        access_token: 'x',
        token_type: 'Bearer',
        id_token: await answers.idToken(),
      }),
    }
    const form = new URLSearchParams(await text(request))
    if (request.url === '/token') sent = { authorization: request.headers.authorization, form }
    const body = await bodies[request.url ?? '']?.()
    response.writeHead(body ? 200 : 500, { 'content-type': 'application/json' })
    response.end(JSON.stringify(body ?? {}))
  })
  const { url } = server
  metadata = {
    issuer: url,
    authorization_endpoint: `${url}/auth`,
    token_endpoint: `${url}/token`,
    jwks_uri: `${url}/jwks`,
    id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none'],
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
  }
  service = await start({ oidc: oidcConfig(url) })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
})

/** Logs in with an ID token that is right but for `change`. */
async function logInWith(
  change: Record<string, unknown>,
  makeToken: (claims: JWTPayload) => Promise<string> | string = sign,
  { query = {}, at = service }: { query?: Record<string, string>; at?: Place } = {},
) {
  answers.discovery = () => metadata
  const { browse, provider } = await begin(at)
  const asked = new URL(provider).searchParams
  const iat = Math.floor(Date.now() / 1000)
  const claims = {
    iss: server.url,
    aud: 'service',
    sub: 'm1',
    iat,
    exp: iat + 300,
    nonce: asked.get('nonce'),
    preferred_username: 'mallory',
    groups: ['ops'],
    ...change,
  }
  answers.idToken = () => makeToken(claims)
  const parameters = new URLSearchParams({ code: 'x', state: asked.get('state') ?? '', ...query })
  return (await browse(`${at.url}/api/auth/oidc/callback?${parameters}`)).response
}

test('a failed discovery is repeated at the next login', async () => {
  answers.discovery = () => undefined
  expect((await begin(service)).response.status).toBe(503)

  expect((await logInWith({})).status).toBe(302)
  answers.discovery = () => undefined
  expect((await begin(service)).response.status).toBe(302) // What was discovered is cached.
})

test('name and groups are those of the ID token, and what it lacks is from userinfo', async () => {
  metadata = { ...metadata, userinfo_endpoint: `${server.url}/userinfo` }
  const oidc = { ...oidcConfig(server.url), usernameClaim: 'nickname', groupsClaim: 'teams' }
  await using at = await start({ oidc })
  answers.userinfo = () => ({ sub: 'u1', nickname: 'other', teams: ['staff'] })

  const response = await logInWith({ sub: 'u1', nickname: 'uma' }, sign, { at })

  expect(response.status).toBe(302)
  expect(await at.users.find('oidc:uma')).toMatchObject({ role: 'viewer' })
})

const now = Math.floor(Date.now() / 1000)
const cases: [string, Record<string, unknown>, ((claims: JWTPayload) => Promise<string> | string)?][] = [
  ['is not signed', {}, unsigned],
  ['is signed with the public key as a secret', {}, confused],
  ['is signed by another key', {}, (claims) => sign(claims, { key: foreignKey })],
  ['names an unknown key', {}, (claims) => sign(claims, { kid: 'unknown' })],
  ['is for another client', { aud: 'another' }],
  ['is for several clients, and names another one', { aud: ['service', 'b'], azp: 'b' }],
  ['is of another issuer', { iss: 'https://id.test' }],
  ['has another nonce', { nonce: 'of another login' }],
  ['has no nonce', { nonce: undefined }],
  ['has expired', { iat: now - 900, exp: now - 600 }],
  ['has no expiry', { exp: undefined }],
  ['has no subject', { sub: undefined }],
]

test.each(cases)('an ID token that %s is refused', async (_name, change, makeToken) => {
  const response = await logInWith(change, makeToken)

  expect(response.status).toBe(403)
  expect(await response.json()).toMatchObject({ code: 'not_allowed' })
})

test.each([
  [undefined, 'Basic'],
  [['client_secret_basic', 'client_secret_post'], 'Basic'],
  [['client_secret_post'], undefined],
])('a provider with the methods %j gets the client secret by %s, else in the form', async (methods, scheme) => {
  const before = metadata
  metadata = { ...before, token_endpoint_auth_methods_supported: methods }
  await using at = await start({ oidc: oidcConfig(server.url) })

  const { status } = await logInWith({}, sign, { at })
  metadata = before

  const secret = sent.form.get('client_secret')
  expect([status, sent.authorization?.split(' ')[0]]).toEqual([302, scheme])
  expect(secret).toBe(scheme ? null : 'the secret of the client')
})

test('an ID token of an earlier login is refused', async () => {
  let earlier = ''
  await logInWith({}, async (claims) => {
    earlier = await sign(claims)
    return earlier
  })

  expect((await logInWith({}, () => earlier)).status).toBe(403)
})

test('a provider that refuses, and a response of another provider, log nobody in', async () => {
  const refused = await logInWith({}, sign, { query: { error: 'access_denied' } })
  const mixedUp = await logInWith({}, sign, { query: { iss: 'https://id.test' } })

  expect([refused.status, mixedUp.status]).toEqual([403, 403])
})

test('an address that is not verified is no name', async () => {
  const oidc = { ...oidcConfig(server.url), usernameClaim: 'email' }
  await using at = await start({ oidc })
  const logInAs = (email_verified: boolean) =>
    logInWith({ sub: `${email_verified}`, email: 'boss@example.com', email_verified }, sign, { at })

  expect((await logInAs(false)).status).toBe(403)
  expect((await logInAs(true)).status).toBe(302)
})

test('logins and callbacks are limited by the network of the client: each callback is a request to the provider', async () => {
  await using at = await start({ oidc: oidcConfig(server.url), trustProxy: true })
  answers.discovery = () => metadata
  const from = (client: string, path: string) =>
    at.call(path, { redirect: 'manual', headers: { 'x-forwarded-for': client } })
  const callback = '/api/auth/oidc/callback?code=x&state=y'
  const json = { code: 'x', verifier: 'v'.repeat(43) }
  const redeem = () => at.send('POST', '/api/auth/oidc/token', json)

  const statuses = new Set<number>()
  for (let count = 0; count < 300; count += 1) statuses.add((await from('192.0.2.1', callback)).status)
  for (let count = 0; count < 300; count += 1) statuses.add((await redeem()).status)

  expect(statuses).toEqual(new Set([400, 401]))
  expect(await from('192.0.2.1', callback)).toMatchObject({
    status: 429,
    code: 'too_many_requests',
  })
  const query = new URLSearchParams({ return_to: 'http://127.0.0.1:1/', challenge: 'c'.repeat(43) })
  expect((await from('192.0.2.1', `/api/auth/oidc/login?${query}`)).status).toBe(429)
  expect((await redeem()).status).toBe(429)
  expect((await from('192.0.2.2', `/api/auth/oidc/login?${query}`)).status).toBe(302)
})
