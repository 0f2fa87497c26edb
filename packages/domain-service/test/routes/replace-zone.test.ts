import fc from 'fast-check'
import { expect, test } from 'vitest'
import { recordTypes } from '../../src/dns/record-types.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { start, www } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const mx = { name: '@', type: 'MX', address: 'mx.example.net.', mxPref: 5 }

test('a zone is replaced: what is not in the list is deleted, what is unchanged is kept', async () => {
  await using service = await start({
    domains: [{ name: 'example.com', hosts: [www, { name: 'old', type: 'A', address: '192.0.2.2' }] }],
  })

  const { status, body, headers } = await service.call('PUT', hosts, {
    body: {
      hosts: [
        { name: 'www', type: 'A', address: '192.0.2.1' },
        { id: 'ignored', name: 'new', type: 'txt', address: 'x', ttl: 60 },
      ],
    },
  })

  expect(status).toBe(200)
  expect(body).toMatchObject({
    domain: 'example.com',
    changes: { added: [{ name: 'new', type: 'TXT' }], removed: [{ name: 'old' }], kept: 1 },
    warnings: [],
  })
  expect(headers.get('etag')).toBe((await service.call('GET', hosts)).headers.get('etag'))
  expect(service.live()).toEqual(['www A 192.0.2.1 1800 10', 'new TXT x 60 10'])
})

test('PUT of what GET returned writes nothing, odd rows included', async () => {
  const oddRows = [
    { name: 'UPPER', type: 'A', address: '192.0.2.1', ttl: 1 },
    { name: '@', type: 'CNAME', address: 'apex.example.net.' },
    { name: '@', type: 'TXT', address: 'beside a CNAME' },
    { name: 'srv', type: 'SRV', address: '0 0 443 host.example.net.' },
    { name: 'bad', type: 'A', address: 'not an address' },
    { name: 'dyn', type: 'A', address: '192.0.2.3', isDdns: true },
  ]
  await using service = await start({
    domains: [{ name: 'example.com', emailType: 'OX', hosts: oddRows }],
  })
  const { body } = await service.call('GET', hosts)

  const answer = await service.call('PUT', hosts, { body: { hosts: body.hosts } })

  expect(answer.status).toBe(200)
  expect(answer.body.changes).toEqual({ added: [], removed: [], kept: 6 })
  expect(service.commands()).toEqual(['dns.gethosts', 'dns.gethosts'])
})

// What XML can carry, in any place of a row: also what no rule of today would let in.
const anyText = fc.string({ unit: 'grapheme', maxLength: 20 }).filter((value) => !/[^\P{C}\t\n]/u.test(value))
const anyRow = fc.record({
  name: fc.oneof(fc.constantFrom('@', 'www', 'WWW', '*.a', '-x-', 'a.example.com'), anyText),
  type: fc.constantFrom<string>(...recordTypes, 'SRV'),
  address: fc.oneof(fc.constantFrom('192.0.2.1', 'host.example.net.', '0 issue "ca.example.net"', ' 1e3 '), anyText),
  ttl: fc.constantFrom(60, 1799, 1800, 60_000, 1, 86_400),
  mxPref: fc.constantFrom(0, 10, 65_535),
  isDdns: fc.boolean(),
})
const emailType = fc.constantFrom(
  'NONE' as const,
  'MX' as const,
  'MXE' as const,
  'FWD' as const,
  'OX' as const,
  'GMAIL' as const,
)

test('whatever zone is live, PUT of what GET returned writes nothing', async () => {
  await using service = await start()

  await fc.assert(
    fc.asyncProperty(fc.array(anyRow, { maxLength: 25 }), emailType, async (rows, type) => {
      await service.sandbox.setZone('example.com', { hosts: rows, emailType: type })
      const read = await service.call('GET', hosts, { headers: { 'cache-control': 'no-cache' } })

      const answer = await service.call('PUT', hosts, { body: { hosts: read.body.hosts } })

      expect(read.body.hosts).toHaveLength(rows.length)
      expect([answer.status, answer.body.changes]).toEqual([200, { added: [], removed: [], kept: rows.length }])
      expect(answer.headers.get('etag')).toBe(read.headers.get('etag'))
    }),
    { numRuns: 10 },
  )

  expect(service.commands()).not.toContain('dns.sethosts')
})

