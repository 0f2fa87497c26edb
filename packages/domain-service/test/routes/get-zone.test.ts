import { expect, test } from 'vitest'
import { start, www } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const mx = { name: '@', type: 'MX', address: 'mx.example.net.', mxPref: 5 }

test('a zone is answered in order, with an ETag', async () => {
  await using service = await start({
    domains: [
      {
        name: 'example.com',
        emailType: 'MX',
        hosts: [www, mx, { name: '@', type: 'TXT', address: 'v=spf1 -all', ttl: 60 }],
      },
    ],
  })

  const { status, headers, body } = await service.call('GET', hosts)

  expect(status).toBe(200)
  expect(headers.get('etag')).toMatch(/^"[\w-]{32}"$/)
  expect(headers.get('age')).toBe('0')
  expect(body).toEqual({
    domain: 'example.com',
    uses_registrar_dns: true,
    email_type: 'MX',
    hosts: [
      {
        id: expect.stringMatching(/^[0-9a-f]{12}$/),
        name: '@',
        type: 'MX',
        address: 'mx.example.net',
        ttl: 1800,
        mx_pref: 5,
      },
      {
        id: expect.stringMatching(/^[0-9a-f]{12}$/),
        name: '@',
        type: 'TXT',
        address: 'v=spf1 -all',
        ttl: 60,
      },
      {
        id: expect.stringMatching(/^[0-9a-f]{12}$/),
        name: 'www',
        type: 'A',
        address: '192.0.2.1',
        ttl: 1800,
      },
    ],
  })
})

test.each(['dns/hosts/{id}', 'dns/rrsets/www/A'])('an unchanged %s is a 304', async (path) => {
  await using service = await start()
  const zone = await service.call('GET', hosts)
  const url = `/api/domains/example.com/${path.replace('{id}', String(zone.body.hosts?.[0]?.id))}`
  const etag = zone.headers.get('etag') ?? ''

  const same = await service.call('GET', url, { headers: { 'if-none-match': etag } })
  const other = await service.call('GET', url, { headers: { 'if-none-match': '"other"' } })

  expect([same.status, same.text, same.headers.get('etag')]).toEqual([304, '', etag])
  expect([other.status, other.headers.get('etag')]).toEqual([200, etag])
})

test('an unchanged zone is a 304, a cached one costs no call, no-cache reads the registrar', async () => {
  await using service = await start()
  const first = await service.call('GET', hosts)
  const etag = first.headers.get('etag') ?? ''

  const same = await service.call('GET', hosts, {
    headers: { 'if-none-match': `"other", W/${etag}` },
  })
  const other = await service.call('GET', hosts, { headers: { 'if-none-match': '"other"' } })
  const callsBefore = service.commands()
  await service.sandbox.setZone('example.com', { hosts: [] })
  const fresh = await service.call('GET', hosts, { headers: { 'cache-control': 'no-cache' } })
  await service.call('GET', hosts, { headers: { 'cache-control': 'max-age=0' } })

  expect([same.status, other.status]).toEqual([304, 200])
  expect(same.headers.get('etag')).toBe(etag)
  expect(callsBefore).toEqual(['dns.gethosts'])
  expect(fresh.body.hosts).toEqual([])
  expect(service.commands()).toHaveLength(3)
})
