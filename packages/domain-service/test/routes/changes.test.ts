import { expect, test } from 'vitest'
import { z } from 'zod'
import { FakeClock } from '../support/fake-clock.ts'
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

test('following `next` finds every change once, although others come meanwhile', async () => {
  // With a clock that stands still no zone grows too old to be written, which would be one more change.
  await using service = await start({ domains, clock: new FakeClock(), env: { REGISTRAR_TIMEOUT_MS: '120000' } })
  for (const name of ['a', 'b', 'c', 'd', 'e']) await add(service, 'example.com', 'admin', name)
  const lists = ['/api/changes', `${pathOf('example.com')}/history`]
  const Page = z.object({
    changes: z.array(z.looseObject({ id: z.number() })).optional(),
    history: z.array(z.looseObject({ id: z.number() })).optional(),
    next: z.string().nullable(),
    pagination: z.object({ total_items: z.number() }),
  })
  const follow = async (list: string) => {
    const ids: number[] = []
    const totals: number[] = []
    let path: string | undefined = `${list}?page_size=2`
    while (path) {
      const { text, headers } = await service.call('GET', path)
      const { changes, history, next, pagination } = Page.parse(JSON.parse(text))
      ids.push(...[...(changes ?? history ?? [])].map(({ id }) => id))
      totals.push(pagination.total_items)
      expect(headers.get('link') === null).toBe(next === null)
      path = /^<(.*)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1]
      if (ids.length === 2) await add(service, 'example.com', 'admin', `later${lists.indexOf(list)}`)
    }
    return { ids, totals }
  }

  const [changes, history] = [await follow(lists[0] ?? ''), await follow(lists[1] ?? '')]

  expect(changes).toEqual({ ids: [5, 4, 3, 2, 1], totals: [5, 6, 6] })
  expect(history).toEqual({ ids: [6, 5, 4, 3, 2, 1], totals: [6, 7, 7] })
})

test('a change that has not ended tells when to look again', async () => {
  await using service = await start({ domains })
  service.sandbox.fault({ kind: 'error', number: 3050900, times: 0 })

  const queued = await service.call('POST', `${pathOf('example.com')}/hosts/A`, {
    body: { name: 'new', address: '192.0.2.9' },
    headers: { prefer: 'respond-async' },
  })
  const read = await service.call('GET', queued.headers.get('location') ?? '')

  expect([queued.status, queued.headers.get('retry-after')]).toEqual([202, '5'])
  expect(read.headers.get('retry-after')).toBe('5')
  expect(read.text).toContain('"created_at"')
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

test('a wrong instant is refused with an example of a right one', async () => {
  await using service = await start()

  const { status, body } = await service.call('GET', '/api/changes?since=yesterday')

  expect(status).toBe(400)
  expect(body).toMatchObject({ errors: [{ path: '/query/since', message: expect.stringContaining('RFC 3339') }] })
})

test.each([
  '?status=done',
  '?page=0',
  '?after=7',
  '?after=bm90IGEgcG9zaXRpb24',
  '?colour=red',
  '?domain=www.example.com',
])('%s is refused', async (query) => {
  await using service = await start()

  expect((await service.call('GET', `/api/changes${query}`)).status).toBe(400)
})

test('after a restore an admin releases or cancels what the backup has queued', async () => {
  await using service = await start()
  const paths: [string, string][] = [
    ['POST', '/api/changes/held/release'],
    ['DELETE', '/api/changes/held'],
  ]
  for (const [method, path] of paths) {
    const refused = await service.call(method, path, { user: 'editor' })
    const done = await service.call(method, path)
    expect([refused.status, done.status, JSON.parse(done.text)]).toEqual([403, 200, { count: 0 }])
  }
})

test.each(['zzz', '0', '-1', '1.5', '999999', '99999999999999999999'])(
  'a change that is not there is a 404 by whatever id: %s',
  async (id) => {
    await using service = await start()
    const history = `/api/domains/example.com/dns/history/${id}`

    const answers = await Promise.all([
      service.call('GET', `/api/changes/${id}`),
      service.call('DELETE', `/api/changes/${id}`),
      service.call('POST', `/api/changes/${id}/approve`),
      service.call('POST', `/api/changes/${id}/reject`),
      service.call('GET', history),
      service.call('POST', `${history}/revert`),
      service.call('POST', `${history}/restore`),
    ])

    expect(answers.map(({ status, body }) => [status, body.code])).toEqual(answers.map(() => [404, 'change_not_found']))
    expect(answers[0]?.body.detail).toContain(id)
  },
)
