import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { logIn, startSignOn } from '../support/openid.ts'
import { forms } from '../support/start.ts'

const accounts = {
  a1: { name: 'alice', groups: ['shop', 'staff'] },
  a2: { name: 'alice', groups: ['ops'] },
  b1: { name: 'bob', groups: ['ops'] },
  c1: { name: 'carol', groups: ['guests'] },
  d1: { name: 'dora', groups: ['web'] },
  l1: { name: 'lea', groups: ['shop-admins'] },
  v1: { name: 'vera', groups: ['staff'] },
  w1: { name: 'with space', groups: ['staff'] },
}

describe.each(forms)('users of single sign-on, stored in %s', (_name, open) => {
  let at: Awaited<ReturnType<typeof startSignOn>>
  beforeAll(async () => {
    at = await startSignOn(open, accounts)
  })
  afterAll(() => at[Symbol.asyncDispose]())
  beforeEach(() => at.service.users.update(() => at.service.people))

  test('the users list has those who logged in, and local users are not taken over', async () => {
    await at.signOn('v1')
    const token = await at.service.tokenOf('adam')

    const { body } = await at.service.send('GET', '/api/users', undefined, token)

    expect(body.users).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          username: 'vera',
          source: 'local',
          domains: ['example.com', '*.co.uk'],
        }),
        expect.objectContaining({
          username: 'oidc:vera',
          source: 'oidc',
          role: 'viewer',
          last_login_at: expect.any(String),
        }),
      ]),
    )
  })

  test('a name is bound to the account that has it first', async () => {
    await at.signOn('a1')

    const { status, body } = await logIn(at.service, 'a2')

    expect(status).toBe(403)
    expect(JSON.parse(body).code).toBe('not_allowed')
  })

  test('the log has the reason of a login that is refused for its groups', async () => {
    await logIn(at.service, 'c1')

    const reasons = at.service.lines().filter(({ msg }) => String(msg).startsWith('login refused: in no group'))
    expect(reasons).toContainEqual(expect.objectContaining({ subject: 'c1' }))
  })

  test.each([
    ['in no group', 'c1'],
    ['in a group that is limited to what the other service has', 'd1'],
    ['without a name that can be a username', 'w1'],
  ])('who is %s is not allowed', async (_reason, sub) => {
    const { status, body } = await logIn(at.service, sub)

    expect(status).toBe(403)
    expect(JSON.parse(body).code).toBe('not_allowed')
  })

  test('a removed user is logged out, barred until it is allowed, and gets nothing back', async () => {
    const { body: bob } = await at.signOn('b1')
    const api = await at.service.send('POST', '/api/tokens', { name: 'of bob', role: 'admin' }, bob.access_token)
    const admin = await at.service.tokenOf('adam')
    const status = async (token: string) =>
      (await at.service.other.send('GET', '/api/auth/me', undefined, token)).status
    expect([await status(bob.access_token), await status(api.body.token)]).toEqual([200, 200])

    const byItself = await at.service.send('DELETE', '/api/users/oidc:bob', undefined, bob.access_token)
    expect(byItself).toMatchObject({ status: 409, code: 'last_admin' })
    const removed = await at.service.send('DELETE', '/api/users/oidc:bob', undefined, admin)

    expect(removed.status).toBe(204)
    const { users } = (await at.service.send('GET', '/api/users', undefined, admin)).body
    expect(users.map(({ username }: { username: string }) => username)).not.toContain('oidc:bob')
    expect([await status(bob.access_token), await status(api.body.token)]).toEqual([401, 401])
    expect((await logIn(at.service, 'b1')).status).toBe(403)
    await at.service.users.update((users) =>
      users.map((user) => (user.oidc ? { ...user, oidc: { ...user.oidc, is_barred: false } } : user)),
    )
    expect((await at.signOn('b1')).status).toBe(200)
    expect([await status(bob.access_token), await status(api.body.token)]).toEqual([401, 401])
  })

  test('rights are those of the login until its token ends, and those of the last one for API tokens', async () => {
    const account = accounts.b1
    const { body: before } = await at.signOn('b1')
    const api = await at.service.send('POST', '/api/tokens', { name: 'rights', role: 'admin' }, before.access_token)
    account.groups = ['staff']
    const { body: after } = await at.signOn('b1').finally(() => {
      account.groups = ['ops']
    })

    expect((await at.me(before.access_token)).user.role).toBe('admin')
    expect((await at.me(after.access_token)).user.role).toBe('viewer')
    expect((await at.me(api.body.token)).user.role).toBe('viewer')
  })

  test('the API changes no rights that the provider gives, and adds no user with such a name', async () => {
    await at.signOn('b1')
    const admin = await at.service.tokenOf('adam')

    const changed = await at.service.send('PATCH', '/api/users/oidc:bob', { role: 'viewer' }, admin)
    const added = await at.service.send('POST', '/api/users', { username: 'oidc:eve', role: 'admin' }, admin)

    expect(changed).toMatchObject({ status: 409, code: 'rights_elsewhere' })
    expect(added).toMatchObject({ status: 400, code: 'validation_failed' })
  })

  test('an admin of a group with limits manages no users, who could count in the other service', async () => {
    const { body } = await at.signOn('l1')
    const send = (method: string, path: string, json?: object) => at.service.send(method, path, json, body.access_token)
    const user = { username: 'helper', role: 'admin', domains: ['example.com'] }

    expect(body.user).toMatchObject({ role: 'admin', domains: ['example.com'] })
    expect((await send('POST', '/api/users', user)).status).toBe(403)
    expect((await send('PATCH', '/api/users/vera', { role: 'admin' })).status).toBe(403)
    expect((await send('GET', '/api/users')).status).toBe(403)
  })
})
