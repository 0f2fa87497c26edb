import createClient from 'openapi-fetch'
// Generated from /openapi.json by test/e2e/generated-clients.test.ts. The static service has the same operations.
import type { paths } from './generated/openapi-typescript/domain-service.ts'
import { need, type Watch } from './watch.ts'

/** Calls every operation on users and their logins, with the token of an admin. Removes the user that it adds. */
export async function runAccounts(baseUrl: string, adminToken: string, watch: Watch) {
  const api = createClient<paths>({ baseUrl })
  api.use(watch)
  const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
  const admin = as(adminToken)
  const params = { path: { username: 'sample' } }
  const password = 'correct horse battery'

  const added = await api.POST('/api/users', {
    ...admin,
    body: { username: 'sample', role: 'viewer', domains: ['example.com'] },
  })
  const { invite } = need(added.data)
  await api.POST('/api/auth/password', {
    body: { username: 'sample', invite: need(invite), new: password },
  })
  await api.PATCH('/api/users/{username}', { ...admin, params, body: { role: 'editor' } })
  await api.GET('/api/users', { ...admin, params: { query: { page_size: 10 } } })
  const login = await api.POST('/api/auth/login', { body: { username: 'sample', password } })
  await api.POST('/api/auth/logout', as(need(login.data).access_token))
  await api.DELETE('/api/users/{username}', { ...admin, params })
  const trust = await api.POST('/api/trusts', {
    ...admin,
    body: {
      name: 'sample',
      issuer: 'https://id.example.com',
      audience: 'sample',
      role: 'viewer',
      claims: { repository: 'acme/sample', ref: 'refs/heads/main' },
    },
  })
  await api.GET('/api/trusts', { ...admin, params: { query: {} } })
  await api.DELETE('/api/trusts/{id}', { ...admin, params: { path: { id: need(trust.data).id } } })
  await api.POST('/api/auth/token', {
    body: {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: 'none',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    },
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    bodySerializer: (body) => new URLSearchParams(Object.entries(body).map(([key, value]) => [key, String(value)])),
  })
  await api.GET('/api/auth/methods')
  const text = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
  await api.GET('/api/auth/oidc/login', {
    params: { query: { return_to: 'http://127.0.0.1:49152/', challenge: text } },
  })
  await api.GET('/api/auth/oidc/callback')
  await api.POST('/api/auth/oidc/token', { body: { code: text, verifier: text } })
}
