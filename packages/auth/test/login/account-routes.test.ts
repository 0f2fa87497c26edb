import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { verifyPassword } from '../../src/login/password.ts'
import { forms, makeUser, start } from '../support/start.ts'

const words = 'correct horse battery'

describe.each(forms)('accounts in %s', (_name, begin) => {
  let service: Awaited<ReturnType<typeof begin>>
  beforeAll(async () => {
    service = await begin()
  })
  afterAll(() => service[Symbol.asyncDispose]())
  beforeEach(() => service.users.update(() => service.people))

  const changePassword = (token: string | undefined, body: object) =>
    service.send('POST', '/api/auth/password', body, token)
  const statusOf = async (token: string, at = service.other) => (await at.call('/view', { token })).status

  test('a changed password counts at once; other logins end, this one stays, everywhere', async () => {
    const [here, elsewhere] = [await service.tokenOf('vera'), await service.tokenOf('vera')]
    const { token } = await service.createToken('vera')
    const edda = await service.tokenOf('edda')

    const changed = await changePassword(here, { current: "vera's words", new: words })

    expect(changed.status).toBe(204)
    expect([await statusOf(here), await statusOf(elsewhere)]).toEqual([200, 401])
    expect([await statusOf(here, service), await statusOf(elsewhere, service)]).toEqual([200, 401])
    expect([await statusOf(token), await statusOf(edda)]).toEqual([200, 200])
    expect((await service.other.login('vera')).code).toBe('invalid_credentials')
    expect((await service.other.login('vera', words)).status).toBe(200)
  })

  test('the login that stayed ends with the next change by another', async () => {
    const here = await service.tokenOf('vera')
    await changePassword(here, { current: "vera's words", new: words })
    const elsewhere = (await service.login('vera', words)).body.access_token

    await changePassword(elsewhere, { current: words, new: `${words} staple` })

    expect([await statusOf(here), await statusOf(elsewhere)]).toEqual([401, 200])
  })

  test('a wrong current password is 401 and changes nothing', async () => {
    const token = await service.tokenOf('vera')

    const refused = await changePassword(token, { current: 'not it', new: words })

    expect(refused).toMatchObject({ status: 401, code: 'invalid_credentials' })
    expect((await service.login('vera')).status).toBe(200)
  })

  test('wrong current passwords are limited like logins', async () => {
    await service.users.update((users) => [...users, victim])
    const token = await service.tokenOf('victim')

    const statuses: number[] = []
    for (let count = 0; count < 11; count += 1)
      statuses.push((await changePassword(token, { current: 'not it', new: words })).status)

    expect(statuses).toEqual([...Array(10).fill(401), 429])
    expect((await service.login('victim')).status).toBe(429)
  })

  test.each([
    ['nine signs', 'nine.sign'],
    ['the username in capitals', 'VERA-OF-EXAMPLE'],
    ['a common password', 'qwertyuiop'],
    ['a common password in capitals', 'Password123'],
    ['the last of the 10,000 most common ones that has ten signs', 'greedisgood'],
  ])('%s is a weak password', async (_what, weak) => {
    await service.users.update((users) => [...users, { ...victim, username: 'Vera-of-Example' }])
    const token = (await service.login('Vera-of-Example', "victim's words")).body.access_token

    const refused = await changePassword(token, { current: "victim's words", new: weak })

    expect(refused).toMatchObject({ status: 400, code: 'weak_password' })
  })

  test.each([
    [{ new: words }],
    [{ current: 'x' }],
    [{ username: 'vera', new: words }],
    [{ username: 'vera', invite: 'x', current: 'x', new: words }],
    [{ current: 'x', new: words, again: words }],
  ])('%j is not valid', async (body) => {
    const answer = await changePassword(await service.tokenOf('vera'), body)

    expect(answer).toMatchObject({ status: 400, code: 'validation_failed' })
  })

  test('without a login nobody changes a password, nor with an API token', async () => {
    const { token } = await service.createToken('adam', { role: 'admin' })
    const body = { current: "adam's words", new: words }

    const answers = [await changePassword(undefined, body), await changePassword(token, body)]

    expect(answers.map(({ code }) => code)).toEqual(['unauthorized', 'forbidden'])
  })

  test('logging out ends this token at once at every replica, and no other', async () => {
    const [here, elsewhere] = [await service.tokenOf('vera'), await service.tokenOf('vera')]

    const answer = await service.send('POST', '/api/auth/logout', undefined, here)

    expect(answer.status).toBe(204)
    expect([await statusOf(here), await statusOf(here, service)]).toEqual([401, 401])
    expect(await statusOf(elsewhere)).toBe(200)
  })

  test('logging out everywhere ends all logins of this user, and nothing else', async () => {
    const [here, kept] = [await service.tokenOf('vera'), await service.tokenOf('vera')]
    const { token } = await service.createToken('vera')
    const edda = await service.tokenOf('edda')
    await changePassword(kept, { current: "vera's words", new: words })
    const again = (await service.login('vera', words)).body.access_token

    const answer = await service.send('POST', '/api/auth/logout?everywhere=true', undefined, again)

    expect(answer.status).toBe(204)
    const ended = [here, kept, again].flatMap((each) => [statusOf(each), statusOf(each, service)])
    expect(await Promise.all(ended)).toEqual(Array(6).fill(401))
    expect([await statusOf(token), await statusOf(edda)]).toEqual([200, 200])
    expect((await service.login('vera', words)).status).toBe(200)
  })

  test('an ended session is not brought back by a change of its password', async () => {
    const token = await service.tokenOf('vera')
    const changing = changePassword(token, { current: "vera's words", new: words })
    const ending = service.send('POST', '/api/auth/logout', undefined, token)

    const [, ended] = await Promise.all([changing, ending])

    expect(ended.status).toBe(204)
    expect(await statusOf(token)).toBe(401)
  })

  test('an API token cannot log out', async () => {
    const { token } = await service.createToken('adam', { role: 'admin' })

    const answer = await service.send('POST', '/api/auth/logout', undefined, token)

    expect(answer).toMatchObject({ status: 403, code: 'forbidden' })
    expect(await statusOf(token)).toBe(200)
  })
})

const victim = await makeUser('victim')

test('a password that somebody else changes while the old one is verified stays as they set it', async () => {
  let meanwhile = async () => {}
  await using service = await start({
    verify: async (phc, password) => {
      const isRight = await verifyPassword(phc, password)
      await meanwhile()
      return isRight
    },
  })
  const token = await service.tokenOf('vera')
  const { password } = await makeUser('other')
  meanwhile = () =>
    service.users.update((all) => all.map((user) => (user.username === 'vera' ? { ...user, password } : user)))

  const body = { current: "vera's words", new: words }
  const refused = await service.send('POST', '/api/auth/password', body, token)
  meanwhile = async () => {}

  expect(refused).toMatchObject({ status: 401, code: 'invalid_credentials' })
  expect((await service.login('vera', "other's words")).status).toBe(200)
})
