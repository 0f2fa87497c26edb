import { writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { User } from '../../src/users/user.ts'
import { forms, makeUser, start } from '../support/start.ts'

const words = 'correct horse battery'

describe.each(forms)('users in %s', (_name, begin) => {
  let service: Awaited<ReturnType<typeof begin>>
  let admin: string
  beforeAll(async () => {
    service = await begin()
    admin = await service.tokenOf('adam')
  })
  afterAll(() => service[Symbol.asyncDispose]())
  beforeEach(() => service.users.update(() => service.people))

  const send = (method: string, path: string, body?: unknown, token = admin) => service.send(method, path, body, token)
  const add = (body: object) => send('POST', '/api/users', { role: 'viewer', ...body })
  const accept = (username: string, invite: string, password = words) =>
    service.other.send('POST', '/api/auth/password', { username, invite, new: password })
  const namesNow = async () =>
    (await send('GET', '/api/users')).body.users.map((user: { username: string }) => user.username)

  test('an admin lists users with their rights, and when they last logged in', async () => {
    await service.login('vera')
    await expect
      .poll(async () => (await send('GET', '/api/users')).body.users[0].last_login_at)
      .toBe('2026-11-20T19:20:00.500Z')

    const { status, body } = await send('GET', '/api/users?page_size=2')

    expect(status).toBe(200)
    expect(body).toEqual({
      users: [
        {
          username: 'vera',
          role: 'viewer',
          domains: ['example.com', '*.co.uk'],
          folders: null,
          writes: null,
          source: 'local',
          created_at: null,
          last_login_at: expect.any(String),
        },
        expect.objectContaining({ username: 'edda', domains: null }),
      ],
      pagination: { page: 1, page_size: 2, total_items: 3, total_pages: 2 },
    })
    expect((await send('GET', '/api/users')).body.pagination.page_size).toBe(50)
    const last = (await send('GET', '/api/users?page_size=2&page=2')).body
    expect(last.users).toMatchObject([{ username: 'adam', role: 'admin' }])
  })

  test('a user may be added with the rights of another as they are listed', async () => {
    const listed = (await send('GET', '/api/users')).body.users.at(-1)
    const { role, domains, folders, writes } = listed

    const added = await add({ username: 'erik', role, domains, folders, writes })

    expect(added).toMatchObject({ status: 201, body: { role, domains: null, folders: null, writes: null } })
    expect((await service.users.list()).at(-1)).not.toHaveProperty('folders')
  })

  test('the writes of a user may be proposals', async () => {
    const added = await add({ username: 'petra', role: 'editor', writes: 'propose' })
    const change = async (writes: unknown) => (await send('PATCH', '/api/users/petra', { writes })).body.writes

    expect([added.status, added.body.writes]).toEqual([201, 'propose'])
    expect((await send('GET', '/api/users')).body.users.at(-1).writes).toBe('propose')
    expect([await change(null), await change('propose')]).toEqual([null, 'propose'])
    expect((await service.users.find('petra'))?.writes).toBe('propose')
  })

  test('a user who is added with a password logs in at once, at every replica', async () => {
    const added = await add({ username: 'petra', role: 'editor', password: words })

    const login = await service.other.login('petra', words)

    expect(added).toMatchObject({
      status: 201,
      body: {
        username: 'petra',
        role: 'editor',
        domains: null,
        folders: null,
        writes: null,
        source: 'local',
        created_at: '2026-11-20T19:20:00.500Z',
        last_login_at: null,
      },
    })
    expect(added.body).not.toHaveProperty('invite')
    expect(login.body.user).toEqual({ username: 'petra', role: 'editor' })
  })

  test('a user who is added without a password sets one with an invitation, once', async () => {
    const { body } = await add({ username: 'petra', domains: ['Example.com'] })
    expect((await service.login('petra', body.invite)).code).toBe('invalid_credentials')

    const wrong = await accept('petra', 'another code')
    const weak = await accept('petra', body.invite, 'petra')
    const both = await Promise.all([accept('petra', body.invite), accept('petra', body.invite)])
    const again = await accept('petra', body.invite, 'another password')

    expect([wrong.code, weak.code, again.code]).toEqual(['invalid_credentials', 'weak_password', 'invalid_credentials'])
    expect(both.map(({ status }) => status).sort()).toEqual([204, 401])
    expect((await service.login('petra', words)).body.user.domains).toEqual(['example.com'])
    expect(JSON.stringify(await service.users.list())).not.toContain(body.invite)
  })

  test('a user may be limited to 100 domains of any length', async () => {
    const domains = Array.from({ length: 100 }, (_, at) =>
      [...Array(3).fill('d'.repeat(60)), `x${at}`, 'example.com'].join('.'),
    )

    const added = await add({ username: 'petra', domains })

    expect(added.body.domains).toHaveLength(100)
    expect((await add({ username: 'paul', domains: [...domains, 'a.com'] })).status).toBe(400)
  })

  test('an invitation is valid for 72 hours', async () => {
    const early = (await add({ username: 'early' })).body.invite
    const late = (await add({ username: 'late' })).body.invite
    const before = service.other.clock.ms

    service.other.clock.ms = before + 72 * 3_600_000 - 1
    const inTime = await accept('early', early)
    service.other.clock.ms = before + 72 * 3_600_000
    const tooLate = await accept('late', late)
    service.other.clock.ms = before

    expect([inTime.status, tooLate.code]).toEqual([204, 'invalid_credentials'])
  })

  test('a person who forgot the password sets another with a new invitation, the last one made', async () => {
    const session = await service.tokenOf('edda')
    const invite = async () => (await send('PATCH', '/api/users/edda', { invite: true })).body

    const [first, last] = [await invite(), await invite()]
    const before = await service.other.login('edda')
    const accepted = [await accept('edda', first.invite), await accept('edda', last.invite)]

    expect(last).toMatchObject({ username: 'edda', role: 'editor', invite: expect.any(String) })
    expect((await send('GET', '/api/users')).body.users[1]).not.toHaveProperty('invite')
    expect([before.status, ...accepted.map(({ status }) => status)]).toEqual([200, 401, 204])
    expect((await service.other.call('/view', { token: session })).status).toBe(401)
    expect((await service.login('edda')).code).toBe('invalid_credentials')
    expect((await service.login('edda', words)).status).toBe(200)
  })

  test('a new password ends an invitation', async () => {
    const session = await service.tokenOf('edda')
    const { body } = await send('PATCH', '/api/users/edda', { invite: true })

    const change = { current: "edda's words", new: words }
    const changed = await send('POST', '/api/auth/password', change, session)

    expect(changed.status).toBe(204)
    expect((await accept('edda', body.invite)).code).toBe('invalid_credentials')
  })

  test('wrong invitations are limited like logins, also of unknown users', async () => {
    await add({ username: 'petra-invited' })

    const codes: string[] = []
    for (const username of ['petra-invited', 'nobody'])
      for (let count = 0; count < 11; count += 1) codes.push((await accept(username, 'x')).code)

    const expected = [...Array(10).fill('invalid_credentials'), 'too_many_requests']
    expect(codes).toEqual([...expected, ...expected])
  })

  test.each([
    [{ username: 'vera' }, 409, 'user_exists'],
    [{ username: 'petra', password: 'short' }, 400, 'weak_password'],
    [{ username: 'petra petra', password: words }, 400, 'validation_failed'],
    [{ username: '.', password: words }, 400, 'validation_failed'],
    [{ username: '..', password: words }, 400, 'validation_failed'],
    // The author of repairs in the history of domains.
    [{ username: 'domain-service', password: words }, 400, 'validation_failed'],
    [{ username: 'petra', role: 'root' }, 400, 'validation_failed'],
    [{ username: 'petra', domains: [] }, 400, 'validation_failed'],
    [{ username: 'petra', admin: true }, 400, 'validation_failed'],
  ])('%j is refused with %i %s', async (body, status, code) => {
    const answer = await add(body)

    expect(answer).toMatchObject({ status, code })
    expect(await namesNow()).toEqual(['vera', 'edda', 'adam'])
  })

  test('changed rights count at once for logins and API tokens, at every replica', async () => {
    const session = await service.tokenOf('edda')
    const { token } = await service.createToken('edda', { role: 'editor' })
    const editing = async () =>
      Promise.all(
        [session, token].map(
          async (each) => (await service.other.call('/edit', { token: each, method: 'PUT' })).status,
        ),
      )
    const before = await editing()

    const wanted = { role: 'viewer', domains: ['a.com'], folders: ['docs'] }
    const changed = await send('PATCH', '/api/users/edda', wanted)
    const after = await editing()
    const freed = await send('PATCH', '/api/users/edda', { domains: null })
    const unlimited = await send('PATCH', '/api/users/edda', { folders: null })

    expect([before, after]).toEqual([
      [200, 200],
      [403, 403],
    ])
    expect(changed.body).toMatchObject({ ...wanted, folders: ['docs/'] })
    expect(freed.body).toMatchObject({ role: 'viewer', domains: null, folders: ['docs/'] })
    expect(unlimited.body).toMatchObject({ role: 'viewer', folders: null })
  })

  test('a removed user is out at once at every replica, with all tokens', async () => {
    const session = await service.tokenOf('edda')
    const { token } = await service.createToken('edda')

    const removed = await send('DELETE', '/api/users/edda')

    expect(removed.status).toBe(204)
    for (const each of [session, token]) expect((await service.other.call('/view', { token: each })).status).toBe(401)
    expect((await service.other.login('edda')).code).toBe('invalid_credentials')
    expect(await namesNow()).toEqual(['vera', 'adam'])
  })

  test('nobody takes away the last admin, its own admin role, or itself', async () => {
    await add({ username: 'berta', role: 'admin', password: words })

    const answers = [
      await send('PATCH', '/api/users/adam', { role: 'editor' }),
      await send('DELETE', '/api/users/adam'),
    ]
    const berta = (await service.login('berta', words)).body.access_token
    const both = await Promise.all([
      send('DELETE', '/api/users/berta'),
      send('DELETE', '/api/users/adam', undefined, berta),
    ])

    expect(answers.map(({ status, code }) => [status, code])).toEqual([
      [409, 'last_admin'],
      [409, 'last_admin'],
    ])
    expect(both.filter(({ status }) => status === 204)).toHaveLength(1)
    const left = await service.users.list()
    expect(left.filter(({ role }) => role === 'admin')).toHaveLength(1)
  })

  test.each([{ domains: ['example.com'] }, { folders: ['docs/'] }, { writes: 'propose' }])(
    'no admin limits itself by %j, so that one who manages users is always left',
    async (limits) => {
      const answer = await send('PATCH', '/api/users/adam', limits)

      expect(answer).toMatchObject({ status: 409, code: 'last_admin' })
      expect((await send('GET', '/api/users')).status).toBe(200)
    },
  )

  test('an admin keeps its own role with other changes', async () => {
    const answer = await send('PATCH', '/api/users/adam', { role: 'admin' })

    expect(answer.status).toBe(200)
  })

  test.each<Partial<User>>([{ domains: ['example.com'] }, { folders: ['docs/'] }, { writes: 'propose' }])(
    'an admin with the limits %j manages neither users nor tokens of others',
    async (limits) => {
      const limited = await makeUser('lim', { role: 'admin', ...limits })
      await service.users.update((users) => [...users, limited])
      const token = await service.tokenOf('lim')
      const { id } = await service.createToken('adam', { role: 'admin' })

      const refusals = [
        await send('GET', '/api/users', undefined, token),
        await send('POST', '/api/users', { username: 'x', role: 'viewer', ...limits }, token),
        await send('PATCH', '/api/users/lim', { domains: null, folders: null, writes: null }, token),
        await send('PATCH', '/api/users/vera', { invite: true }, token),
        await send('DELETE', '/api/users/vera', undefined, token),
        await send('GET', '/api/tokens?owner=adam', undefined, token),
      ]
      const foreign = await send('DELETE', `/api/tokens/${id}`, undefined, token)
      const own = await send('GET', '/api/tokens?owner=lim', undefined, token)

      expect(refusals.map(({ status, code }) => [status, code])).toEqual(Array(6).fill([403, 'forbidden']))
      expect(refusals[0]?.body.detail).toBe('Only an admin without limits can do this')
      expect([foreign.status, own.status]).toEqual([404, 200])
      expect(await service.users.find('lim')).toEqual(limited)
    },
  )

  test('only admins manage users, by a login', async () => {
    const { token } = await service.createToken('adam', { role: 'admin' })
    const edda = await service.tokenOf('edda')
    const calls: [string, string, unknown?][] = [
      ['GET', '/api/users'],
      ['POST', '/api/users', { username: 'x', role: 'viewer' }],
      ['PATCH', '/api/users/vera', { role: 'viewer' }],
      ['PATCH', '/api/users/vera', { invite: true }],
      ['DELETE', '/api/users/vera'],
    ]

    const byEditor = await Promise.all(calls.map((call) => send(call[0], call[1], call[2], edda)))
    const byToken = await Promise.all(calls.map((call) => send(call[0], call[1], call[2], token)))

    expect(byEditor.map(({ status }) => status)).toEqual(Array(5).fill(403))
    expect(byToken.map(({ status }) => status)).toEqual([200, ...Array(4).fill(403)])
  })

  test('an unknown user is 404, and a change of nothing 400', async () => {
    const answers = [
      await send('PATCH', '/api/users/nobody', { role: 'viewer' }),
      await send('DELETE', '/api/users/nobody'),
      await send('PATCH', '/api/users/vera', {}),
    ]

    expect(answers.map(({ code }) => code)).toEqual(['user_not_found', 'user_not_found', 'validation_failed'])
  })
})

test('a users file with a fault is not changed through the API', async () => {
  await using service = await start()
  const admin = await service.tokenOf('adam')
  const text = JSON.stringify({ users: service.people, version: 1 })
  await writeFile(service.file, text)

  const answers = [
    await service.send('GET', '/api/users', undefined, admin),
    await service.send('DELETE', '/api/users/vera', undefined, admin),
  ]

  expect(answers.map(({ status, code }) => [status, code])).toEqual([
    [503, 'unavailable'],
    [503, 'unavailable'],
  ])
})
