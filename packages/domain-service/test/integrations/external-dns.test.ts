import { expect, test } from 'vitest'
import { basic, createToken, send } from '../support/protocol-client.ts'
import { type Service, start } from '../support/start.ts'

const base = '/integrations/external-dns'
const mediaType = 'application/external.dns.webhook+json;version=1'
const domains = [
  {
    name: 'example.com',
    emailType: 'MX' as const,
    hosts: [
      { name: '@', type: 'MX', address: 'mx.example.net', mxPref: 10 },
      { name: 'www', type: 'A', address: '192.0.2.1', ttl: 300 },
      { name: 'www', type: 'A', address: '192.0.2.2', ttl: 300 },
      { name: 'a', type: 'TXT', address: 'heritage=external-dns,external-dns/owner=o' },
      { name: 'go', type: 'URL', address: 'https://example.net/' },
    ],
  },
  { name: 'example.net', hosts: [] },
]

interface Options {
  token?: string
  body?: unknown
}

async function call(service: Service, method: string, path: string, options: Options = {}) {
  const { token = await createToken(service, { role: 'editor' }), body } = options
  return send(service, method, base + path, {
    headers: { ...basic(token), 'content-type': mediaType },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

const endpoint = (dnsName: string, recordType: string, targets: string[], recordTTL?: number) => ({
  dnsName,
  recordType,
  targets,
  ...(recordTTL === undefined ? {} : { recordTTL }),
})

test.each([[''], ['/']])('negotiation at the base%s lists the domains of the token', async (path) => {
  await using service = await start({ domains })
  const all = await call(service, 'GET', path)
  const token = await createToken(service, { role: 'editor', domains: ['example.net'] })
  const one = await call(service, 'GET', path, { token })

  expect([all.status, all.type]).toEqual([200, mediaType])
  expect(JSON.parse(all.text)).toEqual({ include: ['example.com', 'example.net'], exclude: [] })
  expect(JSON.parse(one.text)).toEqual({ include: ['example.net'], exclude: [] })
})

test('EXTERNAL_DNS_DOMAINS limits the domains', async () => {
  await using service = await start({ domains, env: { EXTERNAL_DNS_DOMAINS: 'Example.NET' } })

  const domainsOf = await call(service, 'GET', '')
  const outside = await call(service, 'POST', '/records', {
    body: { create: [endpoint('a.example.com', 'A', ['192.0.2.9'])] },
  })

  expect(JSON.parse(domainsOf.text).include).toEqual(['example.net'])
  expect(outside.status).toBe(400)
})

test('EXTERNAL_DNS_DOMAINS shows a token no domain that it may not see', async () => {
  const env = { EXTERNAL_DNS_DOMAINS: 'example.com,example.net' }
  await using service = await start({ domains, env })
  const token = await createToken(service, { role: 'editor', domains: ['example.net'] })
  const create = [endpoint('a.example.com', 'A', ['192.0.2.9'])]

  const domainsOf = await call(service, 'GET', '', { token })
  const records = await call(service, 'GET', '/records', { token })
  const outside = await call(service, 'POST', '/records', { token, body: { create } })

  expect(JSON.parse(domainsOf.text).include).toEqual(['example.net'])
  expect(JSON.parse(records.text)).toEqual([])
  expect(outside.status).toBe(400)
  expect(service.commands()).not.toContain('dns.sethosts')
})

test('records are the endpoints of the types that external-dns knows', async () => {
  await using service = await start({ domains })

  const answer = await call(service, 'GET', '/records')

  expect([answer.status, answer.type]).toEqual([200, mediaType])
  expect(JSON.parse(answer.text)).toEqual([
    endpoint('example.com', 'MX', ['10 mx.example.net'], 1800),
    endpoint('a.example.com', 'TXT', ['heritage=external-dns,external-dns/owner=o'], 1800),
    endpoint('www.example.com', 'A', ['192.0.2.1', '192.0.2.2'], 300),
  ])
})

test('a domain on other nameservers is left out and does not stop the others', async () => {
  const moved = {
    name: 'example.org',
    dns: 'custom' as const,
    nameservers: ['ns1.example.net'],
    hosts: [],
  }
  await using service = await start({ domains: [...domains, moved] })
  const token = await createToken(service, { role: 'editor', domains: ['example.org'] })

  const include = await call(service, 'GET', '')
  await service.sandbox.setZone('example.net', { dns: 'custom', nameservers: moved.nameservers })
  const all = await call(service, 'GET', '/records')
  const named = await call(service, 'GET', '/records', { token })

  expect(JSON.parse(include.text).include).toEqual(['example.com', 'example.net'])
  expect([all.status, JSON.parse(all.text).length]).toEqual([200, 3])
  expect([named.status, named.text]).toEqual([200, '[]'])
})

test('a plan is one write per domain, ownership records included', async () => {
  await using service = await start({ domains })

  const answer = await call(service, 'POST', '/records', {
    body: {
      create: [
        endpoint('new.example.com', 'CNAME', ['lb.example.org.'], 60),
        endpoint('a-new.example.com', 'TXT', ['"heritage=external-dns,external-dns/owner=o"']),
        endpoint('*.example.net', 'A', ['192.0.2.7']),
        endpoint('example.net', 'MX', ['5 mx.example.org']),
      ],
      updateOld: [endpoint('www.example.com', 'A', ['192.0.2.1', '192.0.2.2'], 300)],
      updateNew: [endpoint('www.example.com', 'A', ['192.0.2.2', '192.0.2.3'], 120)],
      delete: [endpoint('a.example.com', 'TXT', ['"heritage=external-dns,external-dns/owner=o"'])],
    },
  })

  expect([answer.status, answer.text]).toEqual([204, ''])
  expect(service.live().sort()).toEqual([
    '@ MX mx.example.net 1800 10',
    'a-new TXT heritage=external-dns,external-dns/owner=o 1800 10',
    'go URL https://example.net/ 1800 10',
    'new CNAME lb.example.org. 60 10',
    'www A 192.0.2.2 120 10',
    'www A 192.0.2.3 120 10',
  ])
  expect(service.live('example.net').sort()).toEqual(['* A 192.0.2.7 1800 10', '@ MX mx.example.org. 1800 5'])
  expect(service.commands().filter((each) => each === 'dns.sethosts')).toHaveLength(2)
})

test.each([
  [
    {
      Create: [{ DNSName: 'b.example.com', RecordType: 'A', Targets: ['192.0.2.9'], RecordTTL: 60 }],
      UpdateOld: null,
      UpdateNew: null,
      Delete: null,
    },
    ['b A 192.0.2.9 60 10'],
  ],
  [{ create: [endpoint('b.example.com', 'A', ['192.0.2.9'], 0)] }, ['b A 192.0.2.9 1800 10']],
  [{}, []],
])('the changes %j are accepted', async (body, added) => {
  await using service = await start({ domains })
  const before = service.live()

  const answer = await call(service, 'POST', '/records', { body })

  expect(answer.status).toBe(204)
  expect(service.live().filter((line) => !before.includes(line))).toEqual(added)
})

test('a plan that is done already costs no call', async () => {
  await using service = await start({ domains, env: { CACHE_TTL_MS: '600000' } })
  const body = { create: [endpoint('b.example.com', 'A', ['192.0.2.9'])] }
  await call(service, 'POST', '/records', { body })
  const calls = () => service.commands().filter((each) => each.startsWith('dns.')).length
  const before = calls()

  const again = await call(service, 'POST', '/records', { body })

  expect([again.status, calls()]).toEqual([204, before])
})

test('endpoints are adjusted to what the registrar stores, and keep their other fields', async () => {
  await using service = await start({ domains })
  const rest = { labels: { owner: 'o' }, setIdentifier: 's', providerSpecific: [{ name: 'n' }] }

  const answer = await call(service, 'POST', '/adjustendpoints', {
    body: [
      { ...endpoint('WWW.example.com.', 'CNAME', ['LB.Example.org.'], 5), ...rest },
      endpoint('a.example.com', 'TXT', ['"Quoted"'], 100_000),
      endpoint('b.example.com', 'A', ['192.0.2.1'], 0),
    ],
  })

  expect([answer.status, answer.type]).toEqual([200, mediaType])
  expect(JSON.parse(answer.text)).toEqual([
    { ...endpoint('www.example.com', 'CNAME', ['lb.example.org'], 60), ...rest },
    endpoint('a.example.com', 'TXT', ['Quoted'], 60_000),
    endpoint('b.example.com', 'A', ['192.0.2.1'], 0),
  ])
})

test.each([
  ['what can never succeed', endpoint('x.example.org', 'A', ['192.0.2.1']), 400],
  ['a bad address', endpoint('x.example.com', 'A', ['bad']), 400],
  ['a conflict with a live record', endpoint('www.example.com', 'CNAME', ['a.example.org']), 503],
])('%s is %3$i', async (_name, create, status) => {
  await using service = await start({ domains })

  const answer = await call(service, 'POST', '/records', { body: { create: [create] } })

  expect(answer.status).toBe(status)
  expect(answer.type).toBe('application/problem+json')
})

test.each([2030166, 2019166, 3013288])('what others can change is 5xx: error %i', async (number) => {
  await using service = await start({ domains })
  const token = await createToken(service, { role: 'editor' })
  await call(service, 'GET', '', { token })
  service.sandbox.fault({ kind: 'error', number, command: 'namecheap.domains.dns.sethosts' })

  const answer = await call(service, 'POST', '/records', {
    token,
    body: { create: [endpoint('b.example.com', 'A', ['192.0.2.9'])] },
  })

  expect(answer.status).toBe(503)
})

test('a refused plan names its faults where they are in the request', async () => {
  await using service = await start({ domains })
  const good = endpoint('x.example.com', 'A', ['192.0.2.1'])

  const elsewhere = await call(service, 'POST', '/records', {
    body: { delete: [good], updateNew: [good, endpoint('x.example.org', 'A', ['192.0.2.1'])] },
  })
  const invalid = await call(service, 'POST', '/records', {
    body: {
      create: [good, endpoint('-y.example.com', 'A', ['192.0.2.1', 'bad'])],
      updateNew: [endpoint('z.example.com', 'SRV', ['1 2 3 a.example.org'])],
    },
  })
  const shapeless = await call(service, 'POST', '/records', { body: [] })

  const pathsOf = ({ text }: { text: string }) => JSON.parse(text).errors.map(({ path }: { path: string }) => path)
  expect(pathsOf(elsewhere)).toEqual(['/updateNew/1/dnsName'])
  expect(new Set(pathsOf(invalid))).toEqual(
    new Set(['/create/1/dnsName', '/create/1/targets/1', '/updateNew/0/recordType']),
  )
  expect(JSON.parse(shapeless.text).detail).toBe('The body: must be an object')
})

test('a registrar that fails is 5xx, while other domains are done', async () => {
  await using service = await start({ domains })
  const token = await createToken(service, { role: 'editor' })
  await call(service, 'GET', '', { token })
  // What it answers about one domain does not open the circuit, which could stop the other.
  service.sandbox.fault({ kind: 'error', number: 3050900, domain: 'example.com', times: 0 })

  const answer = await call(service, 'POST', '/records', {
    token,
    body: {
      create: [endpoint('b.example.com', 'A', ['192.0.2.9']), endpoint('b.example.net', 'A', ['192.0.2.9'])],
    },
  })

  expect(answer.status).toBe(502)
  expect(service.live('example.net')).toEqual(['b A 192.0.2.9 1800 10'])
})

test('a plan with a part that can never succeed is 5xx as long as another part may', async () => {
  await using service = await start({ domains })
  const token = await createToken(service, { role: 'editor' })
  service.sandbox.fault({ kind: 'error', number: 3050900, domain: 'example.com', times: 0 })
  const create = [endpoint('b.example.net', 'A', ['b']), endpoint('b.example.com', 'AAAA', ['::1'])]

  const answer = await call(service, 'POST', '/records', { token, body: { create } })

  expect(answer.status).toBe(502)
})

test('a viewer reads, and may not write', async () => {
  await using service = await start({ domains })
  const token = await createToken(service)

  const read = await call(service, 'GET', '/records', { token })
  const written = await call(service, 'POST', '/records', { token, body: {} })

  expect([read.status, written.status]).toEqual([200, 403])
})

test('a token with role and records writes only these', async () => {
  await using service = await start({ domains })
  const records = [{ name: 'apps.*', types: ['A', 'TXT'] }]
  const token = await createToken(service, { role: 'editor', records })
  const create = (name: string) =>
    call(service, 'POST', '/records', {
      token,
      body: { create: [endpoint(`${name}.example.com`, 'A', ['192.0.2.9'])] },
    })

  const read = await call(service, 'GET', '/records', { token })
  const inside = await create('apps.one')
  const outside = await create('www')

  expect([read.status, inside.status, outside.status]).toEqual([200, 204, 403])
})

test('no endpoints, which Go writes as null, need no adjustment', async () => {
  await using service = await start({ domains })

  const answer = await call(service, 'POST', '/adjustendpoints', { body: null })

  expect([answer.status, answer.type, answer.text]).toEqual([200, mediaType, '[]'])
})

test.each(['/records', '/adjustendpoints'])('a body of %s with more than 50,000 values is refused', async (path) => {
  await using service = await start({ domains })
  const body = Object.fromEntries(Array.from({ length: 50_001 }, (_, n) => [n, 0]))

  const answer = await call(service, 'POST', path, { body })

  expect([answer.status, JSON.parse(answer.text).code]).toEqual([413, 'body_too_large'])
})
