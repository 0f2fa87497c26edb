import type { Client } from 'openapi-fetch'
import { expect } from 'vitest'
import type { paths } from './generated/openapi-typescript/domain-service.ts'
import { need } from './watch.ts'

/** Calls the operations that change several records, RRsets and whole zones; leaves the zone as it was. */
export async function runZoneEdits(api: Client<paths>, domain: string) {
  const path = { domain }
  const rrset = { path: { domain, name: 'multi', type: 'A' as const } }
  const before = need((await api.GET('/api/domains/{domain}/dns/hosts', { params: { path } })).data)

  const made = await api.PUT('/api/domains/{domain}/dns/rrsets/{name}/{type}', {
    params: rrset,
    body: { ttl: 300, values: ['192.0.2.20'] },
  })
  const zone = need(
    (await api.GET('/api/domains/{domain}/dns/rrsets', { params: { path, query: { type: 'A' } } })).data,
  )
  const listed = need((await api.GET('/api/domains/{domain}/dns/hosts', { params: { path } })).data).hosts.find(
    ({ name }) => name === 'multi',
  )
  const patched = await api.PATCH('/api/domains/{domain}/dns/hosts/{record}', {
    params: { path: { domain, record: need(listed).id } },
    body: { address: '192.0.2.21' },
  })
  const batch = await api.PATCH('/api/domains/{domain}/dns/hosts', {
    params: { path },
    body: { add: [{ name: 'multi', type: 'A', address: '192.0.2.22', ttl: 300 }] },
  })
  const read = await api.GET('/api/domains/{domain}/dns/rrsets/{name}/{type}', { params: rrset })
  const file = await api.GET('/api/domains/{domain}/dns/zonefile', {
    params: { path },
    parseAs: 'text',
  })
  await api.PUT('/api/domains/{domain}/dns/zonefile', {
    params: { path },
    body: String(need(file.data)),
    bodySerializer: (text) => text,
    headers: { 'content-type': 'text/dns' },
  })
  const removed = await api.DELETE('/api/domains/{domain}/dns/rrsets/{name}/{type}', {
    params: rrset,
  })
  const after = await api.GET('/api/domains/{domain}/dns/hosts', { params: { path } })

  expect(made.response.status).toBe(201)
  expect(zone.rrsets).toContainEqual({ name: 'multi', type: 'A', ttl: 300, values: ['192.0.2.20'] })
  expect(patched.data).toMatchObject({ name: 'multi', address: '192.0.2.21', ttl: 300 })
  expect(batch.data).toMatchObject({ changes: { added: [{ name: 'multi' }], removed: [] } })
  expect(read.data?.values).toEqual(['192.0.2.21', '192.0.2.22'])
  expect(removed.response.status).toBe(204)
  expect(after.data?.hosts).toEqual(before.hosts)
}
