import { sql } from '@domains-and-files/persistence'
import { expect, test, vi } from 'vitest'
import { HostUpdates } from '../../src/ledger/host-updates.ts'
import { driveClock } from '../support/drive-clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { openEmbedded } from '../support/ledger.ts'
import { basic, createToken, send } from '../support/protocol-client.ts'
import { startReplicas } from '../support/replicas.ts'
import { type Service, start } from '../support/start.ts'

const domains = [
  { name: 'example.com', hosts: [{ name: 'home', type: 'A', address: '192.0.2.1', ttl: 120 }] },
  { name: 'example.net', hosts: [] },
]
const limits = { records: [{ name: 'home', types: ['A', 'AAAA'] }] }

async function update(service: Service, query: string, token?: string) {
  const headers = basic(token ?? (await createToken(service, limits)))
  return send(service, 'GET', `/nic/update?${query}`, { headers })
}

test.each([['/nic/update'], ['/integrations/nic/update']])(
  '%s sets the address of a host and keeps its TTL',
  async (path) => {
    await using service = await start({ domains })
    const headers = basic(await createToken(service, limits))

    const answer = await send(service, 'GET', `${path}?hostname=home.example.com&myip=192.0.2.9`, {
      headers,
    })

    expect([answer.status, answer.type, answer.text]).toEqual([200, 'text/plain', 'good 192.0.2.9'])
    expect(answer.headers.get('content-length')).toBe('14')
    expect(service.live()).toEqual(['home A 192.0.2.9 120 10'])
  },
)

test('the same address again is nochg, without a call to the registrar', async () => {
  await using service = await start({ domains })
  const token = await createToken(service, limits)
  await update(service, 'hostname=home.example.com&myip=192.0.2.9', token)
  const calls = service.commands().length

  const again = await update(service, 'hostname=home.example.com&myip=192.0.2.9', token)

  expect(again.text).toBe('nochg 192.0.2.9')
  expect(service.commands()).toHaveLength(calls)
})

test('two addresses set A and AAAA, and a family that is not sent stays', async () => {
  await using service = await start({ domains })
  const token = await createToken(service, limits)

  const both = await update(service, 'hostname=home.example.com&myip=192.0.2.9,2001:db8::1', token)
  const one = await update(service, 'hostname=home.example.com&myip=2001:DB8::2', token)

  expect([both.text, one.text]).toEqual(['good 192.0.2.9,2001:db8::1', 'good 2001:DB8::2'])
  expect(service.live().sort()).toEqual(['home A 192.0.2.9 120 10', 'home AAAA 2001:DB8::2 300 10'])
})

test('an IPv4 address that is written as an IPv6 one is an A record', async () => {
  await using service = await start({ domains })

  const answer = await update(service, 'hostname=home.example.com&myip=::ffff:192.0.2.9')

  expect(answer.text).toBe('good 192.0.2.9')
  expect(service.live()).toContain('home A 192.0.2.9 120 10')
})

test('without myip the address of the client is set', async () => {
  await using service = await start({ domains })

  const answer = await update(service, 'hostname=home.example.com&system=dyndns&wildcard=ON')

  expect(answer.text).toBe('good 127.0.0.1')
})

test('hosts of one request are one line each, and one write per domain', async () => {
  await using service = await start({ domains })
  const token = await createToken(service, { records: [{ name: '*', types: ['A'] }] })
  const hosts = ['home.example.com', 'a.example.com', 'b.example.com', 'x.example.org', 'home', 'c.example.com']

  // After the read that compares the addresses, that of the batch: it is answered when all writes wait.
  const getHosts = 'namecheap.domains.dns.getHosts'
  service.sandbox.fault({ kind: 'slow', ms: 600_000, command: getHosts, after: 1 })
  const updated = update(service, `hostname=${hosts.join(',')}&myip=192.0.2.9`, token)
  await expect.poll(() => service.countWaiting()).toBe(4)
  service.sandbox.clearFaults()
  const answer = await updated

  expect(answer.text.split('\n')).toEqual([
    'good 192.0.2.9',
    'good 192.0.2.9',
    'good 192.0.2.9',
    'nohost',
    'notfqdn',
    'good 192.0.2.9',
  ])
  expect(service.commands().filter((each) => each === 'dns.sethosts')).toHaveLength(1)
})

