import type { DomainSketch } from '@domains-and-files/registrar-sandbox'
import { expect, test } from 'vitest'
import { start } from '../support/start.ts'

const many: DomainSketch[] = [
  ...Array.from({ length: 23 }, (_, n) => ({
    name: `name${String(n).padStart(2, '0')}.com`,
    created: '2020-01-02',
    expires: '2130-03-04',
  })),
  {
    name: 'example.com',
    created: '2021-02-03',
    expires: '2131-04-05',
    isLocked: true,
    autoRenew: true,
  },
  { name: 'shop.co.uk', whoisGuard: 'NOTPRESENT' },
]

test('domains are listed in pages with their properties', async () => {
  await using service = await start({ domains: many })

  const first = await service.call('GET', '/api/domains')
  const found = await service.call('GET', '/api/domains?search_term=example')

  expect(first.status).toBe(200)
  expect(first.body.domains).toHaveLength(20)
  expect(first.body.pagination).toEqual({ page: 1, page_size: 20, total_items: 25, total_pages: 2 })
  expect(found.body.domains).toEqual([
    {
      name: 'example.com',
      id: expect.stringMatching(/^\d+$/),
      created_on: '2021-02-03',
      created_at: '2021-02-03T00:00:00.000Z',
      expires_on: '2131-04-05',
      is_expired: false,
      is_locked: true,
      auto_renew: true,
      whois_guard: 'ENABLED',
      is_premium: false,
      uses_registrar_dns: true,
    },
  ])
})

test.each([
  ['page_size=3', ['example.com', 'name00.com', 'name01.com']],
  ['page_size=3&page=4', ['name08.com', 'name09.com', 'name10.com']],
  ['page_size=3&page=9', ['shop.co.uk']],
  [
    'page_size=7&page=2',
    ['name06.com', 'name07.com', 'name08.com', 'name09.com', 'name10.com', 'name11.com', 'name12.com'],
  ],
  ['page_size=1&page=25', ['shop.co.uk']],
  ['page_size=10&page=3', ['name19.com', 'name20.com', 'name21.com', 'name22.com', 'shop.co.uk']],
  ['page_size=100&page=2', []],
  ['page_size=2&sort_by=name_desc', ['shop.co.uk', 'name22.com']],
  ['page_size=2&sort=-name', ['shop.co.uk', 'name22.com']],
  ['page_size=1&sort=-created_at', ['shop.co.uk']],
  ['page_size=2&sort=-created_on', ['shop.co.uk', 'example.com']],
  ['search=EXAMPLE', ['example.com']],
  ['list_type=expired', []],
])('the list with %s', async (query, names) => {
  await using service = await start({ domains: many })

  const { status, body } = await service.call('GET', `/api/domains?${query}`)

  expect(status).toBe(200)
  expect(body.domains?.map((domain) => domain.name)).toEqual(names)
})

test.each<[string, string, string?]>([
  ['list_type=OLD', '/query/list_type'],
  ['sort_by=SIZE', '/query/sort_by'],
  ['page=0', '/query/page'],
  ['page_size=101', '/query/page_size'],
  ['search_term=', '/query/search_term'],
  [`search_term=${'x'.repeat(71)}`, '/query/search_term', '1 to 70 characters'],
  ['sort_by=NAME&sort_by=NAME', '/query/sort_by'],
  ['pageSize=5', '/query/pageSize'],
  ['search=a&search_term=a', '/query/search'],
  ['sort=name&sort_by=NAME', '/query/sort'],
  ['sort=NAME', '/query/sort'],
])('a list with %s is 400 and costs no call', async (query, path, message = '') => {
  await using service = await start()

  const { status, body } = await service.call('GET', `/api/domains?${query}`)

  expect(status).toBe(400)
  expect(body).toMatchObject({
    code: 'validation_failed',
    errors: [{ path, message: expect.stringContaining(message) }],
  })
  expect(service.commands()).toEqual([])
})

