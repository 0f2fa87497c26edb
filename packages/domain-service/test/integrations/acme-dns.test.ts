import { expect, test } from 'vitest'
import { z } from 'zod'
import { createToken, send } from '../support/protocol-client.ts'
import { type Service, start } from '../support/start.ts'

const update = '/integrations/acme-dns/update'
const register = '/integrations/acme-dns/register'
const txt = (digit: number) => String(digit).repeat(43)
const www = 'www A 192.0.2.1 1800 10'

const Registration = z.object({
  username: z.string(),
  password: z.string().regex(/^ds_/),
  fulldomain: z.string(),
  subdomain: z.string().regex(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
  allowfrom: z.array(z.string()),
})
type Registration = z.infer<typeof Registration>

async function registered(service: Service, body: object = {}): Promise<Registration> {
  const answer = await service.call('POST', register, {
    body: { name: '_acme-challenge.www.example.com', ...body },
    user: 'editor',
  })
  expect(answer.status).toBe(201)
  expect(answer.headers.get('cache-control')).toBe('no-store')
  return Registration.parse(answer.body)
}

const post = (service: Service, { username, password }: Registration, body: unknown, type?: string) =>
  send(service, 'POST', update, {
    headers: {
      'x-api-user': username,
      'x-api-key': password,
      ...(type ? { 'content-type': type } : {}),
    },
    body: JSON.stringify(body),
  })

test('a registration is good for its TXT name, and for nothing else', async () => {
  await using service = await start()

  const account = await registered(service)

  const { subdomain, password } = account
  const set = await post(service, account, { subdomain, txt: txt(1) })
  const other = await send(service, 'POST', '/integrations/acme/present', {
    headers: { 'x-api-key': password },
    body: JSON.stringify({ fqdn: '_acme-challenge.example.com', value: 'v' }),
  })
  const zone = await send(service, 'GET', '/api/domains/example.com/dns/hosts', {
    headers: { 'x-api-key': password },
  })
  expect(account).toMatchObject({ fulldomain: '_acme-challenge.www.example.com', allowfrom: [] })
  expect([set.status, JSON.parse(set.text)]).toEqual([200, { txt: txt(1) }])
  expect([other.status, zone.status]).toEqual([403, 403])
  expect(service.live().sort()).toEqual([`_acme-challenge.www TXT ${txt(1)} 60 10`, www])
})

test.each([
  ['application/json', { subdomain: 'S', txt: 'T' }],
  ['application/x-www-form-urlencoded', { SubDomain: 'S', TXT: 'T' }],
  [undefined, { subdomain: 'S', txt: 'T' }],
])('an update as %s %j is accepted', async (type, form) => {
  await using service = await start()
  const account = await registered(service)
  const body = JSON.parse(
    JSON.stringify(form)
      .replace('"S"', `"${account.subdomain}"`)
      .replace('"T"', `"${txt(1)}"`),
  )

  const answer = await post(service, account, body, type)

  expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { txt: txt(1) }])
})

test('the two newest values stay, and records of others too', async () => {
  await using service = await start({
    domains: [
      {
        name: 'example.com',
        hosts: [{ name: '_acme-challenge.www', type: 'TXT', address: 'of another client' }],
      },
    ],
  })
  const account = await registered(service)

  for (const digit of [1, 2, 3, 4]) await post(service, account, { subdomain: account.subdomain, txt: txt(digit) })

  expect(
    service
      .live()
      .map((line) => line.split(' ')[2])
      .sort(),
  ).toEqual([txt(3), txt(4), 'of'])
})

test.each([{ txt: 'x'.repeat(42) }, { txt: 'x'.repeat(44) }, { txt: `${'x'.repeat(42)}=` }, {}])(
  'the update %j is bad_txt',
  async (body) => {
    await using service = await start()
    const account = await registered(service)

    const answer = await post(service, account, { subdomain: account.subdomain, ...body })

    expect(answer.status).toBe(400)
    expect(JSON.parse(answer.text)).toMatchObject({ error: 'bad_txt', status: 400 })
    expect(service.live()).toEqual([www])
  },
)

test.each([{ txt: txt(1), subdomain: 'other' }, { txt: txt(1) }, { txt: 'short' }])(
  'the update %j is not for this registration, so it is forbidden',
  async (body) => {
    await using service = await start()
    const account = await registered(service)

    const answer = await post(service, account, body)

    expect(answer.status).toBe(401)
    expect(JSON.parse(answer.text)).toMatchObject({ error: 'forbidden', status: 401 })
    expect(service.live()).toEqual([www])
  },
)

test('a name can be registered twice, for two clients', async () => {
  await using service = await start()

  const [one, other] = [await registered(service), await registered(service)]

  expect(one.password).not.toBe(other.password)
  const accounts = [one, other]
  for (const [index, account] of accounts.entries())
    await post(service, account, { subdomain: account.subdomain, txt: txt(index) })
  expect(service.live()).toHaveLength(3)
})

test('a wrong key is forbidden', async () => {
  await using service = await start()
  const account = await registered(service)

  const answer = await post(service, { ...account, password: 'ds_wrong' }, { txt: txt(1) })

  expect(answer.status).toBe(401)
  expect(JSON.parse(answer.text)).toMatchObject({ error: 'forbidden' })
})

test('a registration with allowfrom works from these networks only', async () => {
  await using service = await start()
  const near = await registered(service, { allowfrom: ['127.0.0.0/8', '::1/128'] })
  const far = await registered(service, { allowfrom: ['192.0.2.0/24'] })

  const accepted = await post(service, near, { subdomain: near.subdomain, txt: txt(1) })
  const rejected = await post(service, far, { subdomain: far.subdomain, txt: txt(1) })

  expect([accepted.status, rejected.status]).toEqual([200, 401])
})

test.each([
  [{}, 400, 'validation_failed'],
  [{ name: '_acme-challenge.example.net' }, 404, 'domain_not_found'],
  [{ name: '*.example.com' }, 400, 'validation_failed'],
  [{ name: '-a.example.com' }, 400, 'validation_failed'],
  [{ name: '_acme-challenge.example.com', allowfrom: ['everywhere'] }, 400, 'validation_failed'],
])('the registration %j is refused', async (body, status, error) => {
  await using service = await start()

  const answer = await service.call('POST', register, { body })

  expect([answer.status, answer.body.error]).toEqual([status, error])
})

test('a token cannot register', async () => {
  await using service = await start()
  const token = await createToken(service, { role: 'editor' })

  const answer = await send(service, 'POST', register, {
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify({ name: '_acme-challenge.example.com' }),
  })

  expect(answer.status).toBe(403)
})

test('who may only propose cannot register, since its token could write nothing', async () => {
  await using service = await start()

  const body = { name: '_acme-challenge.example.com' }
  const answer = await service.call('POST', register, { body, user: 'proposer' })

  expect([answer.status, answer.body.error]).toEqual([403, 'forbidden'])
})

test('values that another client validates stay', async () => {
  await using service = await start()
  const account = await registered(service)
  const token = await createToken(service, { role: 'editor' })
  for (const value of ['apex', 'wildcard']) {
    await send(service, 'POST', '/integrations/acme/present', {
      headers: { 'x-api-key': token },
      body: JSON.stringify({ fqdn: account.fulldomain, value }),
    })
  }

  for (const digit of [1, 2, 3]) await post(service, account, { subdomain: account.subdomain, txt: txt(digit) })

  const values = service.live().flatMap((line) => / TXT (\S+) /.exec(line)?.[1] ?? [])
  expect(values.sort()).toEqual([txt(2), txt(3), 'apex', 'wildcard'])
})
