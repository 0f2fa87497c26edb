import fc from 'fast-check'
import { expect, test } from 'vitest'
import { recordTypes } from '../../src/dns/record.ts'
import { start, www } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const mx = { name: '@', type: 'MX', address: 'mx.example.net.', mxPref: 5 }

test('a zone is answered in order, with an ETag', async () => {
  await using service = await start({
    domains: [
      {
        name: 'example.com',
        emailType: 'MX',
        hosts: [www, mx, { name: '@', type: 'TXT', address: 'v=spf1 -all', ttl: 60 }],
      },
    ],
  })

  const { status, headers, body } = await service.call('GET', hosts)

  expect(status).toBe(200)
  expect(headers.get('etag')).toMatch(/^"[\w-]{32}"$/)
  expect(headers.get('age')).toBe('0')
  expect(body).toEqual({
    domain: 'example.com',
    uses_registrar_dns: true,
    email_type: 'MX',
    hosts: [
      {
        id: expect.stringMatching(/^[0-9a-f]{12}$/),
        name: '@',
        type: 'MX',
        address: 'mx.example.net',
        ttl: 1800,
        mx_pref: 5,
      },
      {
        id: expect.stringMatching(/^[0-9a-f]{12}$/),
        name: '@',
        type: 'TXT',
        address: 'v=spf1 -all',
        ttl: 60,
      },
      {
        id: expect.stringMatching(/^[0-9a-f]{12}$/),
        name: 'www',
        type: 'A',
        address: '192.0.2.1',
        ttl: 1800,
      },
    ],
  })
})

test('an unchanged zone is a 304, a cached one costs no call, no-cache reads the registrar', async () => {
  await using service = await start()
  const first = await service.call('GET', hosts)
  const etag = first.headers.get('etag') ?? ''

  const same = await service.call('GET', hosts, {
    headers: { 'if-none-match': `"other", W/${etag}` },
  })
  const other = await service.call('GET', hosts, { headers: { 'if-none-match': '"other"' } })
  const callsBefore = service.commands()
  await service.sandbox.setZone('example.com', { hosts: [] })
  const fresh = await service.call('GET', hosts, { headers: { 'cache-control': 'no-cache' } })

  expect([same.status, other.status]).toEqual([304, 200])
  expect(same.headers.get('etag')).toBe(etag)
  expect(callsBefore).toEqual(['dns.gethosts'])
  expect(fresh.body.hosts).toEqual([])
  expect(service.commands()).toHaveLength(2)
})

test('a record is added, and all that was there stays as it was', async () => {
  const odd = { name: 'Old', type: 'CNAME', address: 'Target.Example.net', ttl: 1799 }
  await using service = await start({
    domains: [{ name: 'example.com', emailType: 'FWD', hosts: [www, odd] }],
  })

  const added = await service.call('POST', `${hosts}/a`, {
    body: { name: 'New', address: '192.0.2.9', ttl: 300 },
  })

  expect(added.status).toBe(201)
  expect(added.body).toEqual({
    id: expect.any(String),
    name: 'new',
    type: 'A',
    address: '192.0.2.9',
    ttl: 300,
  })
  expect(added.headers.get('location')).toBe(`${hosts}/${added.body.id}`)
  const read = await service.call('GET', added.headers.get('location') ?? '')
  expect(read.body).toEqual(added.body)
  const zone = await service.call('GET', hosts)
  expect(zone.headers.get('etag')).toBe(added.headers.get('etag'))
  const { params } = service.sandbox.calls.find(({ command }) => /sethosts/i.test(command)) ?? {}
  expect(Object.values(params ?? {})).toEqual(
    expect.arrayContaining(['Old', 'Target.Example.net', '1799', 'FWD']),
  )
  expect(service.sandbox.zone('example.com').emailType).toBe('FWD')
  expect(service.commands()).toEqual(['dns.gethosts', 'dns.sethosts', 'dns.gethosts'])
})

