import { once } from 'node:events'
import { request } from 'node:http'
import { json } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { forms, makeUser, start, writeUsers } from './support/start.ts'

const realm = 'Bearer realm="domains-and-files"'

test('a route without access stops the boot and is named', async () => {
  const started = start({ routes: (app) => app.delete('/api/all', async () => 'gone') })

  await expect(started).rejects.toThrow(
    'The route DELETE /api/all must set config.access to public, viewer, editor or admin',
  )
})

test('a route with an unknown access stops the boot', async () => {
  const config = { access: 'root' as 'admin' } // The typing error under test.

  const started = start({ routes: (app) => app.get('/api/all', { config }, async () => '') })

  await expect(started).rejects.toThrow('config.access')
})

test('a route registered before the plugin, without access, admits nobody', async () => {
  await using service = await start({ early: (app) => app.get('/early', async () => 'inside') })

  const answer = await service.call('/early', { token: await service.tokenOf('adam') })

  expect(answer).toMatchObject({ status: 500, code: 'internal_error' })
})

test('a public route ignores credentials', async () => {
  await using service = await start()

  const plain = await service.call('/open')
  const odd = await service.call('/open', { headers: { authorization: 'nonsense' } })

  expect([plain.status, odd.status]).toEqual([200, 200])
})

test('asking for the caller of a public route is a server error', async () => {
  await using service = await start()

  const answer = await service.call('/careless')

  expect(answer).toMatchObject({ status: 500, code: 'internal_error' })
})

test('an unknown path is 404 for every method', async () => {
  await using service = await start()

  const methods = ['GET', 'OPTIONS', 'POST', 'DELETE']
  const answers = await Promise.all(methods.map((method) => service.call('/none', { method })))

  expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404])
})

test('a preflight route needs no access and no token', async () => {
  await using service = await start({
    routes: (app) => app.options('/view', async (_request, reply) => reply.code(204).send()),
  })

  const answer = await service.call('/view', { method: 'OPTIONS' })

  expect(answer.status).toBe(204)
})

test('HEAD has the access of its GET route', async () => {
  await using service = await start()
  const token = await service.tokenOf('vera')

  const without = await service.call('/view', { method: 'HEAD' })
  const withToken = await service.call('/view', { method: 'HEAD', token })

  expect([without.status, withToken.status]).toEqual([401, 200])
})

test('without a token the challenge names no error', async () => {
  await using service = await start()

  const answer = await service.call('/view')

  expect(answer).toMatchObject({ status: 401, code: 'unauthorized' })
  expect(answer.headers.get('www-authenticate')).toBe(realm)
})

test.each([
  'Basic',
  `Basic ${Buffer.from('no colon').toString('base64')}`,
  'Bearer',
  'Bearer a.b.c d.e.f',
  'Bearer a.b.c, Bearer d.e.f',
  'Token a.b.c',
  'a.b.c',
  'Bearer:a.b.c',
])('an Authorization header like "%s" is an invalid request', async (authorization) => {
  await using service = await start()

  const answer = await service.call('/view', { headers: { authorization } })

  expect(answer).toMatchObject({ status: 401, code: 'unauthorized' })
  expect(answer.headers.get('www-authenticate')).toContain('error="invalid_request"')
})

test.each(['Bearer', 'bearer', 'BEARER', 'bEaReR'])('the scheme may be %s', async (scheme) => {
  await using service = await start()
  const authorization = `${scheme} ${await service.tokenOf('vera')}`

  const answer = await service.call('/view', { headers: { authorization } })

  expect(answer.status).toBe(200)
})

test('the caller has the rights of the users file', async () => {
  await using service = await start()

  const answer = await service.call('/view', { token: await service.tokenOf('vera') })

  expect(answer.body).toEqual({
    id: 'user:vera',
    username: 'vera',
    role: 'viewer',
    domains: ['example.com', '*.co.uk'],
    expiresAt: '2026-11-20T20:20:00.000Z',
    session: expect.any(String),
  })
})

test.each([
  ['vera', 200, 403, 403],
  ['edda', 200, 200, 403],
  ['adam', 200, 200, 200],
])('%s may view (%i), edit (%i), rule (%i)', async (username, ...expected) => {
  await using service = await start()
  const token = await service.tokenOf(username)

  const answers = [
    await service.call('/view', { token }),
    await service.call('/edit', { token, method: 'PUT' }),
    await service.call('/rule', { token }),
  ]

  expect(answers.map(({ status }) => status)).toEqual(expected)
})

