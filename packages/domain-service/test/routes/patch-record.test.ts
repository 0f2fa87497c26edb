import { expect, test } from 'vitest'
import { start, www } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'

test('a record is patched: other fields stay, the id may be new, the ETag is that of the zone', async () => {
  await using service = await start({
    domains: [{ name: 'example.com', hosts: [{ ...www, ttl: 300 }] }],
  })
  const before = await service.call('GET', hosts)
  const id = before.body.hosts?.[0]?.id

  const patched = await service.call('PATCH', `${hosts}/${id}`, { body: { address: '192.0.2.7' } })

  const after = await service.call('GET', hosts)
  expect(patched.status).toBe(200)
  expect(patched.body).toEqual(after.body.hosts?.[0])
  expect(patched.body).toMatchObject({ name: 'www', address: '192.0.2.7', ttl: 300 })
  expect(patched.body.id).not.toBe(id)
  expect(patched.headers.get('location')).toBe(`${hosts}/${patched.body.id}`)
  expect(patched.headers.get('etag')).toBe(after.headers.get('etag'))
  expect(service.live()).toEqual(['www A 192.0.2.7 300 10'])
})

test.each([['application/json'], ['application/merge-patch+json']])('null resets the TTL, as %s', async (type) => {
  await using service = await start({
    domains: [{ name: 'example.com', hosts: [{ ...www, ttl: 300 }] }],
  })
  const { body } = await service.call('GET', hosts)

  const patched = await service.call('PATCH', `${hosts}/${body.hosts?.[0]?.id}`, {
    body: { ttl: null },
    headers: { 'content-type': type },
  })

  expect([patched.status, patched.body.ttl]).toEqual([200, 1800])
  expect(service.live()).toEqual(['www A 192.0.2.1 1800 10'])
})

test('a patch that changes nothing answers the record and writes nothing', async () => {
  await using service = await start()
  const { body } = await service.call('GET', hosts)
  const record = body.hosts?.[0]

  const patched = await service.call('PATCH', `${hosts}/${record?.id}`, { body: record })

  expect([patched.status, patched.body]).toEqual([200, record])
  expect(service.commands()).not.toContain('dns.sethosts')
})

test('a dry run of a patch writes nothing', async () => {
  await using service = await start()
  const { body } = await service.call('GET', hosts)

  const patched = await service.call('PATCH', `${hosts}/${body.hosts?.[0]?.id}?dry_run=true`, {
    body: { ttl: 60 },
  })

  expect(patched.body).toMatchObject({ ttl: 60, dry_run: true })
  expect(service.live()).toEqual(['www A 192.0.2.1 1800 10'])
})

test.each([
  [{ ttl: 5, address: 'x' }, 400, ['/address', '/ttl']],
  [{ address: null, name: 5 }, 400, ['/name', '/address']],
  [{ type: 'AAAA' }, 400, ['/type']],
  [{ color: 'red', name: '-', ttl: 5 }, 400, ['/color', '/name', '/ttl']],
])('the patch %j is refused with every fault', async (patch, status, paths) => {
  await using service = await start()
  const { body } = await service.call('GET', hosts)

  const patched = await service.call('PATCH', `${hosts}/${body.hosts?.[0]?.id}`, { body: patch })

  expect(patched.status).toBe(status)
  expect(patched.body.errors?.map(({ path }) => path)).toEqual(paths)
  expect(service.live()).toEqual(['www A 192.0.2.1 1800 10'])
})

test('a patch of an unknown id is record_not_found, of an old ETag precondition_failed', async () => {
  await using service = await start()
  const { body } = await service.call('GET', hosts)

  const unknown = await service.call('PATCH', `${hosts}/000000000000`, { body: { ttl: 60 } })
  const outdated = await service.call('PATCH', `${hosts}/${body.hosts?.[0]?.id}`, {
    body: { ttl: 60 },
    headers: { 'if-match': '"old"' },
  })

  expect([unknown.status, unknown.body.code]).toEqual([404, 'record_not_found'])
  expect([outdated.status, outdated.body.code]).toEqual([412, 'precondition_failed'])
})

test('a viewer may not patch', async () => {
  await using service = await start()

  const { status } = await service.call('PATCH', `${hosts}/000000000000`, {
    body: {},
    user: 'viewer',
  })

  expect(status).toBe(403)
})