test('a user limited to some domains sees only these', async () => {
  await using service = await start({ domains: many })
  const asLimited = { user: 'limited' }

  const list = await service.call('GET', '/api/domains?page_size=1&page=2', asLimited)
  const theirs = await service.call('GET', '/api/domains/shop.co.uk/info', asLimited)
  const others = await Promise.all([
    service.call('GET', '/api/domains/name00.com/info', asLimited),
    service.call('GET', '/api/domains/name00.com/dns/hosts', asLimited),
    service.call('GET', '/api/domains/name00.com/dns/nameservers', asLimited),
    service.call('GET', '/api/domains/name00.com/dns/history', asLimited),
    service.call('PUT', '/api/domains/name00.com/dns/hosts', { ...asLimited, body: { hosts: [] } }),
    service.call('POST', '/api/domains/name00.com/dns/hosts/A', {
      ...asLimited,
      body: { name: 'a', address: '192.0.2.1' },
    }),
    service.call('DELETE', '/api/domains/name00.com/dns/hosts/000000000000', asLimited),
    // Whatever else is wrong with the request.
    service.call('GET', '/api/domains/NAME00.com/dns/hosts?colour=red', asLimited),
    service.call('PUT', '/api/domains/name00.com/dns/hosts', { ...asLimited, body: { hosts: 1 } }),
    service.call('DELETE', '/api/domains/name00.com/dns/hosts/x', asLimited),
    service.call('PUT', '/api/domains/name00.com/dns/zonefile', { ...asLimited, body: {} }),
  ])

  expect(list.body).toMatchObject({
    domains: [{ name: 'shop.co.uk' }],
    pagination: { total_items: 2, total_pages: 2 },
  })
  expect(theirs.status).toBe(200)
  expect(others.map((answer) => [answer.status, answer.body.code])).toEqual(others.map(() => [404, 'domain_not_found']))
})

test('a limited user gets a list of more than one page', async () => {
  const domains = Array.from({ length: 230 }, (_, n) => ({
    name: `name${n}.${n === 229 ? 'co.uk' : 'com'}`,
  }))
  await using service = await start({ domains })

  const { body } = await service.call('GET', '/api/domains?sort_by=CREATEDATE', { user: 'limited' })
  await service.call('GET', '/api/domains?sort_by=CREATEDATE&page=2', { user: 'limited' })

  expect(body.domains?.map((domain) => domain.name)).toEqual(['name229.co.uk'])
  expect(service.commands()).toEqual(['getlist', 'getlist', 'getlist'])
})

test('a domain is described with null for unknown values', async () => {
  await using service = await start({
    domains: [
      {
        name: 'example.com',
        created: '2021-02-03',
        expires: '2131-04-05',
        emailType: 'MX',
        hosts: [{ name: '@', type: 'MX', address: 'mx.example.net.' }],
      },
    ],
  })

  const { body } = await service.call('GET', '/api/domains/EXAMPLE.com./info')

  expect(body).toMatchObject({
    name: 'example.com',
    created_on: '2021-02-03',
    expires_on: '2131-04-05',
    is_owner: true,
    dns: {
      uses_registrar_dns: true,
      host_count: 1,
      nameservers: ['dns1.registrar-servers.com', 'dns2.registrar-servers.com'],
    },
  })
})

test('nameservers are listed, those of FreeDNS domains too', async () => {
  await using service = await start({
    domains: [
      { name: 'example.com', dns: 'custom', nameservers: ['ns1.example.net'] },
      { name: 'free.com', dns: 'free' },
    ],
  })

  const custom = await service.call('GET', '/api/domains/example.com/dns/nameservers')
  const free = await service.call('GET', '/api/domains/free.com/dns/nameservers')
  const unknown = await service.call('GET', '/api/domains/unknown.com/dns/nameservers')

  expect(custom.body).toEqual({
    domain: 'example.com',
    uses_registrar_dns: false,
    nameservers: [{ name: 'ns1.example.net' }],
  })
  expect(free.body).toMatchObject({
    domain: 'free.com',
    nameservers: expect.arrayContaining([{ name: 'freedns1.registrar-servers.com' }]),
  })
  expect(unknown).toMatchObject({ status: 404, body: { code: 'domain_not_found' } })
})

