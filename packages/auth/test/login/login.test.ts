import { expect, test } from 'vitest'
import { hashPassword, verifyPassword } from '../../src/login/password.ts'
import { start, writeUsers } from '../support/start.ts'

const post = (body: unknown, headers = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
})

test('a login returns the account and a token', async () => {
  await using service = await start()

  const answer = await service.login('edda')

  expect(answer.status).toBe(200)
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(answer.body).toEqual({
    user: { username: 'edda', role: 'editor' },
    access_token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
    token_type: 'Bearer',
    expires_in: 3600,
  })
})

test('the login names the domains that a user is limited to', async () => {
  await using service = await start()

  const answer = await service.login('vera')

  expect(answer.body.user).toEqual({
    username: 'vera',
    role: 'viewer',
    domains: ['example.com', '*.co.uk'],
  })
})

test('/me says who is calling and until when', async () => {
  await using service = await start()

  const answer = await service.call('/api/auth/me', { token: await service.tokenOf('adam') })

  expect(answer).toMatchObject({
    status: 200,
    body: { user: { username: 'adam', role: 'admin' }, expires_at: '2026-11-20T20:20:00.000Z' },
  })
  expect(answer.headers.get('cache-control')).toBe('no-store')
})

test('/me without a token is unauthorized', async () => {
  await using service = await start()

  const answer = await service.call('/api/auth/me')

  expect(answer).toMatchObject({ status: 401, code: 'unauthorized' })
})

test.each([
  ['nothing', undefined],
  ['no password', { username: 'adam' }],
  ['an empty username', { username: '', password: 'x' }],
  ['an empty password', { username: 'adam', password: '' }],
  ['a username of 65 characters', { username: 'a'.repeat(65), password: 'x' }],
  ['a password of 1025 characters', { username: 'adam', password: 'x'.repeat(1025) }],
  ['a password that is a number', { username: 'adam', password: 12_345_678 }],
  ['an unknown field', { username: 'adam', password: "adam's words", otp: '1' }],
])('a login with %s is not valid', async (_name, body) => {
  await using service = await start()

  const answer = await service.call('/api/auth/login', post(body ?? {}))

  expect(answer).toMatchObject({ status: 400, code: 'validation_failed' })
})

test('a wrong password and an unknown user get the same response', async () => {
  await using service = await start()

  const wrong = await service.login('adam', 'not it')
  const unknown = await service.login('nobody', 'not it')

  const told = ({ status, body, headers }: typeof wrong) => ({
    status,
    body: { ...body, request_id: '' },
    headers: [...headers].filter(([name]) => name !== 'date' && name !== 'x-request-id'),
  })
  expect(wrong).toMatchObject({ status: 401, code: 'invalid_credentials' })
  expect(told(unknown)).toEqual(told(wrong))
  expect(wrong.headers.get('www-authenticate')).toBe('Bearer realm="domains-and-files"')
  expect(wrong.headers.get('cache-control')).toBe('no-store')
})

test('an unknown user costs one hash with the parameters of a known one', async () => {
  const hashed: string[] = []
  const verify = (phc: string, password: string) => {
    hashed.push(phc.slice(0, phc.lastIndexOf(',p=')))
    return verifyPassword(phc, password)
  }
  await using service = await start({ verify })

  await service.login('adam', 'not it')
  await service.login('nobody', 'not it')

  expect(hashed).toEqual(['$argon2id$v=19$m=8,t=1', '$argon2id$v=19$m=8,t=1'])
})

test.each(['Adam', 'ADAM', ' adam', 'adam ', '__proto__', 'constructor', 'a\0dam'])(
  'the username %j is not adam',
  async (username) => {
    await using service = await start()

    const answer = await service.login(username, "adam's words")

    expect(answer).toMatchObject({ status: 401, code: 'invalid_credentials' })
  },
)

test('a name and a password are the same in every Unicode spelling', async () => {
  await using service = await start()
  const [vera] = service.people
  const password = await hashPassword('g\u00fcn\u00fc g\u00fcn')
  await writeUsers(service.file, [{ ...vera, username: 'J\u00f6rg', password }])

  const answer = await service.login('Jo\u0308rg', 'gu\u0308nu\u0308 gu\u0308n')

  expect(answer).toMatchObject({ status: 200, body: { user: { username: 'J\u00f6rg' } } })
})
