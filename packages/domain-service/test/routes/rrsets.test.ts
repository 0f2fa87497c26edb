import { expect, test } from 'vitest'
import { start, www } from '../support/start.ts'

const rrsets = '/api/domains/example.com/dns/rrsets'
const mail = { name: '@', type: 'MX', address: 'mx1.example.net', mxPref: 10 }
const domains = [{ name: 'example.com', emailType: 'MX' as const, hosts: [www, mail] }]

test('the RRsets of a domain are listed, and filtered by name and type', async () => {
  await using service = await start({ domains })

  const all = await service.call('GET', rrsets, { user: 'viewer' })
  const byName = await service.call('GET', `${rrsets}?name=WWW`)
  const byType = await service.call('GET', `${rrsets}?type=mx`)
  const zone = await service.call('GET', '/api/domains/example.com/dns/hosts')

  const [mx, a] = [
    { name: '@', type: 'MX', ttl: 1800, values: ['10 mx1.example.net'] },
    { name: 'www', type: 'A', ttl: 1800, values: ['192.0.2.1'] },
  ]
  expect(all.body).toEqual({ domain: 'example.com', rrsets: [mx, a] })
  expect(byName.body).toMatchObject({ rrsets: [a] })
  expect(byType.body).toMatchObject({ rrsets: [mx] })
  expect(all.headers.get('etag')).toBe(zone.headers.get('etag'))
})

test('a dry run of a removal answers what would change, and removes nothing', async () => {
  await using service = await start({ domains })

  const tried = await service.call('DELETE', `${rrsets}/www/A?dry_run=true`)
  const absent = await service.call('DELETE', `${rrsets}/none/A?dry_run=true`)

  expect(tried).toMatchObject({
    status: 200,
    body: {
      dry_run: true,
      hosts: [{ type: 'MX' }],
      changes: { added: [], removed: [{ name: 'www', type: 'A' }], kept: 1 },
    },
  })
  expect(absent).toMatchObject({ status: 200, body: { changes: { removed: [], kept: 2 } } })
  expect(service.commands()).not.toContain('dns.sethosts')
})

test('a filter by a type that no record can have is refused', async () => {
  await using service = await start({ domains })

  for (const path of [rrsets, '/api/records']) {
    const typo = await service.call('GET', `${path}?type=CNAM`)
    expect(typo).toMatchObject({ status: 400, body: { errors: [{ path: '/query/type' }] } })
    expect((await service.call('GET', `${path}?type=srv`)).status).toBe(200)
  }
})

test('RRsets that have not changed are a 304', async () => {
  await using service = await start({ domains })
  const { headers } = await service.call('GET', rrsets)

  const again = await service.call('GET', rrsets, {
    headers: { 'if-none-match': String(headers.get('etag')) },
  })

  expect(again.status).toBe(304)
})

test('faults that the schema finds come with those of the path, the TTL and the values', async () => {
  await using service = await start({ domains })

  const { status, body } = await service.call('PUT', `${rrsets}/-x/A`, {
    body: { ttl: 5, values: ['192.0.2.1', '1.2.3', 5], color: 'red' },
  })

  expect(status).toBe(400)
  expect(body.errors?.map(({ path }) => path).sort()).toEqual([
    '/color',
    '/path/name',
    '/ttl',
    '/values/1',
    '/values/2',
  ])
  expect(service.commands()).toEqual([])
})

test('a fault of the path hides none of a name that includes the domain', async () => {
  await using service = await start({ domains })

  const { status, body } = await service.call('PUT', '/api/domains/Example.COM./dns/rrsets/www.example.com/B', {
    body: { values: ['192.0.2.1'] },
  })

  expect([status, body.errors?.map(({ path }) => path)]).toEqual([400, ['/path/type', '/path/name']])
})

test('an RRset is made, set, read and removed', async () => {
  await using service = await start({ domains })
  const path = `${rrsets}/API/a`

  const made = await service.call('PUT', path, { body: { ttl: 60, values: ['192.0.2.8'] } })
  const set = await service.call('PUT', path, {
    body: { values: ['192.0.2.9', '192.0.2.8'] },
    headers: { 'if-match': String(made.headers.get('etag')) },
  })
  const read = await service.call('GET', path)
  const removed = await service.call('DELETE', path)
  const gone = await service.call('GET', path)

  const rrset = { name: 'api', type: 'A', ttl: 60, values: ['192.0.2.8', '192.0.2.9'] }
  expect([made.status, made.body]).toEqual([201, { ...rrset, values: ['192.0.2.8'] }])
  expect([set.status, set.body]).toEqual([200, rrset])
  expect([read.status, read.body]).toEqual([200, rrset])
  expect([removed.status, removed.text]).toEqual([204, ''])
  expect([gone.status, gone.body.code]).toEqual([404, 'record_not_found'])
})

test('an RRset that is so already, or is gone already, is no write', async () => {
  await using service = await start({ domains })
  const { body } = await service.call('GET', `${rrsets}/@/MX`)

  const same = await service.call('PUT', `${rrsets}/@/MX`, { body })
  const none = await service.call('DELETE', `${rrsets}/none/TXT`)

  expect([same.status, none.status]).toEqual([200, 204])
  expect(service.commands()).not.toContain('dns.sethosts')
})

