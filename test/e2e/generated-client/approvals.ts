import createClient from 'openapi-fetch'
import { expect } from 'vitest'
// Generated from /openapi.json by test/e2e/generated-clients.test.ts.
import type { paths } from './generated/openapi-typescript/domain-service.ts'
import { need, type Watch } from './watch.ts'

interface Context {
  adminToken: string
  domain: string
  watch: Watch
}

/** A user proposes two records; an admin approves one of them and rejects the other. */
export async function runApprovals(baseUrl: string, { adminToken, domain, watch }: Context): Promise<void> {
  const api = createClient<paths>({ baseUrl })
  api.use(watch)
  const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
  const admin = as(adminToken)
  const user = { username: 'proposing', password: 'correct horse battery' }
  await api.POST('/api/users', { ...admin, body: { ...user, role: 'editor', writes: 'propose' } })
  const login = await api.POST('/api/auth/login', { body: user })
  const propose = async (name: string) => {
    const { response } = await api.POST('/api/domains/{domain}/dns/hosts/{record}', {
      ...as(need(login.data).access_token),
      params: { path: { domain, record: 'A' } },
      body: { name, address: '192.0.2.99' },
    })
    const id = Number(response.headers.get('location')?.split('/').at(-1))
    return { ...admin, params: { path: { id } } }
  }
  const [wanted, unwanted] = [await propose('wanted'), await propose('unwanted')]

  const approved = await api.POST('/api/changes/{id}/approve', wanted)
  const rejected = await api.POST('/api/changes/{id}/reject', { ...unwanted, body: { reason: 'not now' } })
  const outcome = async () => (await api.GET('/api/changes/{id}', wanted)).data
  await expect.poll(outcome).toMatchObject({ status: 'confirmed', approved_by: 'admin' })
  await api.DELETE('/api/users/{username}', { ...admin, params: { path: { username: user.username } } })

  expect(approved.data).toMatchObject({ by: 'proposing', approved_by: 'admin' })
  expect(rejected.data).toMatchObject({ status: 'rejected', reason: 'not now' })
}