test.each([
  'sub.example.com',
  'co.uk',
  'com',
  '127.0.0.1',
  'exa%20mple.com',
  'example.com%2Fother',
  '..',
  'example..com',
])('the name %s never reaches the registrar', async (name) => {
  await using service = await start()

  const answers = await Promise.all([
    service.call('GET', `/api/domains/${name}/info`),
    service.call('PUT', `/api/domains/${name}/dns/hosts`, { body: { hosts: [] } }),
  ])

  expect(answers.every(({ status }) => status === 400 || status === 404)).toBe(true)
  expect(service.commands()).toEqual([])
})

test.each([
  ['GET', '/api/domains', undefined, 200],
  ['GET', '/api/domains/example.com/dns/hosts', undefined, 200],
  ['PUT', '/api/domains/example.com/dns/hosts', { hosts: [] }, 403],
  ['POST', '/api/domains/example.com/dns/hosts/A', { name: 'a', address: '192.0.2.1' }, 403],
  ['DELETE', '/api/domains/example.com/dns/hosts/000000000000', undefined, 403],
  ['POST', '/api/domains/example.com/dns/history/1/restore', undefined, 403],
  ['GET', '/api/registrar', undefined, 403],
])('a viewer may %s %s: %s', async (method, path, body, status) => {
  await using service = await start()

  const answer = await service.call(method, path, { user: 'viewer', ...(body ? { body } : {}) })

  expect(answer.status).toBe(status)
})

test('the state of the registrar is for admins', async () => {
  await using service = await start({ env: { REGISTRAR_RATE: '20/minute,700/hour' } })
  await service.call('GET', '/api/domains')

  const asEditor = await service.call('GET', '/api/registrar', { user: 'editor' })
  const asAdmin = await service.call('GET', '/api/registrar')

  expect(asEditor.status).toBe(403)
  expect(asAdmin.body).toMatchObject({
    breaker: 'closed',
    budget: [
      { window: 'minute', limit: 20, left: 19 },
      { window: 'hour', limit: 700, left: 699 },
    ],
    calls: expect.arrayContaining([expect.objectContaining({ calls: 1, reads: 1 })]),
    last_failure: null,
  })
})

test.each([
  ['GET', '/api/domains'],
  ['GET', '/api/domains/example.com/info'],
  ['PUT', '/api/domains/example.com/dns/hosts'],
  ['POST', '/api/domains/example.com/dns/hosts/A'],
  ['GET', '/api/registrar'],
])('%s %s without a token is 401 and costs no call', async (method, path) => {
  await using service = await start()

  const answer = await fetch(service.url + path, { method })

  expect(answer.status).toBe(401)
  expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/)
  expect(service.commands()).toEqual([])
})

test.each([
  ['DELETE', '/api/domains', 'GET, HEAD'],
  ['POST', '/api/domains/example.com/dns/hosts', 'GET, HEAD, PATCH, PUT'],
  ['PUT', '/api/domains/example.com/dns/hosts/A', 'DELETE, GET, HEAD, PATCH, POST'],
  ['PUT', '/api/domains/example.com/info', 'GET, HEAD'],
  ['GET', '/api/auth/login', 'POST'],
])('%s %s is a 405', async (method, path, allow) => {
  await using service = await start()

  const answer = await service.call(method, path)

  expect(answer.status).toBe(405)
  expect(answer.headers.get('allow')).toBe(allow)
})

test('the OpenAPI document has the paths, and the docs page is served', async () => {
  await using service = await start()

  const { body } = await service.call('GET', '/openapi.json')

  expect(Object.keys(body.paths ?? {})).toEqual(
    expect.arrayContaining([
      '/api/changes',
      '/api/changes/{id}',
      '/api/domains',
      '/api/domains/{domain}/dns/history',
      '/api/domains/{domain}/dns/history/{id}',
      '/api/domains/{domain}/dns/history/{id}/restore',
      '/api/domains/{domain}/dns/history/{id}/revert',
      '/api/domains/{domain}/dns/hosts',
      '/api/domains/{domain}/dns/hosts/{record}',
      '/api/domains/{domain}/dns/nameservers',
      '/api/domains/{domain}/dns/rrsets',
      '/api/domains/{domain}/dns/rrsets/{name}/{type}',
      '/api/domains/{domain}/dns/zonefile',
      '/api/domains/{domain}/info',
      '/api/registrar',
    ]),
  )
  expect((await fetch(`${service.url}/docs`)).status).toBe(200)
})
