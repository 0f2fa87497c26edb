import { expect, test } from 'vitest'
import { ProblemError } from '../src/responses.ts'
import { openSession } from '../src/session.ts'

const baseUrl = 'http://127.0.0.1'

/** A server that issues numbered tokens and accepts only those in `valid`. */
function serve(valid: Set<string>) {
  const requests: string[] = []
  let logins = 0
  const fetch = async (request: Request) => {
    const path = new URL(request.url).pathname
    requests.push(path)
    if (path === '/api/auth/login') {
      const { password } = (await request.json()) as { password: string }
      if (password !== 'right') {
        const problem = { status: 401, code: 'invalid_credentials', detail: 'Wrong password' }
        return Response.json(problem, { status: 401 })
      }
      logins += 1
      return Response.json({ access_token: `token-${logins}` })
    }
    const isValid = valid.has(request.headers.get('authorization') ?? '')
    return isValid ? new Response(await request.text()) : new Response('{}', { status: 401 })
  }
  return { fetch, requests }
}

test('a password is exchanged for a token once, however many requests start together', async () => {
  const { fetch, requests } = serve(new Set(['Bearer token-1']))
  const session = openSession({
    baseUrl,
    credentials: { username: 'alice', password: 'right' },
    fetch,
  })

  const responses = await Promise.all([1, 2, 3].map(() => session.send(new Request(`${baseUrl}/x`))))

  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200])
  expect(requests.filter((path) => path === '/api/auth/login')).toHaveLength(1)
})

test('an expired token is renewed, and the request sent again with its body', async () => {
  const { fetch } = serve(new Set(['Bearer token-2']))
  const session = openSession({
    baseUrl,
    credentials: { username: 'alice', password: 'right' },
    fetch,
  })

  const response = await session.send(new Request(`${baseUrl}/x`, { method: 'PUT', body: 'text' }))

  expect([response.status, await response.text()]).toEqual([200, 'text'])
})

test('a wrong password is an error with the code of the service', async () => {
  const { fetch } = serve(new Set())
  const session = openSession({
    baseUrl,
    credentials: { username: 'alice', password: 'wrong' },
    fetch,
  })

  const failure = await session.send(new Request(`${baseUrl}/x`)).catch((error) => error)

  expect(failure).toBeInstanceOf(ProblemError)
  expect(failure).toMatchObject({ code: 'invalid_credentials', message: 'Wrong password' })
})

test('a login that failed is repeated by the next request', async () => {
  const { fetch } = serve(new Set(['Bearer token-1']))
  let isDown = true
  const failing = (request: Request) => {
    if (isDown) throw new TypeError('fetch failed')
    return fetch(request)
  }
  const credentials = { username: 'alice', password: 'right' }
  const session = openSession({ baseUrl, credentials, fetch: failing })
  const send = () => session.send(new Request(`${baseUrl}/x`))

  await expect(send()).rejects.toThrow('fetch failed')
  isDown = false

  expect((await send()).status).toBe(200)
})

test('a rejected API token is not exchanged: its 401 is returned', async () => {
  const { fetch, requests } = serve(new Set())
  const session = openSession({ baseUrl, credentials: { token: 'ds_revoked' }, fetch })

  expect((await session.send(new Request(`${baseUrl}/x`))).status).toBe(401)
  expect(requests).toEqual(['/x'])
})