test('If-None-Match: * creates an RRset and never replaces one; a removal ignores it', async () => {
  await using service = await start({ domains })
  const request = { body: { values: ['192.0.2.9'] }, headers: { 'if-none-match': '*' } }

  const created = await service.call('PUT', `${rrsets}/api/A`, request)
  const refused = await service.call('PUT', `${rrsets}/www/A`, request)
  const removed = await service.call('DELETE', `${rrsets}/api/A`, { headers: request.headers })

  expect([created.status, removed.status]).toEqual([201, 204])
  expect([refused.status, refused.body.code]).toEqual([412, 'precondition_failed'])
})

test('an RRset of mixed TTLs can be sent back as it was read', async () => {
  const second = { ...mail, address: 'mx2.example.net', ttl: 60 }
  await using service = await start({
    domains: [{ name: 'example.com', emailType: 'MX', hosts: [mail, second] }],
  })
  const { body } = await service.call('GET', `${rrsets}/@/MX`)

  const same = await service.call('PUT', `${rrsets}/@/MX`, { body })

  expect(body).toMatchObject({ ttl: 60, mixed_ttl: true })
  expect([same.status, same.body]).toEqual([200, body])
  expect(service.commands()).not.toContain('dns.sethosts')
})

test('a value that is added to an RRset of mixed TTLs takes the ttl that comes with it', async () => {
  const other = { ...www, address: '192.0.2.2', ttl: 60 }
  await using service = await start({ domains: [{ name: 'example.com', emailType: 'NONE', hosts: [www, other] }] })
  const put = (name: string, values: string[]) =>
    service.call('PUT', `${rrsets}/${name}/A`, { body: { ttl: 60, mixed_ttl: true, values } })

  const kept = await put('www', ['192.0.2.1', '192.0.2.9'])
  const created = await put('api', ['192.0.2.8'])

  expect(kept.body).toMatchObject({ ttl: 60, mixed_ttl: true, values: ['192.0.2.1', '192.0.2.9'] })
  expect(created.body).toMatchObject({ ttl: 60 })
})

test('a new preference leaves the TTL of an MX record in an RRset of mixed TTLs alone', async () => {
  const other = { ...mail, address: 'mx2.example.net', ttl: 60 }
  await using service = await start({ domains: [{ name: 'example.com', emailType: 'MX', hosts: [mail, other] }] })
  const { body } = await service.call('GET', `${rrsets}/@/MX`)

  const { status } = await service.call('PUT', `${rrsets}/@/MX`, {
    body: { ...body, values: ['5 mx1.example.net', '10 mx2.example.net'] },
  })

  expect(status).toBe(200)
  expect(service.live().sort()).toEqual(['@ MX mx1.example.net. 1800 5', '@ MX mx2.example.net 60 10'])
})

test('a ttl beside mixed_ttl is validated', async () => {
  await using service = await start({ domains })

  const { status, body } = await service.call('PUT', `${rrsets}/api/A`, {
    body: { ttl: 5, mixed_ttl: true, values: ['192.0.2.8'] },
  })

  expect([status, body.errors?.map(({ path }) => path)]).toEqual([400, ['/ttl']])
})

test.each([
  ['PUT', 'a/SRV', { values: ['x'] }, 400, ['/path/type']],
  ['PUT', 'a/A', { values: ['x'], ttl: 5 }, 400, ['/values/0', '/ttl']],
  ['PUT', 'a/A', { values: [] }, 400, ['/values']],
  ['PUT', 'a/MX', { values: ['10 mx.example.net', '20 single'], ttl: 'x' }, 400, ['/values/1', '/ttl']],
  ['PUT', 'a/A', { values: 'x' }, 400, ['/values']],
  ['PUT', 'a%20b/A', { values: ['192.0.2.1'] }, 400, ['/path/name']],
  ['PUT', 'a/A', { values: ['192.0.2.1'], name: 'b', type: 'TXT' }, 400, ['/name', '/type']],
  ['PUT', 'www/CNAME', { values: ['a.example.net'] }, 409, undefined],
  ['DELETE', 'a/SRV', undefined, 400, ['/path/type']],
  ['DELETE', 'www.example.com/A', undefined, 400, ['/path/name']],
])('%s of %s %j is refused: %i %j', async (method, path, body, status, paths) => {
  await using service = await start({ domains })

  const answer = await service.call(method, `${rrsets}/${path}`, body === undefined ? {} : { body })

  expect(answer.status).toBe(status)
  expect(answer.body.errors?.map((fault) => fault.path).sort()).toEqual(paths?.sort())
  expect(service.commands()).not.toContain('dns.sethosts')
})

test('a first MX that would end e-mail forwarding needs email_type', async () => {
  await using service = await start({
    domains: [{ name: 'example.com', emailType: 'FWD', hosts: [www] }],
  })
  const body = { values: ['10 mx1.example.net'] }

  const refused = await service.call('PUT', `${rrsets}/@/MX`, { body })
  const accepted = await service.call('PUT', `${rrsets}/@/MX`, {
    body: { ...body, email_type: 'MX' },
  })

  expect([refused.status, refused.body.code]).toEqual([409, 'email_type_conflict'])
  expect(accepted.status).toBe(201)
})
