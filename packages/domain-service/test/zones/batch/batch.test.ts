import { expect, test } from 'vitest'
import { FakeClock } from '../../support/fake-clock.ts'
import { joinWrites } from '../../support/join-writes.ts'
import { start, www } from '../../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'

test('a hundred adds at once to one domain all succeed, lose nothing and cost three calls', async () => {
  const env = { REGISTRAR_TIMEOUT_MS: '120000' }
  await using service = await start({ env, clock: new FakeClock() })

  const answers = await joinWrites({ services: [service], count: 100 }, (n) =>
    service.call('POST', `${hosts}/A`, { body: { name: `h${n}`, address: '192.0.2.9' } }),
  )

  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201))
  expect(service.live()).toHaveLength(101)
  expect(service.live()).toContain('www A 192.0.2.1 1800 10')
  expect(service.commands()).toEqual(['dns.gethosts', 'dns.sethosts', 'dns.gethosts'])
  const { body } = await service.call('GET', '/api/domains/example.com/dns/history')
  expect(body.pagination).toMatchObject({ total_items: 100 })
})

test('a write tells what it left, though a later one of the batch removes it', async () => {
  const env = { REGISTRAR_TIMEOUT_MS: '120000' }
  await using service = await start({ env, clock: new FakeClock() })
  const { body } = await service.call('GET', hosts)
  const [known] = body.hosts ?? []
  const rrset = '/api/domains/example.com/dns/rrsets/new/A'
  const writes = [
    () => service.call('PUT', rrset, { body: { values: ['192.0.2.8'] } }),
    () => service.call('PATCH', `${hosts}/${known?.id}`, { body: { ttl: known?.ttl } }),
    () => service.call('PUT', hosts, { body: { hosts: [] } }),
  ]

  const answers = await joinWrites({ services: [service], count: 3, isOrdered: true }, async (n) => writes[n]?.())

  expect(answers.map((answer) => answer?.status)).toEqual([201, 200, 200])
  expect(answers[0]?.body).toMatchObject({ name: 'new', values: ['192.0.2.8'] })
  expect(answers[1]?.body).toEqual(known)
  expect(service.live()).toEqual([])
})

test('fifty equal reads at once cost one call', async () => {
  await using service = await start()
  await service.call('GET', '/health')

  const answers = await Promise.all(Array.from({ length: 50 }, () => service.call('GET', hosts)))

  expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1)
  expect(service.commands()).toEqual(['dns.gethosts'])
})

test('each write of a batch gets its own answer', async () => {
  await using service = await start({
    env: { REGISTRAR_TIMEOUT_MS: '120000' },
    clock: new FakeClock(),
  })
  const { headers } = await service.call('GET', hosts)
  const ifMatch = { 'if-match': headers.get('etag') ?? '' }
  const a = { body: { name: 'a', address: '192.0.2.2' }, headers: ifMatch }
  const b = { body: { name: 'b', address: '192.0.2.2' }, headers: ifMatch }
  const c = { body: { name: 'c', address: '192.0.2.2' } }
  const writes = [
    () => service.call('POST', `${hosts}/A`, a),
    () => service.call('POST', `${hosts}/A`, b),
    () => service.call('POST', `${hosts}/A`, c),
    () => service.call('POST', `${hosts}/A`, c),
    () => service.call('POST', `${hosts}/CNAME`, { body: { name: 'www', address: 'x.example.net' } }),
    () => service.call('DELETE', `${hosts}/000000000000`),
  ]

  const answers = await joinWrites({ services: [service], count: 6, isOrdered: true }, async (n) => {
    const answer = await writes[n]?.()
    return [answer?.status, answer?.body.code].filter(Boolean).join(' ')
  })

  // Two who read the same zone: the second one's is no longer it. Two equal adds: one of them is there already.
  expect(answers).toEqual([
    ...['201', '412 precondition_failed', '201', '409 record_exists'],
    ...['409 record_conflict', '404 record_not_found'],
  ])
  expect(service.live()).toHaveLength(3)
})

