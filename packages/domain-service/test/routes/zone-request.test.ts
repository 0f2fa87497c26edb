import { expect, test } from 'vitest'
import { start, www } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'

test('a zone that changed since it was read is not overwritten', async () => {
  await using service = await start()
  const { headers } = await service.call('GET', hosts)
  const ifMatch = { 'if-match': headers.get('etag') ?? '' }
  await service.sandbox.setZone('example.com', {
    hosts: [www, { name: 'panel', type: 'A', address: '192.0.2.5' }],
  })

  const refused = await Promise.all([
    service.call('PUT', hosts, { headers: ifMatch, body: { hosts: [] } }),
    service.call('POST', `${hosts}/A`, {
      headers: ifMatch,
      body: { name: 'a', address: '192.0.2.1' },
    }),
    service.call('DELETE', `${hosts}/000000000000`, { headers: ifMatch }),
  ])
  const current = refused[0]?.headers.get('etag') ?? ''
  const taken = await service.call('PUT', hosts, {
    headers: { 'if-match': `"x", ${current}` },
    body: { hosts: [] },
  })
  const any = await service.call('PUT', hosts, {
    headers: { 'if-match': '*' },
    body: { hosts: [] },
  })

  expect(refused.map(({ status, body }) => [status, body.code])).toEqual(
    refused.map(() => [412, 'precondition_failed']),
  )
  expect(current).not.toBe(headers.get('etag'))
  expect([taken.status, any.status]).toEqual([200, 200])
})

test('a dry run answers the result, is never queued, and writes nothing', async () => {
  await using service = await start()

  const put = await service.call('PUT', `${hosts}?dry_run=true`, {
    headers: { prefer: 'respond-async' },
    body: { hosts: [] },
  })
  const post = await service.call('POST', `${hosts}/A?dry_run=true`, {
    body: { name: 'a', address: '192.0.2.1' },
  })
  const refused = await service.call('POST', `${hosts}/A?dry_run=true`, {
    body: { name: 'www', address: '192.0.2.1' },
  })
  const unclear = await service.call('PUT', `${hosts}?dry_run=perhaps`, { body: { hosts: [] } })

  expect(put.body).toMatchObject({
    dry_run: true,
    hosts: [],
    changes: { removed: [{ name: 'www' }] },
  })
  expect(post).toMatchObject({ status: 201, body: { dry_run: true, name: 'a' } })
  expect(refused.status).toBe(409)
  expect(unclear).toMatchObject({ status: 400, body: { errors: [{ path: '/query/dry_run' }] } })
  expect(service.commands().filter((command) => command === 'dns.sethosts')).toEqual([])
  expect((await service.call('GET', '/api/domains/example.com/dns/history')).body.history).toEqual([])
})

test('records of unsupported types are lost only with force=true', async () => {
  const srv = { name: '_sip._tcp', type: 'SRV', address: '0 5 5060 sip.example.net.' }
  await using service = await start({ domains: [{ name: 'example.com', hosts: [www, srv, srv] }] })

  const refused = await service.call('POST', `${hosts}/A`, {
    body: { name: 'a', address: '192.0.2.1' },
  })
  const meant = await service.call('POST', `${hosts}/A?force=true`, {
    body: { name: 'a', address: '192.0.2.1' },
  })

  expect(refused).toMatchObject({
    status: 409,
    body: { code: 'unsupported_records', detail: expect.stringContaining('_sip._tcp SRV') },
  })
  expect(meant).toMatchObject({
    status: 201,
    body: { warnings: Array(2).fill(expect.stringMatching(/^_sip\._tcp SRV .* is removed/)) },
  })
  expect(service.live()).toEqual(['a A 192.0.2.1 1800 10', 'www A 192.0.2.1 1800 10'])
})

test('a record that loses its dynamic-DNS flag causes a warning', async () => {
  await using service = await start({
    domains: [{ name: 'example.com', hosts: [{ ...www, isDdns: true }] }],
  })

  const { body } = await service.call('POST', `${hosts}/A`, {
    body: { name: 'a', address: '192.0.2.1' },
  })

  expect(body.warnings).toEqual(['www A 192.0.2.1 loses its dynamic-DNS flag'])
})

test.each(['error', 'stale'] as const)('a domain on other nameservers is not written (%s)', async (whenElsewhere) => {
  await using service = await start({
    domains: [
      {
        name: 'example.com',
        dns: 'custom',
        nameservers: ['ns1.example.net'],
        whenElsewhere,
        hosts: [www],
      },
    ],
  })

  const { status, body } = await service.call('PUT', hosts, { body: { hosts: [] } })

  expect([status, body.code]).toEqual([409, 'dns_not_managed'])
  expect(service.commands()).not.toContain('dns.sethosts')
})

test('an unknown domain is a 404, a domain without the right to change it a 403', async () => {
  await using service = await start({
    domains: [{ name: 'shared.com', isOwner: false, rights: ['dns'], hosts: [www] }],
  })
  const body = { hosts: [] }

  const unknown = await service.call('PUT', hosts, { body })
  const shared = await service.call('PUT', '/api/domains/shared.com/dns/hosts', { body })

  expect([unknown.status, unknown.body.code]).toEqual([404, 'domain_not_found'])
  expect([shared.status, shared.body.code]).toEqual([403, 'domain_not_editable'])
})
