import { expect, test } from 'vitest'
import { start, www } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'

test('records are removed, changed and added in one write', async () => {
  await using service = await start({
    domains: [
      {
        name: 'example.com',
        hosts: [www, { name: 'old', type: 'A', address: '192.0.2.2' }],
      },
    ],
  })
  const { body } = await service.call('GET', hosts)
  const idOf = (name: string) => body.hosts?.find((each) => each.name === name)?.id

  const patched = await service.call('PATCH', hosts, {
    body: {
      remove: [idOf('old')],
      update: [{ id: idOf('www'), ttl: 60 }],
      add: [{ name: 'new', type: 'TXT', address: 'x' }],
    },
  })

  expect(patched.status).toBe(200)
  expect(patched.body.changes).toMatchObject({
    added: [{ name: 'www', ttl: 60 }, { name: 'new' }],
    removed: expect.arrayContaining([expect.objectContaining({ name: 'old' })]),
    kept: 0,
  })
  expect(service.commands().filter((each) => each === 'dns.sethosts')).toHaveLength(1)
  expect(service.live().sort()).toEqual(['new TXT x 1800 10', 'www A 192.0.2.1 60 10'])
})

test.each([
  [
    { update: [{ id: 'ID', ttl: 5 }], add: [{ name: 'a', type: 'A', address: 'x' }] },
    400,
    'validation_failed',
    ['/update/0/ttl', '/add/0/address'],
  ],
  [{ remove: ['ID', 'gone'] }, 404, 'record_not_found', ['/remove/1']],
  [{ remove: ['gone'], email_type: 'MX' }, 404, 'record_not_found', ['/remove/0', '/email_type']],
  [
    {
      remove: ['gone'],
      update: [
        { id: 'ID', ttl: 5 },
        { id: 'lost', ttl: 600 },
      ],
      add: [{ name: 'a', type: 'A', address: 'x' }],
    },
    404,
    'record_not_found',
    ['/remove/0', '/update/1/id', '/update/0/ttl', '/add/0/address'],
  ],
  [{ add: [www] }, 409, 'record_exists', undefined],
  [{ add: [{ name: 'www', type: 'CNAME', address: 'a.example.net' }] }, 409, 'record_conflict', undefined],
  [{ remove: 'ID' }, 400, 'validation_failed', ['/remove']],
  [{ update: [{ ttl: 60 }, { id: 'ID', ttl: 5 }] }, 400, 'validation_failed', ['/update/0/id', '/update/1/ttl']],
])('the batch %j does nothing: %i %s', async (batch, status, code, paths) => {
  await using service = await start()
  const { body } = await service.call('GET', hosts)
  const id = String(body.hosts?.[0]?.id)

  const patched = await service.call('PATCH', hosts, {
    body: JSON.parse(JSON.stringify(batch).replaceAll('"ID"', JSON.stringify(id))),
  })

  expect([patched.status, patched.body.code]).toEqual([status, code])
  expect(patched.body.errors?.map(({ path }) => path)).toEqual(paths)
  expect(service.live()).toEqual(['www A 192.0.2.1 1800 10'])
})

test('a queued batch whose own records conflict is refused at once', async () => {
  await using service = await start()
  const record = { name: 'twice', type: 'A', address: '192.0.2.1' }

  const patched = await service.call('PATCH', hosts, {
    body: { add: [record, record] },
    headers: { prefer: 'respond-async' },
  })

  expect([patched.status, patched.body.code]).toEqual([400, 'validation_failed'])
  expect(patched.headers.get('preference-applied')).toBe(null)
  expect(service.commands()).toEqual([])
})