test('an MX preference of 0 and texts with any character survive a round trip', async () => {
  await using service = await start()
  const text = ` +a b%20&c=d;"e"'f'<g>\\\u00e9\u{1f600}\t# `

  const first = await service.call('POST', `${hosts}/MX`, {
    body: { name: '@', address: 'mx.example.net', mx_pref: 0 },
  })
  const second = await service.call('POST', `${hosts}/TXT`, { body: { name: '@', address: text } })

  expect(first.body).toMatchObject({
    mx_pref: 0,
    warnings: [expect.stringContaining('email type is now MX')],
  })
  expect(second.status).toBe(201)
  const { body } = await service.call('GET', hosts, { headers: { 'cache-control': 'no-cache' } })
  expect(body.email_type).toBe('MX')
  expect(body.hosts).toContainEqual(expect.objectContaining({ type: 'TXT', address: text }))
  expect(body.hosts).toContainEqual(expect.objectContaining({ type: 'MX', mx_pref: 0 }))
})

test('the same record again is refused, and nothing is written', async () => {
  await using service = await start()

  const { status, body } = await service.call('POST', `${hosts}/A`, {
    body: { name: 'WWW', address: '192.0.2.1', ttl: 60 },
  })

  expect(status).toBe(409)
  expect(body.code).toBe('record_exists')
  expect(service.commands()).toEqual(['dns.gethosts'])
})

test.each([
  ['SRV', { name: 'a', address: 'x' }, ['/path/type']],
  ['A', { name: 'a b', address: '1.2.3', ttl: 1, mx_pref: 70_000 }, ['/name', '/address', '/ttl']],
  ['A', { address: 5 }, ['/name', '/address']],
  ['A', { name: 'a', address: '192.0.2.1', color: 'red' }, ['/color']],
  ['A', { name: 'www.example.com', address: '192.0.2.1' }, ['/name']],
  ['TXT', { name: 'a', address: '' }, ['/address']],
  ['MX', { name: '@', address: 'mx.example.net', email_type: 'POST' }, ['/email_type']],
])('adding %s %j is refused with every fault, before any call', async (type, body, paths) => {
  await using service = await start()

  const answer = await service.call('POST', `${hosts}/${type}`, { body })

  expect(answer.status).toBe(400)
  expect(answer.body.code).toBe('validation_failed')
  expect(answer.body.errors?.map(({ path }) => path)).toEqual(paths)
  expect(service.commands()).toEqual([])
})

test('a CNAME beside a live record is a conflict that names the live record', async () => {
  await using service = await start()

  const { status, body } = await service.call('POST', `${hosts}/CNAME`, {
    body: { name: 'www', address: 'a.example.net' },
  })

  const live = await service.call('GET', hosts)
  expect([status, body.code]).toEqual([409, 'record_conflict'])
  expect(body.detail).toContain(`record ${live.body.hosts?.[0]?.id} (www A 192.0.2.1)`)
  expect(service.live()).toEqual(['www A 192.0.2.1 1800 10'])
})