test('different domains are written side by side', async () => {
  await using service = await start({
    domains: [
      { name: 'example.com', hosts: [www] },
      { name: 'other.com', hosts: [www] },
    ],
    env: { REGISTRAR_TIMEOUT_MS: '120000' },
  })
  service.sandbox.fault({
    kind: 'slow',
    ms: 60_000,
    command: 'namecheap.domains.dns.getHosts',
    domain: 'example.com',
  })
  const order: string[] = []

  await Promise.all(
    ['example.com', 'other.com'].map(async (domain) => {
      await service.call('POST', `/api/domains/${domain}/dns/hosts/A`, {
        body: { name: 'a', address: '192.0.2.2' },
      })
      order.push(domain)
      service.sandbox.clearFaults()
    }),
  )

  expect(order).toEqual(['other.com', 'example.com'])
})

test('after a write has been answered no read is older than it', async () => {
  await using service = await start()

  for (let round = 0; round < 20; round++) {
    const reads = Array.from({ length: 5 }, () =>
      service.call('GET', hosts, { headers: { 'cache-control': 'no-cache' } }),
    )
    const written = await service.call('POST', `${hosts}/A`, {
      body: { name: `r${round}`, address: '192.0.2.2' },
    })
    const after = await service.call('GET', hosts)
    await Promise.all(reads)

    expect(after.headers.get('etag')).toBe(written.headers.get('etag'))
    expect(after.body.hosts).toHaveLength(round + 2)
  }
})

test('an accepted write completes although its client disconnects and the service stops', async () => {
  await using service = await start({ env: { REGISTRAR_TIMEOUT_MS: '120000' } })
  service.sandbox.fault({ kind: 'slow', ms: 60_000, command: 'namecheap.domains.dns.setHosts' })
  const answer = service.call('POST', `${hosts}/A`, { body: { name: 'a', address: '192.0.2.2' } })
  await expect.poll(service.commands).toContain('dns.sethosts')

  const closed = service.close()
  service.sandbox.clearFaults()

  expect((await answer).status).toBe(201)
  await closed
  expect(service.live()).toContain('a A 192.0.2.2 1800 10')
})

test('a write sends one of the records that the registrar would merge, and tells of the others', async () => {
  const exchange = { name: '@', type: 'MX', address: 'mx.example.net.' }
  const rows = [www, www, exchange, { ...exchange, mxPref: 20 }]
  await using service = await start({
    domains: [{ name: 'example.com', emailType: 'MX', hosts: rows }],
  })

  const same = await service.call('GET', hosts)
  const kept = await service.call('PUT', hosts, { body: { hosts: same.body.hosts } })
  const added = await service.call('PATCH', hosts, {
    body: { add: [{ name: 'new', type: 'A', address: '192.0.2.9' }] },
  })

  expect([kept.status, kept.body.changes]).toEqual([200, { added: [], removed: [], kept: 4 }])
  expect([added.status, added.body.warnings]).toEqual([
    200,
    [
      'www A 192.0.2.1 is there more than once: the registrar keeps one of them',
      '@ MX mx.example.net is there more than once: the registrar keeps one of them',
    ],
  ])
  expect(added.body.changes?.removed).toMatchObject([{ name: 'www' }, { name: '@', mx_pref: 20 }])
  expect(service.live()).toEqual(['new A 192.0.2.9 1800 10', 'www A 192.0.2.1 1800 10', '@ MX mx.example.net. 1800 10'])
})

test('a write keeps two spellings of an address, as the registrar does', async () => {
  const spellings = ['2001:db8::1', '2001:db8:0::1'].map((address) => ({ name: 'v6', type: 'AAAA', address }))
  await using service = await start({ domains: [{ name: 'example.com', hosts: spellings }] })
  const before = service.live()

  const added = await service.call('POST', `${hosts}/A`, { body: { name: 'new', address: '192.0.2.9' } })

  expect(added.status).toBe(201)
  expect(service.live().sort()).toEqual(['new A 192.0.2.9 1800 10', ...before].sort())
})