test('a list is refused with every fault of its new records', async () => {
  await using service = await start()

  const { status, body } = await service.call('PUT', hosts, {
    body: {
      hosts: [
        { name: 'www', type: 'A', address: '192.0.2.1' },
        { name: 'a', type: 'A', address: '300.1.1.1', ttl: 5 },
        { name: 'a', type: 'SRV', address: 'x' },
        { name: 'b', type: 'CNAME', address: 'c.example.net' },
        { name: 'b', type: 'CNAME', address: 'C.example.net.' },
      ],
    },
  })

  expect(status).toBe(400)
  expect(body.errors?.map(({ path }) => path)).toEqual([
    '/hosts/1/address',
    '/hosts/1/ttl',
    '/hosts/2/type',
    '/hosts/3/name',
    '/hosts/4/name',
  ])
  expect(service.commands()).toEqual(['dns.gethosts'])
})

test('faults that the schema finds come with those of the other fields', async () => {
  await using service = await start()
  const bad = { type: 'A', address: '300.1.1.1', ttl: 5 }

  const put = await service.call('PUT', hosts, {
    body: { hosts: [bad, { ...bad, name: '-', color: 'red' }, 5], colour: 'blue' },
  })
  const patch = await service.call('PATCH', hosts, { body: { add: [bad], color: 'red' } })
  const elsewhere = await service.call('PUT', '/api/domains/www.example.com/dns/hosts', {
    body: {},
  })

  expect(put.status).toBe(400)
  expect(put.body.errors?.map(({ path }) => path).sort()).toEqual([
    '/colour',
    '/hosts/0/address',
    '/hosts/0/name',
    '/hosts/0/ttl',
    '/hosts/1/address',
    '/hosts/1/color',
    '/hosts/1/name',
    '/hosts/1/ttl',
    '/hosts/2',
  ])
  expect(patch.body.errors?.map(({ path }) => path).sort()).toEqual([
    '/add/0/address',
    '/add/0/name',
    '/add/0/ttl',
    '/color',
  ])
  expect(elsewhere.body.errors?.map(({ path }) => path)).toEqual(['/path/domain', '/hosts'])
  expect(service.commands()).toEqual([])
})

test('faults that the schema finds come with those between records', async () => {
  await using service = await start()
  const alias = { name: 'a', type: 'CNAME', address: 'example.net' }
  const address = { name: 'A', type: 'a', address: '192.0.2.1' }

  const { status, body } = await service.call('PUT', hosts, {
    body: { hosts: [alias, address, www, { ...www, ttl: '60' }, { name: 'a' }] },
  })

  expect(status).toBe(400)
  expect(body.errors?.map(({ path }) => path).sort()).toEqual([
    '/hosts/0/name',
    '/hosts/1/name',
    '/hosts/2/name',
    '/hosts/3/name',
    '/hosts/3/ttl',
    '/hosts/4/address',
    '/hosts/4/type',
  ])
})

test.each(['FWD', 'NONE'] as const)(
  'a first MX beside "email_type": "%s", said back as it was read, is refused before it is lost',
  async (emailType) => {
    await using service = await start({
      domains: [{ name: 'example.com', emailType, hosts: [www] }],
    })
    const before = service.live()

    const answer = await service.call('PUT', '/api/domains/example.com/dns/hosts', {
      body: {
        hosts: [www, { name: '@', type: 'MX', address: 'mx.example.net' }],
        email_type: emailType,
      },
    })

    expect(answer).toMatchObject({ status: 400, body: { errors: [{ path: '/email_type' }] } })
    expect(service.live()).toEqual(before)
  },
)

test('the email type becomes NONE with the last MX, and stays otherwise', async () => {
  await using service = await start({
    domains: [
      { name: 'example.com', emailType: 'MX', hosts: [mx] },
      { name: 'ox.com', emailType: 'OX', hosts: [mx, www] },
    ],
  })

  await service.call('PUT', hosts, { body: { hosts: [] } })
  const ox = await service.call(
    'DELETE',
    `/api/domains/ox.com/dns/hosts/${(await service.call('GET', '/api/domains/ox.com/dns/hosts')).body.hosts?.[1]?.id}`,
  )

  expect(service.sandbox.zone('example.com').emailType).toBe('NONE')
  expect(ox.status).toBe(200)
  expect(service.sandbox.zone('ox.com').emailType).toBe('OX')
})

test('MX and MXE together are refused', async () => {
  await using service = await start()

  const { status, body } = await service.call('PUT', hosts, {
    body: {
      hosts: [
        { name: '@', type: 'MX', address: 'mx.example.net' },
        { name: '@', type: 'MXE', address: '192.0.2.1' },
      ],
    },
  })

  expect(status).toBe(400)
  expect(body.errors?.map(({ path }) => path)).toEqual(['/hosts/0/type', '/hosts/1/type'])
})