test('a host that is named twice has the same answer twice', async () => {
  await using service = await start({ domains })
  const token = await createToken(service, limits)

  const answer = await update(service, 'hostname=home.example.com,HOME.example.com.,home&myip=192.0.2.9', token)

  expect(answer.text).toBe('good 192.0.2.9\ngood 192.0.2.9\nnotfqdn')
})

test.each([
  ['', 'notfqdn'],
  ['hostname=&myip=192.0.2.9', 'notfqdn'],
  ['hostname=home&myip=192.0.2.9', 'notfqdn'],
  ['hostname=ho%20me.example.com&myip=192.0.2.9', 'notfqdn'],
  ['hostname=home.example.org&myip=192.0.2.9', 'nohost'],
  ['hostname=other.example.com&myip=192.0.2.9', '!yours'],
  ['hostname=home.example.com&myip=bad', 'dnserr'],
  ['hostname=home.example.com&myip=192.0.2.9,192.0.2.8', 'dnserr'],
  [`hostname=${Array.from({ length: 21 }, (_, n) => `h${n}.example.com`).join(',')}`, 'numhost'],
])('the query %j is answered %s', async (query, text) => {
  await using service = await start({ domains })

  const answer = await update(service, query)

  expect([answer.status, answer.text]).toEqual([200, text])
  expect(service.live()).toEqual(['home A 192.0.2.1 120 10'])
})

test.each([[{}], [basic('wrong')], [basic('ds_wrong')]])('without a valid token it is badauth: %j', async (headers) => {
  await using service = await start({ domains })

  const answer = await send(service, 'GET', '/nic/update?hostname=home.example.com', { headers })

  expect([answer.status, answer.type, answer.text]).toEqual([401, 'text/plain', 'badauth'])
  expect(answer.headers.get('www-authenticate')).toMatch(/^Basic realm=.*, Bearer realm=/)
})

test.each([
  ['a domain that the token may not see', { domains: ['example.net'] }, 'nohost'],
  ['a family that it may not write', { records: [{ name: 'home', types: ['A'] }] }, '!yours'],
  ['a token that may only read', { role: 'viewer' }, '!yours'],
])('%s: nothing is written', async (_name, limited, text) => {
  await using service = await start({ domains })
  const token = await createToken(service, { role: 'editor', ...limited })

  const query = 'hostname=home.example.com&myip=192.0.2.9,2001:db8::1'

  expect((await update(service, query, token)).text).toBe(text)
  expect(service.live()).toEqual(['home A 192.0.2.1 120 10'])
})

test('a CNAME at the name is dnserr', async () => {
  await using service = await start({
    domains: [{ name: 'example.com', hosts: [{ name: 'home', type: 'CNAME', address: 'a.example.net' }] }],
  })

  expect((await update(service, 'hostname=home.example.com&myip=192.0.2.9')).text).toBe('dnserr')
})

test('behind a proxy or a dual-stack socket, an IPv4 client without myip sets A', async () => {
  await using service = await start({ domains, env: { TRUST_PROXY: '127.0.0.1' } })
  const headers = {
    ...basic(await createToken(service, limits)),
    'x-forwarded-for': '::ffff:192.0.2.7',
  }

  const answer = await send(service, 'GET', '/nic/update?hostname=home.example.com', { headers })

  expect(answer.text).toBe('good 192.0.2.7')
})

