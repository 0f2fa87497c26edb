import { expect, test } from 'vitest'
import { driveClock } from '../support/drive-clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { realRate, start, www } from '../support/start.ts'

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
  const unmet = await service.call('GET', url, { headers: { 'if-match': '"other"' } })

  expect([unmet.status, unmet.body.code]).toEqual([412, 'precondition_failed'])
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

test('a reader who was refused comes back when told and is answered, however much others read, at the real rate', async () => {
  const clock = new FakeClock()
  const names = Array.from({ length: 21 }, (_, n) => `domain${n}.com`)
  const domains = names.map((name) => ({ name, hosts: [www] }))
  await using service = await start({ clock, domains, env: { REGISTRAR_RATE: realRate } })
  const read = (name: string, user: string) => service.call('GET', `/api/domains/${name}/dns/hosts`, { user })
  const [own = '', ...others] = names
  await Promise.all(others.slice(0, 10).map((name) => read(name, 'editor')))

  const refused = await read(own, 'viewer')
  await clock.advance(Number(refused.headers.get('retry-after')) * 1_000)
  const crowd = Promise.all(others.slice(10).map((name) => read(name, 'editor')))
  const again = await driveClock(clock, service, read(own, 'viewer'))
  await driveClock(clock, service, crowd)

  expect([refused.status, refused.body.code, again.status]).toEqual([503, 'registrar_busy', 200])
})
