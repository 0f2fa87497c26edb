import { expect, test } from 'vitest'
import { z } from 'zod'
import { password } from '../../../../test/support/test-users.ts'
import { type Service, start, www } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const challenge = { name: '_acme-challenge', address: 'token value' }
const domains = [
  { name: 'example.com', hosts: [www] },
  { name: 'other.com', hosts: [www] },
]

async function post(url: string, body: object, token?: string) {
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
  })
  return z.looseObject({ access_token: z.string().optional(), token: z.string().optional() }).parse(await answer.json())
}

/** Creates a token of the admin, and returns calls with it. */
async function createToken({ url, call }: Service, limits: object) {
  const login = await post(`${url}/api/auth/login`, { username: 'admin', password })
  const created = await post(
    `${url}/api/tokens`,
    { name: `certificates ${crypto.randomUUID()}`, ...limits },
    login.access_token,
  )
  const authorization = `Bearer ${created.token}`
  return (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    call(method, path, { body, headers: { authorization, ...headers } })
}

const records = [{ name: '_acme-challenge', types: ['TXT'] }]

test('a token limited to records adds and removes these, and no others', async () => {
  await using service = await start({ domains })
  const call = await createToken(service, { records })

  const added = await call('POST', `${hosts}/TXT`, challenge)
  const foreign = await call('POST', `${hosts}/A`, { name: 'home', address: '192.0.2.9' })
  const zone = await service.call('GET', hosts)
  const [theirs] = (zone.body.hosts ?? []).filter(({ name }) => name === 'www')
  const removedForeign = await call('DELETE', `${hosts}/${theirs?.id}`)
  const removed = await call('DELETE', `${hosts}/${added.body.id}`)

  expect([added.status, foreign.status, removedForeign.status, removed.status]).toEqual([201, 403, 403, 200])
  expect(foreign.body).toMatchObject({
    code: 'forbidden',
    detail: 'This token may write only _acme-challenge TXT, not home A',
  })
  expect(removed.body.hosts).toEqual([])
  expect(service.live()).toEqual(['www A 192.0.2.1 1800 10'])
})

test('a token limited to records cannot replace, list or restore a zone', async () => {
  await using service = await start({ domains })
  const call = await createToken(service, { records })

  const replaced = await call('PUT', hosts, { hosts: [] })
  const listed = await call('GET', hosts)
  const restored = await call('POST', '/api/domains/example.com/dns/history/1/restore?to=before')

  expect([replaced.status, listed.status, restored.status]).toEqual([403, 403, 403])
})

test('a token limited to records reads and cancels its own asynchronous changes only', async () => {
  await using service = await start({ domains })
  const call = await createToken(service, { records })
  const foreign = await service.call('POST', `${hosts}/A`, {
    body: { name: 'home', address: '192.0.2.9' },
    headers: { prefer: 'respond-async' },
  })

  const own = await call('POST', `${hosts}/TXT`, challenge, { prefer: 'respond-async' })
  const ownRead = await call('GET', String(own.headers.get('location')))
  const foreignRead = await call('GET', String(foreign.headers.get('location')))
  const foreignCancelled = await call('DELETE', String(foreign.headers.get('location')))

  expect([own.status, ownRead.status]).toEqual([202, 200])
  expect([foreignRead.body.code, foreignCancelled.body.code]).toEqual(['change_not_found', 'change_not_found'])
})

test('a queued change of records that a token limited to others may not write is refused at its turn', async () => {
  await using service = await start({ domains })
  const call = await createToken(service, { records })
  const [theirs] = (await service.call('GET', hosts)).body.hosts ?? []

  const { headers } = await call('DELETE', `${hosts}/${theirs?.id}`, undefined, {
    prefer: 'respond-async',
  })
  const change = async () => (await call('GET', String(headers.get('location')))).body

  await expect.poll(change).toMatchObject({ status: 'refused', problem: { status: 403 } })
  expect(service.live()).toEqual(['www A 192.0.2.1 1800 10'])
})

test('with a role it reads every record, and still writes only its own', async () => {
  await using service = await start({ domains })
  const call = await createToken(service, { records, role: 'viewer' })

  const listed = await call('GET', hosts)
  const written = await call('POST', `${hosts}/TXT`, challenge)
  const foreign = await call('POST', `${hosts}/TXT`, { name: 'x', address: 'y' })

  expect([listed.status, written.status, foreign.status]).toEqual([200, 201, 403])
})

test('a token limited to domains sees no other', async () => {
  await using service = await start({ domains })
  const call = await createToken(service, { role: 'editor', domains: ['example.com'] })

  const own = await call('GET', hosts)
  const other = await call('GET', '/api/domains/other.com/dns/hosts')

  expect([own.status, other.body.code]).toEqual([200, 'domain_not_found'])
})

test('the history names the owner and the token', async () => {
  await using service = await start({ domains })
  const call = await createToken(service, { records })

  await call('POST', `${hosts}/TXT`, challenge)
  const history = await service.call('GET', '/api/domains/example.com/dns/history')

  expect(history.body.history).toMatchObject([{ by: 'admin', token: expect.stringMatching(/^certificates /) }])
})
