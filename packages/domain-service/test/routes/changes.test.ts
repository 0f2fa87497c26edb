import { expect, test } from 'vitest'
import { type Service, start, www } from '../support/start.ts'

const pathOf = (domain: string) => `/api/domains/${domain}/dns`
const domains = ['example.com', 'other.com'].map((name) => ({ name, hosts: [www] }))

const add = (service: Service, domain: string, user: string, name = 'new') =>
  service.call('POST', `${pathOf(domain)}/hosts/A`, { user, body: { name, address: '192.0.2.9' } })

const listed = async (service: Service, query = '', user = 'viewer') =>
  (await service.call('GET', `/api/changes${query}`, { user })).body.change_list?.map(
    ({ domain, by, status }) => `${domain} ${by} ${status}`,
  )

test('the changes of all domains are listed, newest first, by domain, author, status and time', async () => {
  await using service = await start({ domains })
  await add(service, 'example.com', 'admin')
  await add(service, 'other.com', 'editor')
  const [first, second] = ['example.com admin confirmed', 'other.com editor confirmed']

  expect(await listed(service)).toEqual([second, first])
  expect(await listed(service, '?domain=EXAMPLE.com.')).toEqual([first])
  expect(await listed(service, '?by=editor')).toEqual([second])
  expect(await listed(service, '?status=unconfirmed')).toEqual([])
  expect(await listed(service, '?since=2020-01-01T00:00:00Z')).toEqual([second, first])
  expect(await listed(service, '?since=2099-01-01T00:00:00%2B02:00')).toEqual([])
  expect(await listed(service, '?page_size=1&page=2')).toEqual([first])
})

test('a caller sees the changes of their own domains only', async () => {
  await using service = await start({ domains })
  await add(service, 'example.com', 'admin')
  await add(service, 'other.com', 'admin')

  const seen = await listed(service, '', 'limited')
  const [hidden] = (await service.call('GET', '/api/changes')).body.change_list ?? []
  const read = await service.call('GET', `/api/changes/${hidden?.id}`, { user: 'limited' })
  const cancelled = await service.call('DELETE', `/api/changes/${hidden?.id}`, { user: 'limited' })

  expect(seen).toEqual(['example.com admin confirmed'])
  expect([read.body.code, cancelled.body.code]).toEqual(['change_not_found', 'change_not_found'])
})

test('a viewer may not cancel', async () => {
  await using service = await start()

  expect((await service.call('DELETE', '/api/changes/1', { user: 'viewer' })).status).toBe(403)
})

test.each([
  '?status=done',
  '?since=yesterday',
  '?page=0',
  '?colour=red',
  '?domain=www.example.com',
])('%s is refused', async (query) => {
  await using service = await start()

  expect((await service.call('GET', `/api/changes${query}`)).status).toBe(400)
})