test('an insufficient role gets 403 naming the required one', async () => {
  await using service = await start()

  const answer = await service.call('/rule', { token: await service.tokenOf('edda') })

  expect(answer).toMatchObject({ status: 403, code: 'forbidden' })
  expect(answer.body.detail).toBe('This needs the role admin, which your user or API token lacks')
})

test('a stored caller has the rights that its user has now, and none after a removal', async () => {
  await using service = await start()
  const find = service.findCaller
  const petra = await makeUser('petra', { id: '1', role: 'editor' })
  await writeUsers(service.file, [...service.people, petra])

  const first = await find('user:petra 1')
  await writeUsers(service.file, [{ ...petra, role: 'viewer', domains: ['a.com'] }])
  const demoted = await find('user:petra 1')
  await writeUsers(service.file, [{ ...petra, id: '2' }])
  const ofAnother = await find('user:petra 1')

  expect(first).toEqual({ id: 'user:petra 1', username: 'petra', role: 'editor' })
  expect(demoted).toMatchObject({ role: 'viewer', domains: ['a.com'] })
  expect([ofAnother, await find('user:vera'), await find('token:none'), await find('x')]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ])
})

test('routes share a schema, and none gets what is documented of another', async () => {
  const schema = { operationId: 'shared' }
  await using _service = await start({
    routes: (app) => {
      for (const access of ['viewer', 'admin'] as const)
        app.get(`/shared/${access}`, { config: { access }, schema }, async () => access)
    },
  })

  expect(schema).toEqual({ operationId: 'shared' })
})

/** Begins a request and resolves once it is admitted. @returns what sends its body, and resolves with the response. */
async function begin(url: string, token: string) {
  const headers = {
    authorization: `Bearer ${token}`,
    expect: '100-continue',
    'content-type': 'application/json',
  }
  const sent = request(`${url}/edit`, { method: 'PUT', headers, agent: false })
  const responded = once(sent, 'response')
  await once(sent, 'continue')
  return async () => {
    sent.end('{}')
    const [response] = await responded
    return { status: response.statusCode, body: await json(response) }
  }
}

describe.each(forms)('with %s, of a request whose body arrives later', (_form, open) => {
  test.each([
    ['is removed', (all) => all.filter(({ username }) => username !== 'edda')],
    ['has another password', (all) => all.map((user) => ({ ...user, password: all[2]?.password }))],
  ] as [string, Change][])('the sender is refused if it %s by then', async (_what, change) => {
    await using service = await open()
    const finish = await begin(service.url, await service.tokenOf('edda'))
    await service.users.update(change)

    expect(await finish()).toMatchObject({ status: 401, body: { code: 'unauthorized' } })
  })

  test('the sender is refused if it has other rights by then', async () => {
    await using service = await open()
    const finish = await begin(service.url, await service.tokenOf('edda'))
    await service.users.update((all) => all.map((user) => ({ ...user, domains: ['example.com'] })))

    expect(await finish()).toMatchObject({ status: 403, body: { code: 'forbidden' } })
  })

  test('the sender is refused if it logged out, also where its token has expired by then', async () => {
    await using service = await open()
    const token = await service.tokenOf('edda')
    const finish = await begin(service.url, token)
    await service.send('POST', '/api/auth/logout', undefined, token)
    service.clock.ms += 8 * 3_600_000
    service.other.clock.ms += 8 * 3_600_000
    await service.send('POST', '/api/auth/logout', undefined, await service.tokenOf('adam'))

    expect(await finish()).toMatchObject({ status: 401, body: { code: 'unauthorized' } })
  })

  test('the token may expire meanwhile', async () => {
    await using service = await open()
    const { token } = await service.createToken('edda', { role: 'editor', expires_in: 60 })
    const session = await begin(service.url, await service.tokenOf('edda'))
    const program = await begin(service.url, token)
    service.clock.ms += 7_200_000
    service.other.clock.ms += 7_200_000

    const statuses = [(await session()).status, (await program()).status]

    expect(statuses).toEqual([200, 200])
  })
})

type Change = Parameters<Awaited<ReturnType<typeof start>>['users']['update']>[0]