test('a zone is replaced: what is not in the list is deleted, what is unchanged is kept', async () => {
  await using service = await start({
    domains: [
      { name: 'example.com', hosts: [www, { name: 'old', type: 'A', address: '192.0.2.2' }] },
    ],
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
const anyText = fc
  .string({ unit: 'grapheme', maxLength: 20 })
  .filter((value) => !/[^\P{C}\t\n]/u.test(value))
const anyRow = fc.record({
  name: fc.oneof(fc.constantFrom('@', 'www', 'WWW', '*.a', '-x-', 'a.example.com'), anyText),
  type: fc.constantFrom<string>(...recordTypes, 'SRV'),
  address: fc.oneof(
    fc.constantFrom('192.0.2.1', 'host.example.net.', '0 issue "ca.example.net"', ' 1e3 '),
    anyText,
  ),
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
      expect([answer.status, answer.body.changes]).toEqual([
        200,
        { added: [], removed: [], kept: rows.length },
      ])
      expect(answer.headers.get('etag')).toBe(read.headers.get('etag'))
    }),
    { numRuns: 100, interruptAfterTimeLimit: 10_000 },
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

test.each([
  [{}, ['/hosts']],
  [{ hosts: {} }, ['/hosts']],
  [{ hosts: [{ name: 'a' }] }, ['/hosts/0/address', '/hosts/0/type']],
  [{ hosts: [{ name: 'a', type: 'A', address: '192.0.2.1', tll: 60 }] }, ['/hosts/0/tll']],
  [{ hosts: [{ name: 'a', type: 'A', address: '192.0.2.1', ttl: '60' }] }, ['/hosts/0/ttl']],
  [{ hosts: [], host: [] }, ['/host']],
])('the body %j is refused before any call', async (body, paths) => {
  await using service = await start()

  const answer = await service.call('PUT', hosts, { body })

  expect(answer.status).toBe(400)
  expect(answer.body.errors?.map(({ path }) => path).sort()).toEqual([...paths].sort())
  expect(service.commands()).toEqual([])
})

test('a record is removed by its id', async () => {
  await using service = await start()
  const { body } = await service.call('GET', hosts)
  const id = body.hosts?.[0]?.id

  const removed = await service.call('DELETE', `${hosts}/${id}`)
  const again = await service.call('DELETE', `${hosts}/${id}`)
  const read = await service.call('GET', `${hosts}/${id}`)

  expect(removed).toMatchObject({
    status: 200,
    body: { hosts: [], changes: { added: [], removed: [{ id }], kept: 0 } },
  })
  expect([again.status, again.body.code, read.status]).toEqual([404, 'record_not_found', 404])
  expect(service.live()).toEqual([])
})

test('a zone that changed since it was read is not overwritten', async () => {
  await using service = await start()
  const { headers } = await service.call('GET', hosts)
  const ifMatch = { 'if-match': headers.get('etag') ?? '' }
  await service.sandbox.setZone('example.com', {
    hosts: [www, { name: 'panel', type: 'A', address: '192.0.2.5' }],
  })

  const refused = await Promise.all([
    service.call('PUT', hosts, { headers: ifMatch, body: { hosts: [] } }),
    service.call('POST', `${hosts}/A`, {
      headers: ifMatch,
      body: { name: 'a', address: '192.0.2.1' },
    }),
    service.call('DELETE', `${hosts}/000000000000`, { headers: ifMatch }),
  ])
  const current = refused[0]?.headers.get('etag') ?? ''
  const taken = await service.call('PUT', hosts, {
    headers: { 'if-match': `"x", ${current}` },
    body: { hosts: [] },
  })
  const any = await service.call('PUT', hosts, {
    headers: { 'if-match': '*' },
    body: { hosts: [] },
  })

  expect(refused.map(({ status, body }) => [status, body.code])).toEqual(
    refused.map(() => [412, 'precondition_failed']),
  )
  expect(current).not.toBe(headers.get('etag'))
  expect([taken.status, any.status]).toEqual([200, 200])
})

test('a dry run answers the result, and writes nothing', async () => {
  await using service = await start()

  const put = await service.call('PUT', `${hosts}?dry_run=true`, { body: { hosts: [] } })
  const post = await service.call('POST', `${hosts}/A?dry_run=true`, {
    body: { name: 'a', address: '192.0.2.1' },
  })
  const refused = await service.call('POST', `${hosts}/A?dry_run=true`, {
    body: { name: 'www', address: '192.0.2.1' },
  })
  const unclear = await service.call('PUT', `${hosts}?dry_run=perhaps`, { body: { hosts: [] } })

  expect(put.body).toMatchObject({
    dry_run: true,
    hosts: [],
    changes: { removed: [{ name: 'www' }] },
  })
  expect(post).toMatchObject({ status: 201, body: { dry_run: true, name: 'a' } })
  expect(refused.status).toBe(409)
  expect(unclear).toMatchObject({ status: 400, body: { errors: [{ path: '/query/dry_run' }] } })
  expect(service.commands().filter((command) => command === 'dns.sethosts')).toEqual([])
  expect((await service.call('GET', '/api/domains/example.com/dns/history')).body.history).toEqual(
    [],
  )
})

test('records of unsupported types are lost only with force=true', async () => {
  const srv = { name: '_sip._tcp', type: 'SRV', address: '0 5 5060 sip.example.net.' }
  await using service = await start({ domains: [{ name: 'example.com', hosts: [www, srv] }] })

  const refused = await service.call('POST', `${hosts}/A`, {
    body: { name: 'a', address: '192.0.2.1' },
  })
  const meant = await service.call('POST', `${hosts}/A?force=true`, {
    body: { name: 'a', address: '192.0.2.1' },
  })

  expect(refused).toMatchObject({
    status: 409,
    body: { code: 'unsupported_records', detail: expect.stringContaining('_sip._tcp SRV') },
  })
  expect(meant).toMatchObject({
    status: 201,
    body: { warnings: [expect.stringContaining('_sip._tcp SRV')] },
  })
  expect(service.live()).toEqual(['a A 192.0.2.1 1800 10', 'www A 192.0.2.1 1800 10'])
})

test('a record that loses its dynamic-DNS flag causes a warning', async () => {
  await using service = await start({
    domains: [{ name: 'example.com', hosts: [{ ...www, isDdns: true }] }],
  })

  const { body } = await service.call('POST', `${hosts}/A`, {
    body: { name: 'a', address: '192.0.2.1' },
  })

  expect(body.warnings).toEqual(['www A 192.0.2.1 loses its dynamic-DNS flag'])
})

test.each(['error', 'stale'] as const)(
  'a domain on other nameservers is not written (%s)',
  async (whenElsewhere) => {
    await using service = await start({
      domains: [
        {
          name: 'example.com',
          dns: 'custom',
          nameservers: ['ns1.example.net'],
          whenElsewhere,
          hosts: [www],
        },
      ],
    })

    const { status, body } = await service.call('PUT', hosts, { body: { hosts: [] } })

    expect([status, body.code]).toEqual([409, 'dns_not_managed'])
    expect(service.commands()).not.toContain('dns.sethosts')
  },
)

test('a first MX in a zone that forwards e-mail needs email_type', async () => {
  await using service = await start({
    domains: [{ name: 'example.com', emailType: 'FWD', hosts: [www] }],
  })
  const record = { name: '@', address: 'mx.example.net' }

  const refused = await service.call('POST', `${hosts}/MX`, { body: record })
  const meant = await service.call('POST', `${hosts}/MX`, { body: { ...record, email_type: 'MX' } })

  expect(refused).toMatchObject({
    status: 409,
    body: { code: 'email_type_conflict', detail: expect.stringContaining('"email_type": "MX"') },
  })
  expect(meant.status).toBe(201)
  expect(service.sandbox.zone('example.com').emailType).toBe('MX')
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
  expect(body.errors?.map(({ path }) => path)).toEqual(['/email_type'])
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

test('an unknown domain is a 404, a domain without the right to change it a 403', async () => {
  await using service = await start({
    domains: [{ name: 'shared.com', isOwner: false, rights: ['dns'], hosts: [www] }],
  })
  const body = { hosts: [] }

  const unknown = await service.call('PUT', hosts, { body })
  const shared = await service.call('PUT', '/api/domains/shared.com/dns/hosts', { body })

  expect([unknown.status, unknown.body.code]).toEqual([404, 'domain_not_found'])
  expect([shared.status, shared.body.code]).toEqual([403, 'domain_not_editable'])
})