test('every type is written, read back and removed', async () => {
  await using service = await start({ domains: [{ name: 'example.com', hosts: [] }] })
  const records = [
    { name: 'a', type: 'A', address: '192.0.2.1' },
    { name: 'aaaa', type: 'AAAA', address: '2001:DB8:0::1' },
    { name: '@', type: 'ALIAS', address: 'alias.example.net' },
    { name: '@', type: 'CAA', address: '0 issue ca.example.net' },
    { name: 'cname', type: 'CNAME', address: 'target.example.net' },
    { name: '@', type: 'MX', address: 'mx.example.net', mx_pref: 20 },
    { name: 'ns', type: 'NS', address: 'ns1.example.net' },
    { name: '*.txt', type: 'TXT', address: 'x' },
    { name: 'url', type: 'URL', address: 'http://example.net/?a=1&b=2' },
    { name: 'url301', type: 'URL301', address: 'https://example.net/' },
    { name: 'frame', type: 'FRAME', address: 'https://example.net/f' },
  ]

  const written = await service.call('PUT', hosts, { body: { hosts: records } })
  const mxe = await service.call('PUT', hosts, {
    body: { hosts: [{ name: '@', type: 'MXE', address: '192.0.2.7' }] },
  })

  expect(written.status).toBe(200)
  expect(written.body.changes?.added).toHaveLength(11)
  expect(written.body.hosts).toHaveLength(11)
  expect(mxe).toMatchObject({
    status: 200,
    body: { email_type: 'MXE', hosts: [{ name: '@', type: 'MXE', address: '192.0.2.7' }] },
  })
})

test.each([
  [{}, ['/hosts']],
  [{ hosts: {} }, ['/hosts']],
  [{ hosts: [{ name: 'a' }] }, ['/hosts/0/address', '/hosts/0/type']],
  [{ hosts: [{ name: 'a', type: 'A', address: '192.0.2.1', tll: 60 }] }, ['/hosts/0/tll']],
  [{ hosts: [{ name: 'a', type: 'A', address: '192.0.2.1', ttl: '60' }] }, ['/hosts/0/ttl']],
  [{ hosts: [], host: [] }, ['/host']],
  [{ hosts: [5, { name: 5, type: 'A', address: 'x' }] }, ['/hosts/0', '/hosts/1/address', '/hosts/1/name']],
  [[], ['']],
])('the body %j is refused before any call', async (body, paths) => {
  await using service = await start()

  const answer = await service.call('PUT', hosts, { body })

  expect(answer.status).toBe(400)
  expect(answer.body.errors?.map(({ path }) => path).sort()).toEqual([...paths].sort())
  expect(service.commands()).toEqual([])
})

test('an emptied zone is written although the registrar puts its parking records there, which are no change made outside', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  const fresh = { headers: { 'cache-control': 'no-cache' } }
  service.sandbox.fault({
    kind: 'other_tool',
    command: 'namecheap.domains.dns.getHosts',
    after: 1,
    when: 'before',
    add: [
      { name: 'www', type: 'CNAME', address: 'parkingpage.namecheap.com.' },
      { name: '@', type: 'URL', address: 'http://www.example.com/?from=@' },
    ],
  })

  const emptied = await service.call('PUT', hosts, { body: { hosts: [] } })
  for (let read = 0; read < 2; read++) {
    await clock.advance(61_000)
    await service.call('GET', hosts, fresh)
  }

  expect(emptied.status).toBe(200)
  expect(service.live()).toHaveLength(2)
  const { body } = await service.call('GET', '/api/domains/example.com/dns/history')
  expect(body.history?.map(({ reason }) => reason)).toEqual([undefined])
})

test('a full zone fits into a body, also where its client escapes every character', async () => {
  await using service = await start()
  const address = '\u{1f600}'.repeat(2500)
  const list = Array.from({ length: 150 }, (_, n) => ({ name: `h${n}`, type: 'TXT', address }))
  const body = JSON.stringify({ hosts: list }).replaceAll('\u{1f600}', '\\ud83d\\ude00')

  const answer = await fetch(`${service.url}${hosts}?dry_run=true`, {
    method: 'PUT',
    headers: {
      authorization: `Bearer ${await service.sessionOf('admin')}`,
      'content-type': 'application/json',
    },
    body,
  })

  expect(answer.status).toBe(200)
  expect(await answer.json()).toMatchObject({ changes: { kept: 0 } })
})
