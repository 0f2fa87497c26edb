import createClient from 'openapi-fetch'
import { expect } from 'vitest'
// Made from /openapi.json by the test that runs this; nothing here is known otherwise.
import type { paths } from './generated/domain-service.ts'
import { need, type Watch } from './watch.ts'

/** Everything that the domain service can do, said in types that were generated from its description. */
export async function runScenario(baseUrl: string, password: string, watch: Watch) {
  const api = createClient<paths>({ baseUrl })
  api.use(watch)
  const login = await api.POST('/api/auth/login', { body: { username: 'admin', password } })
  const { access_token } = need(login.data)
  api.use({
    onRequest: ({ request }) => {
      if (!request.headers.has('authorization')) {
        request.headers.set('authorization', `Bearer ${access_token}`)
      }
    },
  })
  await api.GET('/')
  await api.GET('/api/auth/me')
  const made = await api.POST('/api/tokens', {
    body: { name: 'nightly', expires_in: 3600, records: [{ name: 'home', types: ['A'] }] },
  })
  const token = need(made.data)
  await api.GET('/api/tokens', { params: { query: { owner: 'admin' } } })
  await api.DELETE('/api/tokens/{id}', { params: { path: { id: token.id } } })
  await api.GET('/health')
  await api.GET('/api/registrar')

  const list = await api.GET('/api/domains', {
    params: { query: { search_term: 'alder', sort_by: 'EXPIREDATE_DESC', page_size: 5 } },
  })
  const domain = need(list.data?.domains[0]).name
  const path = { domain }
  await api.GET('/api/domains/{domain}/info', { params: { path } })
  await api.GET('/api/domains/{domain}/dns/nameservers', { params: { path } })
  const before = need((await api.GET('/api/domains/{domain}/dns/hosts', { params: { path } })).data)

  const added = await api.POST('/api/domains/{domain}/dns/hosts/{record}', {
    params: { path: { domain, record: 'A' } },
    body: { name: 'hello', address: '192.0.2.10' },
  })
  const record = need(added.data)
  const atRecord = { path: { domain, record: record.id } }
  await api.GET('/api/domains/{domain}/dns/hosts/{record}', { params: atRecord })
  const etag = need(added.response.headers.get('etag'))

  const replaced = await api.PUT('/api/domains/{domain}/dns/hosts', {
    params: { path, header: { 'if-match': etag } },
    body: { hosts: [...before.hosts, { ...record, ttl: 600 }] },
  })
  const { changes } = need(replaced.data)
  const late = await api.PUT('/api/domains/{domain}/dns/hosts', {
    params: { path, header: { 'if-match': etag } },
    body: { hosts: [] },
  })
  await api.DELETE('/api/domains/{domain}/dns/hosts/{record}', { params: atRecord })

  const history = await api.GET('/api/domains/{domain}/dns/history', { params: { path } })
  const first = need(need(history.data).history.at(-1))
  const change = await api.GET('/api/domains/{domain}/dns/history/{id}', {
    params: { path: { domain, id: first.id } },
  })
  const restored = await api.POST('/api/domains/{domain}/dns/history/{id}/restore', {
    params: { path: { domain, id: first.id }, query: { to: 'before' } },
  })

  expect(record).toEqual({
    id: record.id,
    name: 'hello',
    type: 'A',
    address: '192.0.2.10',
    ttl: 1800,
  })
  expect(changes).toMatchObject({ added: [{ ttl: 600 }], removed: [{ ttl: 1800 }] })
  expect(late.error).toMatchObject({ status: 412, code: 'precondition_failed' })
  expect(history.data?.pagination).toMatchObject({ total_items: 3 })
  expect(change.data?.changes.added).toEqual([record])
  expect(restored.data?.hosts).toEqual(before.hosts)
}
