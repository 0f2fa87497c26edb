import createClient from 'openapi-fetch'
import { expect } from 'vitest'
import { runAccounts } from './accounts.ts'
import { runApprovals } from './approvals.ts'
// Generated from /openapi.json by test/e2e/generated-clients.test.ts.
import type { paths } from './generated/openapi-typescript/domain-service.ts'
import { need, type Watch } from './watch.ts'
import { runWebhooks } from './webhooks.ts'
import { runZoneEdits } from './zone-edits.ts'

/** Calls every operation of the domain service, with types generated from its OpenAPI document. */
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
  await api.GET('/api/auth/me')
  await runAccounts(baseUrl, access_token, watch)
  await runWebhooks(baseUrl, access_token, watch)
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
  const record = carriedOut(added.data)
  const atRecord = { path: { domain, record: record.id } }
  await api.GET('/api/domains/{domain}/dns/hosts/{record}', { params: atRecord })
  const etag = need(added.response.headers.get('etag'))

  const replaced = await api.PUT('/api/domains/{domain}/dns/hosts', {
    params: { path, header: { 'if-match': etag } },
    body: { hosts: [...before.hosts, { ...record, ttl: 600 }] },
  })
  const { changes } = carriedOut(replaced.data)
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
  const added2 = await api.POST('/api/domains/{domain}/dns/hosts/{record}', {
    params: { path: { domain, record: 'A' }, header: { 'idempotency-key': 'key-1' } },
    body: { name: 'reverted', address: '192.0.2.11' },
  })
  const [newest] = need(
    (await api.GET('/api/changes', { params: { query: { domain, status: 'confirmed' } } })).data,
  ).changes
  await api.GET('/api/changes/{id}', { params: { path: { id: need(newest).id } } })
  const found = await api.GET('/api/records', { params: { query: { search: 'reverted' } } })
  expect(found.data?.records.map(({ domain }) => domain)).toEqual([domain])
  const { events } = need((await api.GET('/api/events')).data)
  expect(events.map(({ type }) => type)).toContain('zone.changed')
  const reverted = await api.POST('/api/domains/{domain}/dns/history/{id}/revert', {
    params: { path: { domain, id: need(newest).id } },
  })
  const removeLater = () =>
    api.DELETE('/api/domains/{domain}/dns/hosts/{record}', {
      params: {
        path: { domain, record: carriedOut(added2.data).id },
        header: { prefer: 'respond-async' },
      },
    })
  const cancel = ({ data }: Awaited<ReturnType<typeof removeLater>>) =>
    api.DELETE('/api/changes/{id}', { params: { path: { id: queuedChange(data).id } } })
  let queued = await removeLater()
  let cancelled = await cancel(queued)
  // A change is sent half a second later: on a busy machine that may be before it is cancelled.
  while (cancelled.response.status === 409) {
    queued = await removeLater()
    cancelled = await cancel(queued)
  }
  const { id } = queuedChange(queued.data)
  const atChange = { params: { path: { id: queuedChange((await removeLater()).data).id } } }
  await expect.poll(async () => (await api.GET('/api/changes/{id}', atChange)).data?.status).toBe('refused')
  await api.POST('/api/changes/held/release')
  await api.DELETE('/api/changes/held')
  const tooLate = await api.DELETE('/api/changes/{id}', atChange)

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
  expect(carriedOut(restored.data).hosts).toEqual(before.hosts)
  expect(carriedOut(reverted.data).hosts).toEqual(before.hosts)
  expect(queued.response.headers.get('location')).toBe(`/api/changes/${id}`)
  expect(cancelled.data).toMatchObject({ id, status: 'cancelled' })
  expect(tooLate.error).toMatchObject({ status: 409, code: 'change_not_queued' })
  await runZoneEdits(api, domain)
  await runApprovals(baseUrl, { adminToken: access_token, domain, watch })
}

/** The body of a write that was carried out at once. */
function carriedOut<Body extends object>(body: Body | undefined) {
  const found = need(body)
  if ('sent_at' in found) throw new Error('the write was queued')
  // A union of generated types is not narrowed by `in`.
  return found as Exclude<Body, { sent_at: string | null }>
}

/** The body of a write that was queued. */
function queuedChange<Body extends object>(body: Body | undefined) {
  const found = need(body)
  if (!('sent_at' in found)) throw new Error('the write was carried out at once')
  return found as Extract<Body, { sent_at: string | null }>
}
