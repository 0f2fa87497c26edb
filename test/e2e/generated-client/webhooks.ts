import createClient from 'openapi-fetch'
// Generated from /openapi.json by test/e2e/generated-clients.test.ts. The static service has the same operations.
import type { paths } from './generated/openapi-typescript/domain-service.ts'
import { need, type Watch } from './watch.ts'

/** Calls every operation on webhooks. Removes the one that it adds, where nothing listens. */
export async function runWebhooks(baseUrl: string, adminToken: string, watch: Watch) {
  const api = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${adminToken}` } })
  api.use(watch)
  const added = await api.POST('/api/webhooks', {
    body: { url: 'https://127.0.0.1:9/', name: 'nobody' },
  })
  const params = { path: { id: need(added.data).id } }
  await api.GET('/api/webhooks')
  await api.GET('/api/webhooks/{id}', { params })
  const test = need((await api.POST('/api/webhooks/{id}/test', { params })).data)
  await api.PATCH('/api/webhooks/{id}', { params, body: { paused: true } })
  await api.GET('/api/webhooks/{id}/deliveries', { params })
  const atDelivery = { path: { ...params.path, delivery: test.id } }
  await api.POST('/api/webhooks/{id}/deliveries/{delivery}/retry', { params: atDelivery })
  await api.DELETE('/api/webhooks/{id}', { params })
}