test('a client is answered within 25 s, however long the zone is read', async () => {
  const clock = new FakeClock()
  await using service = await start({ domains, clock })
  const token = await createToken(service, limits)
  const command = 'namecheap.domains.dns.getHosts'
  service.sandbox.fault({ kind: 'slow', ms: 3_600_000, command })

  const updated = update(service, 'hostname=home.example.com&myip=192.0.2.9', token)
  await vi.waitFor(() => expect(service.commands()).toContain('dns.gethosts'), { timeout: 90_000 })
  await clock.advance(25_000)

  expect((await updated).text).toBe('911')
  service.sandbox.clearFaults()
})

test('a registrar that fails is 911', async () => {
  await using service = await start({ domains })
  const token = await createToken(service, limits)
  await update(service, 'hostname=home.example.com&myip=192.0.2.1', token)
  service.sandbox.fault({ kind: 'html', times: 0 })

  const answer = await update(service, 'hostname=home.example.com&myip=192.0.2.9', token)

  expect([answer.status, answer.text]).toEqual([200, '911'])
})

test('the same host more than 30 times in 5 minutes is abuse', async () => {
  const clock = new FakeClock()
  await using service = await start({ domains, clock })
  const token = await createToken(service, limits)
  const query = 'hostname=home.example.com&myip=192.0.2.1'
  for (let n = 0; n < 30; n++) expect((await update(service, query, token)).text).toMatch(/^nochg/)

  await clock.advance(299_000)
  const still = await update(service, query, token)
  await clock.advance(2_000)
  const later = await update(service, query, token)

  expect([still.text, later.text]).toEqual(['abuse', 'nochg 192.0.2.1'])
})

test('updates of a host count over all replicas, however its name is written', async () => {
  await using opened = await startReplicas(2, { domains })
  const { replicas } = opened
  const token = await createToken(replicas[0], limits)
  const query = 'hostname=home.example.com&myip=192.0.2.1'
  for (let n = 0; n < 30; n++) await update(replicas[n % 2] ?? replicas[0], query, token)

  const spellings = ['HOME.example.com', 'home.example.com.', 'ｈome.example.com']
  const answers = spellings.map((host) => update(replicas[1], query.replace('home.example.com', host), token))

  expect((await Promise.all(answers)).map(({ text }) => text)).toEqual(['abuse', 'abuse', 'abuse'])
})

test('the hosts that are counted are at most ten thousand, the newest', async () => {
  const database = openEmbedded()
  const updates = new HostUpdates(database)
  await database.run(sql`
    with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 12000)
    insert into host_updates (username, host, count, ends_at)
    select 'admin', n, 30, now_ms() + 100000 + n from numbers`)

  const isWithin = await updates.add('admin', ['12000'])
  const kept = await updates.add('admin', ['2000'])
  const forgotten = await updates.add('admin', ['1999'])

  expect([isWithin, kept, forgotten]).toEqual([false, false, true])
})

test('no more of a counted host is stored than a name can have', async () => {
  const database = openEmbedded()

  await new HostUpdates(database).add('admin', ['x'.repeat(10_000)])

  const rows = await database.all(sql`select length(host) as length from host_updates`)
  expect(rows).toEqual([{ length: 255 }])
})

test('an address is not nochg while another one is on its way', async () => {
  const clock = new FakeClock()
  await using service = await start({ domains, clock })
  const token = await createToken(service, limits)
  const set = (address: string) => update(service, `hostname=home.example.com&myip=${address}`, token)
  const first = await driveClock(clock, service, set('192.0.2.10'))
  const command = 'namecheap.domains.dns.getHosts'
  service.sandbox.fault({ kind: 'reset', command, times: 0 })
  const moved = await driveClock(clock, service, set('192.0.2.11'))

  const back = await driveClock(clock, service, set('192.0.2.10'))
  service.sandbox.clearFaults()
  let settled = back
  while (settled.text === '911') settled = await driveClock(clock, service, set('192.0.2.10'))

  expect([first.text, moved.text, back.text]).toEqual(['good 192.0.2.10', '911', '911'])
  expect(settled.text).toMatch(/^(?:good|nochg) 192\.0\.2\.10$/)
  expect(service.live()).toEqual(['home A 192.0.2.10 120 10'])
})
