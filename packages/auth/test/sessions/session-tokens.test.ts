import { expect, test } from 'vitest'
import { hashPassword } from '../../src/login/password.ts'
import { forge, makeUser, readClaims, secret, start, weak, writeUsers } from '../support/start.ts'

const realm = 'Bearer realm="domains-and-files"'
const base64url = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const invalid = `${realm}, error="invalid_token", error_description="The token is not valid here"`

test.each([
  ['alg none, unsigned', (token) => `${forge(token, { header: { alg: 'none' } }).replace(/[^.]+$/, '')}`],
  ['alg none, signed', (token) => forge(token, { header: { alg: 'none' } })],
  ['alg nOnE, signed', (token) => forge(token, { header: { alg: 'nOnE' } })],
  ['no signature', (token) => token.replace(/[^.]+$/, '')],
  ['two parts', (token) => token.replace(/\.[^.]+$/, '')],
  ['four parts', (token) => `${token}.${token}`],
  ['HS512 with the right key', (token) => forge(token, { header: { alg: 'HS512' }, hash: 'sha512' })],
  ['HS384 with the right key', (token) => forge(token, { header: { alg: 'HS384' }, hash: 'sha384' })],
  ['RS256 over an HMAC', (token) => forge(token, { header: { alg: 'RS256' } })],
  ['no alg', (token) => forge(token, { header: { alg: undefined } })],
  ['another typ', (token) => forge(token, { header: { typ: 'at+jwt' } })],
  ['an unknown critical header', (token) => forge(token, { header: { crit: ['b64'], b64: false } })],
  ['another key', (token) => forge(token, { key: 'another secret of 32 bytes or more' })],
  [
    'another spelling of its signature',
    (token) => token.replace(/.$/, (last) => base64url[base64url.indexOf(last) ^ 1] ?? ''),
  ],
  ['a letter outside ASCII in its signature', (token) => token.replace(/.$/, '\u00e9')],
  ['an empty key', (token) => forge(token, { key: '' })],
  [
    'its own key in the header',
    (token) => forge(token, { header: { jwk: { kty: 'oct', k: 'AAAA' }, kid: '/dev/null' }, key: '\0\0\0' }),
  ],
  ['another audience', (token) => forge(token, { claims: { aud: 'other-service' } })],
  ['no audience', (token) => forge(token, { claims: { aud: undefined } })],
  ['another issuer', (token) => forge(token, { claims: { iss: 'https://evil.example' } })],
  ['no issuer', (token) => forge(token, { claims: { iss: undefined } })],
  ['no exp', (token) => forge(token, { claims: { exp: undefined } })],
  ['an exp of text', (token) => forge(token, { claims: { exp: '9999999999' } })],
  ['an exp past all dates', (token) => forge(token, { claims: { exp: 1e18 } })],
  ['an nbf to come', (token) => forge(token, { claims: { nbf: readClaims(token).iat + 10 } })],
  ['an nbf of text', (token) => forge(token, { claims: { nbf: 'now' } })],
  ['no id', (token) => forge(token, { claims: { jti: undefined } })],
  ['no sub', (token) => forge(token, { claims: { sub: undefined } })],
  ['a sub that is no text', (token) => forge(token, { claims: { sub: ['adam'] } })],
  ['the sub of nobody', (token) => forge(token, { claims: { sub: 'nobody' } })],
  ['the sub __proto__', (token) => forge(token, { claims: { sub: '__proto__' } })],
  ['the sub of another user', (token) => forge(token, { claims: { sub: 'adam' } })],
  ['no fingerprint', (token) => forge(token, { claims: { pwd: undefined } })],
  ['an empty fingerprint', (token) => forge(token, { claims: { pwd: '' } })],
  ['expired, with another key', (token) => forge(token, { claims: { exp: 1 }, key: 'x' })],
  ['more than 8 KiB', (token) => forge(token, { claims: { more: 'x'.repeat(8000) } })],
  ['no JSON inside', () => 'YQ.YQ.YQ'],
  ['no base64', () => '*.*.*'],
] satisfies [string, (token: string) => string][])('a token with %s is refused', async (_name, change) => {
  await using service = await start()
  const token = change(await service.tokenOf('vera'))

  const answer = await service.call('/view', { token })

  expect(answer).toMatchObject({ status: 401, code: 'unauthorized' })
  expect(answer.headers.get('www-authenticate')).toBe(invalid)
})

