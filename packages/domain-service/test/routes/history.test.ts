import { expect, test } from 'vitest'
import { start, www } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const history = '/api/domains/example.com/dns/history'

test('the history lists changes newest first, each with the whole zone before and after', async () => {
  await using service = await start()
  await service.call('POST', `${hosts}/MX`, {
    user: 'editor',
    body: { name: '@', address: 'mx.example.net' },
    headers: { 'x-request-id': 'first' },
  })
  await service.call('PUT', hosts, { body: { hosts: [] }, headers: { 'x-request-id': 'second' } })

  const { body } = await service.call('GET', history, { user: 'viewer' })
  const [newest, oldest] = body.history ?? []
  const whole = await service.call('GET', `${history}/${newest?.id}`, { user: 'viewer' })

  expect(body.pagination).toEqual({ page: 1, page_size: 50, total_items: 2, total_pages: 1 })
  expect(oldest).toMatchObject({
    by: 'editor',
    request_id: 'first',
    at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    changes: { added: [{ type: 'MX' }], removed: [], kept: 1 },
    email_type_before: 'NONE',
    email_type_after: 'MX',
  })
  expect(newest).toMatchObject({
    by: 'admin',
    request_id: 'second',
    changes: { kept: 0 },
    email_type_after: 'NONE',
  })
  expect(whole.body).toMatchObject({
    id: newest?.id,
    before: { email_type: 'MX', hosts: [{ type: 'MX' }, { type: 'A', name: 'www' }] },
    after: { email_type: 'NONE', hosts: [] },
  })
})

test('options in the body of a restore or a revert are refused: they belong into the query', async () => {
  await using service = await start()
  await service.call('PUT', hosts, { body: { hosts: [] } })
  const id = (await service.call('GET', history)).body.history?.[0]?.id

  const restore = await service.call('POST', `${history}/${id}/restore`, { body: { to: 'after' } })
  const revert = await service.call('POST', `${history}/${id}/revert`, { body: { dry_run: true } })
  const bare = await service.call('POST', `${history}/${id}/restore`, { body: {} })

  expect([restore.status, restore.body.errors?.[0]?.path]).toEqual([400, '/to'])
  expect([revert.status, revert.body.errors?.[0]?.path]).toEqual([400, '/dry_run'])
  expect(bare.status).toBe(200)
})

test('a change is undone by restoring the zone as it was before it', async () => {
  const rows = [
    { ...www, ttl: 1799 },
    { name: 'Odd', type: 'CNAME', address: 'Target.example.net.' },
    { name: '@', type: 'MX', address: 'mx.example.net.', mxPref: 0 },
  ]
  await using service = await start({
    domains: [{ name: 'example.com', emailType: 'MX', hosts: rows }],
  })
  const before = {
    live: service.live(),
    etag: (await service.call('GET', hosts)).headers.get('etag'),
  }
  await service.call('PUT', hosts, {
    body: { hosts: [{ name: 'x', type: 'A', address: '192.0.2.9' }] },
  })
  const id = (await service.call('GET', history)).body.history?.[0]?.id

  const restored = await service.call('POST', `${history}/${id}/restore`, { user: 'editor' })
  const again = await service.call('POST', `${history}/${id}/restore`)

  expect(restored).toMatchObject({
    status: 200,
    body: { email_type: 'MX', changes: { removed: [{ name: 'x' }], kept: 0 } },
  })
  expect(restored.headers.get('etag')).toBe(before.etag)
  expect(service.live()).toEqual(before.live.map((line) => line.replace('Odd', 'odd')))
  expect(again.body.changes).toEqual({ added: [], removed: [], kept: 3 })
  expect((await service.call('GET', history)).body.history).toHaveLength(2)
})

test('the zone after a change can be restored, with dry_run and If-Match', async () => {
  await using service = await start()
  await service.call('POST', `${hosts}/A`, { body: { name: 'a', address: '192.0.2.2' } })
  await service.call('PUT', hosts, { body: { hosts: [] } })
  const id = (await service.call('GET', history)).body.history?.[1]?.id
  const path = `${history}/${id}/restore?to=after`

  const tried = await service.call('POST', `${path}&dry_run=true`)
  const refused = await service.call('POST', path, { headers: { 'if-match': '"old"' } })
  const restored = await service.call('POST', path)

  expect(tried.body).toMatchObject({ dry_run: true, changes: { added: [{}, {}] } })
  expect(refused.status).toBe(412)
  expect(restored.body.hosts?.map(({ name }) => name)).toEqual(['a', 'www'])
})

test.each([
  ['GET', `${history}/99`, 404, 'change_not_found'],
  ['POST', `${history}/99/restore`, 404, 'change_not_found'],
  ['GET', `${history}/x`, 404, 'change_not_found'],
  ['GET', `${history}/0`, 404, 'change_not_found'],
  ['POST', `${history}/1/restore?to=now`, 400, 'validation_failed'],
  ['GET', `${history}?page_size=201`, 400, 'validation_failed'],
])('%s %s is %i %s', async (method, path, status, code) => {
  await using service = await start()

  const answer = await service.call(method, path)

  expect([answer.status, answer.body.code]).toEqual([status, code])
})

test('a change of one domain is not found under another', async () => {
  await using service = await start({
    domains: [{ name: 'example.com', hosts: [www] }, { name: 'other.com' }],
  })
  await service.call('PUT', hosts, { body: { hosts: [] } })

  expect((await service.call('GET', '/api/domains/other.com/dns/history/1')).status).toBe(404)
})

test('the history outlives the service', async () => {
  await using first = await start()
  await first.call('PUT', hosts, { body: { hosts: [] } })
  await first.close()

  await using second = await start({ dataDir: first.dataDir, sandbox: first.sandbox })

  expect((await second.call('GET', history)).body.history).toHaveLength(1)
})

test('a change is reverted, and later ones stay', async () => {
  await using service = await start()
  await service.call('POST', `${hosts}/A`, { body: { name: 'a', address: '192.0.2.2' } })
  await service.call('POST', `${hosts}/A`, { body: { name: 'b', address: '192.0.2.3' } })
  const id = (await service.call('GET', history)).body.history?.[1]?.id

  const tried = await service.call('POST', `${history}/${id}/revert?dry_run=true`)
  const reverted = await service.call('POST', `${history}/${id}/revert`, { user: 'editor' })
  const again = await service.call('POST', `${history}/${id}/revert`)

  expect(tried.body).toMatchObject({ dry_run: true, changes: { removed: [{ name: 'a' }] } })
  expect(reverted.body).toMatchObject({ changes: { added: [], removed: [{ name: 'a' }], kept: 2 } })
  expect(reverted.body.hosts?.map(({ name }) => name)).toEqual(['b', 'www'])
  expect([again.status, again.body.code]).toEqual([409, 'revert_conflict'])
})
