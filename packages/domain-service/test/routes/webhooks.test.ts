import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { createToken } from '../support/protocol-client.ts'
import { type Service, start } from '../support/start.ts'

const env = { WEBHOOK_HTTP: 'true', WEBHOOK_NETWORKS: '127.0.0.0/8' }

/** Keeps the bodies that it receives. */
async function openReceiver() {
  const bodies: { id: string; type: string; data: Record<string, unknown> }[] = []
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk
    bodies.push(JSON.parse(text))
    response.end('x'.repeat(2_000))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // It listens on a port.
  return {
    url: `http://127.0.0.1:${port}/hook?key=1`,
    bodies,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const Webhook = z.object({
  id: z.string(),
  url: z.string(),
  types: z.array(z.string()).nullable(),
  domains: z.array(z.string()).nullable(),
  paused: z.boolean(),
  secret: z.string().optional(),
})

/** Not by `Service.call`, which knows other bodies. */
async function ask(service: Service, method: string, path = '', body?: unknown, user = 'admin') {
  const answer = await fetch(`${service.url}/api/webhooks${path}`, {
    method,
    headers: {
      authorization: `Bearer ${user.startsWith('ds_') ? user : await service.sessionOf(user)}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  return { status: answer.status, body: text === '' ? undefined : JSON.parse(text), text }
}

test('a webhook is made, tested, paused, changed and deleted by admins; its secret is shown once', async () => {
  await using service = await start({ env })
  await using receiver = await openReceiver()
  const made = await ask(service, 'POST', '', {
    url: receiver.url,
    domains: ['EXAMPLE.com'],
    name: 'chat',
  })
  expect(made.status, made.text).toBe(201)
  const { id, secret, ...rest } = Webhook.parse(made.body)
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expect(rest).toEqual({ url: receiver.url, types: null, domains: ['example.com'], paused: false })
  const listed = await ask(service, 'GET')
  expect(listed.body.webhooks).toMatchObject([{ id, url: receiver.url, name: 'chat' }])
  expect(listed.text).not.toContain('whsec_')
  expect((await ask(service, 'GET', `/${id}`)).body).toEqual(listed.body.webhooks[0])

  const tested = await ask(service, 'POST', `/${id}/test`)
  expect(tested.body).toMatchObject({ type: 'webhook.test', status: 'delivered', tries: 1 })
  expect(tested.body.answer).toBe('x'.repeat(1024))
  expect(receiver.bodies).toMatchObject([{ id: tested.body.id, type: 'webhook.test', data: {} }])

  const hosts = '/api/domains/example.com/dns/hosts/A'
  await service.call('POST', hosts, { body: { name: 'one', address: '192.0.2.2' } })
  await expect.poll(() => receiver.bodies.length).toBe(2)
  expect(receiver.bodies[1]).toMatchObject({
    type: 'zone.changed',
    data: { domain: 'example.com' },
  })
  await expect
    .poll(async () => (await ask(service, 'GET', `/${id}/deliveries`)).body.deliveries)
    .toMatchObject([{ id: receiver.bodies[1]?.id, status: 'delivered', response_status: 200 }, {}])
  const retried = await ask(service, 'POST', `/${id}/deliveries/${receiver.bodies[1]?.id}/retry`)
  expect(retried.status, retried.text).toBe(202)
  await expect.poll(() => receiver.bodies.length).toBe(3)
  expect(receiver.bodies[2]).toEqual(receiver.bodies[1])

  const elsewhere = await ask(service, 'PATCH', `/${id}`, { url: 'https://10.0.0.1/' })
  expect([elsewhere.status, elsewhere.body.code]).toEqual([400, 'webhook_url_refused'])
  const paused = await ask(service, 'PATCH', `/${id}`, { paused: true, types: ['change.refused'] })
  expect(paused.body).toMatchObject({ paused: true, types: ['change.refused'] })
  expect((await ask(service, 'DELETE', `/${id}`)).status).toBe(204)
  for (const [method, path] of [
    ['GET', ''],
    ['GET', '/deliveries'],
    ['POST', '/test'],
    ['DELETE', ''],
  ] as const)
    expect((await ask(service, method, `/${id}${path}`)).body.code).toBe('webhook_not_found')
})

test('what is not for others is refused: roles, URLs, addresses, a 51st webhook', async () => {
  await using service = await start({ env: { ...env, WEBHOOK_NETWORKS: '127.0.0.1/32' } })
  const url = 'http://127.0.0.1:9/'
  expect((await ask(service, 'POST', '', { url }, 'editor')).status).toBe(403)
  expect((await ask(service, 'GET', '', undefined, 'viewer')).status).toBe(403)
  for (const refused of [
    'ftp://127.0.0.1/',
    'no url',
    'http://user:secret@127.0.0.1/',
    'http://user@127.0.0.1/',
    'http://127.0.0.2/',
    'http://2130706434/',
    'http://[::ffff:10.0.0.1]/',
    'https://169.254.169.254/latest/meta-data',
  ]) {
    const answer = await ask(service, 'POST', '', { url: refused })
    expect([answer.status, answer.body.code], refused).toEqual([400, 'webhook_url_refused'])
  }
  for (const body of [{}, { url, types: ['other'] }, { url, folders: ['a/'] }, { url, secret: 'x' }])
    expect((await ask(service, 'POST', '', body)).body.code).toBe('validation_failed')
  for (let count = 0; count < 50; count++) expect((await ask(service, 'POST', '', { url })).status).toBe(201)
  expect((await ask(service, 'POST', '', { url })).body.code).toBe('too_many_webhooks')
  expect((await ask(service, 'GET')).body.webhooks).toHaveLength(50)
  const { body: page } = await ask(service, 'GET', '?page=2&page_size=30')
  expect(page.webhooks).toHaveLength(20)
  expect(page.pagination).toEqual({ page: 2, page_size: 30, total_items: 50, total_pages: 2 })
})

test('an admin of some domains makes, sees and changes webhooks of these alone', async () => {
  await using service = await start({ env })
  const admin = await createToken(service, { role: 'admin', domains: ['example.com'] })
  const url = 'http://127.0.0.1:9/'
  const make = async (domains?: string[], user?: string) =>
    ask(service, 'POST', '', { url, ...(domains && { domains }) }, user)
  const [all, other] = [await make(), await make(['example.org'])]

  const refused = [await make(undefined, admin), await make(['example.com', 'example.org'], admin)]
  const own = await make(['example.com'], admin)
  const listed = await ask(service, 'GET', '', undefined, admin)
  const widened = [null, ['example.org']].map((domains) => ask(service, 'PATCH', `/${own.body.id}`, { domains }, admin))
  const hidden = [all, other].flatMap(({ body: { id } }) => [
    ask(service, 'GET', `/${id}`, undefined, admin),
    ask(service, 'GET', `/${id}/deliveries`, undefined, admin),
    ask(service, 'POST', `/${id}/test`, undefined, admin),
    ask(service, 'PATCH', `/${id}`, { paused: true }, admin),
    ask(service, 'DELETE', `/${id}`, undefined, admin),
  ])

  expect(refused.map(({ status }) => status)).toEqual([403, 403])
  expect(own.status).toBe(201)
  expect(listed.body.webhooks).toMatchObject([{ id: own.body.id }])
  expect((await Promise.all(widened)).map(({ status }) => status)).not.toContain(200)
  expect((await Promise.all(hidden)).map(({ status }) => status)).toEqual(hidden.map(() => 404))
  expect((await ask(service, 'GET')).body.webhooks).toHaveLength(3)
})

test('only https where WEBHOOK_HTTP is not set', async () => {
  await using service = await start()
  const answer = await ask(service, 'POST', '', { url: 'http://example.com/' })
  expect([answer.status, answer.body.code]).toEqual([400, 'webhook_url_refused'])
})