test.each([
  ['nothing else', {}],
  ['a kid, a jku and an x5u', { header: { kid: '../../x', jku: 'http://127.0.0.1:1', x5u: 'x' } }],
  ['claims that we do not know', { claims: { scope: 'all' } }],
  ['a higher role, which is not read', { claims: { role: 'admin' } }],
])('a token that is signed rightly with %s is taken, as a viewer', async (_name, forgery) => {
  await using service = await start()
  const token = forge(await service.tokenOf('vera'), forgery)

  const answer = await service.call('/view', { token })

  expect(answer).toMatchObject({ status: 200, body: { role: 'viewer' } })
})

test('the claims are those of the contract and a fingerprint', async () => {
  await using service = await start()

  const claims = readClaims(await service.tokenOf('edda'))

  const iat = Date.parse('2026-11-20T19:20:00Z') / 1000
  expect(claims).toEqual({
    sub: 'edda',
    role: 'editor',
    iat,
    exp: iat + 3600,
    iss: 'domains-and-files',
    aud: 'domain-service',
    jti: expect.stringMatching(/^[\w-]{16}$/),
    pwd: expect.stringMatching(/^[\w-]{22}$/),
  })
})

test('a token expires at its second', async () => {
  await using service = await start()
  const token = await service.tokenOf('vera')

  service.clock.ms = Date.parse('2026-11-20T20:19:59.999Z')
  const before = await service.call('/view', { token })
  service.clock.ms = Date.parse('2026-11-20T20:20:00.000Z')
  const after = await service.call('/view', { token })

  expect(before.status).toBe(200)
  expect(after).toMatchObject({ status: 401, code: 'token_expired' })
  expect(after.headers.get('www-authenticate')).toBe(
    `${realm}, error="invalid_token", error_description="The token has expired"`,
  )
})

test('a token of another service is refused though the secret is the same', async () => {
  await using one = await start({ audience: 'domain-service' })
  await using other = await start({ audience: 'static-service' })

  const answer = await other.call('/view', { token: await one.tokenOf('vera') })

  expect(answer).toMatchObject({ status: 401, code: 'unauthorized' })
})

test('the token of a removed user stops working at once', async () => {
  await using service = await start()
  const token = await service.tokenOf('vera')
  const [, ...others] = service.people

  await writeUsers(service.file, others)
  const answer = await service.call('/view', { token })

  expect(answer).toMatchObject({ status: 401, code: 'unauthorized' })
})

test('a user who was removed and made again gets no old token back', async () => {
  await using service = await start()
  const token = await service.tokenOf('vera')

  await writeUsers(service.file, [await makeUser('vera')])
  const answer = await service.call('/view', { token })

  expect(answer).toMatchObject({ status: 401, code: 'unauthorized' })
})

test('a changed password ends the tokens of that user, and of no other', async () => {
  await using service = await start()
  const [vera, edda] = [await service.tokenOf('vera'), await service.tokenOf('edda')]
  const password = await hashPassword('other words', weak)

  const people = service.people.map((user) => (user.username === 'vera' ? { ...user, password } : user))
  await writeUsers(service.file, people)
  const answers = [await service.call('/view', { token: vera }), await service.call('/view', { token: edda })]

  expect(answers.map(({ status }) => status)).toEqual([401, 200])
})

test('a new role counts at once, up and down, without a new token', async () => {
  await using service = await start()
  const token = await service.tokenOf('edda')
  const ask = async (role: string) => {
    await writeUsers(
      service.file,
      service.people.map((user) => (user.username === 'edda' ? { ...user, role } : user)),
    )
    return (await service.call('/edit', { token, method: 'PUT' })).status
  }

  const statuses = [await ask('viewer'), await ask('editor'), await ask('viewer'), await ask('admin')]

  expect(statuses).toEqual([403, 200, 403, 200])
})

test('tokens of the previous secret are accepted, until the password changes; new ones have the new secret', async () => {
  await using old = await start()
  const next = { jwtSecret: 'another secret of the tests, 32 bytes', usersFile: old.file }
  await using rotated = await start({ ...next, jwtSecretPrevious: secret })
  await using finished = await start(next)
  const [before, after] = [await old.tokenOf('vera'), await rotated.tokenOf('vera')]

  const view = async (service: typeof old, token: string) => (await service.call('/view', { token })).status
  expect([await view(rotated, before), await view(rotated, after)]).toEqual([200, 200])
  expect([await view(finished, before), await view(finished, after)]).toEqual([401, 200])
  expect(await view(old, after)).toBe(401)
  await writeUsers(old.file, [{ ...old.people[0], password: await hashPassword('new words', weak) }])
  expect([await view(rotated, before), await view(rotated, after)]).toEqual([401, 401])
})
