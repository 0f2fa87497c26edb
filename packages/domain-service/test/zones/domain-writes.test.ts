import { setImmediate as turn } from 'node:timers/promises'
import type { Postgres } from '@domains-and-files/persistence'
import { expect, test, vi } from 'vitest'
import { hurry, hurryTimers } from '../../../../test/support/hurried-timers.ts'
import { isDatabaseQuiet } from '../../../../test/support/postgres/pools.ts'
import { PostgresProxy } from '../../../../test/support/postgres/postgres-proxy.ts'
import { type Domain, readDomain } from '../../src/dns/domain-name.ts'
import type { QueuedChange } from '../../src/ledger/ledger.ts'
import { DomainWrites } from '../../src/zones/domain-writes.ts'
import { makeDatabase } from '../support/databases.ts'
import { requestBy } from '../support/ledger.ts'
import { startReplicas } from '../support/replicas.ts'
import { start } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const record = (name: string) => ({ body: { name, address: '192.0.2.9' } })

/** The time limit of statements: the default one for a database that is silenced by `silence`. */
const limitMs = 150_000
const limited = { DATABASE_TIMEOUT_MS: String(limitMs) }

test('a write that is being queued when a batch gathers its writes joins that batch', async () => {
  const [first, second] = [1, 2].map((id) => ({ id, isAsync: 1, request: requestBy('admin') }))
  const ready = vi
    .fn()
    .mockResolvedValueOnce({ ready: [first], upTo: 1 })
    .mockResolvedValueOnce({ ready: [second], upTo: 2 })
    .mockResolvedValue({ ready: [], upTo: 2 })
  const acceptAwaited = () => new Promise(() => undefined)
  const domain = readDomain('example.com')
  const writes = new DomainWrites(domain as Domain, { ledger: { acceptAwaited, ready } } as never)
  void writes.write(requestBy('admin'))
  const gathered: QueuedChange[] = []

  await writes.gather(gathered)

  expect(gathered).toEqual([first, second])
})

test('a write at one replica is seen by the next read at another', async () => {
  await using set = await startReplicas(2)
  const [first, second] = set.replicas
  await second.call('GET', hosts)

  for (let n = 0; n < 3; n++) {
    await first.call('POST', `${hosts}/A`, record(`r${n}`))
    const { body } = await second.call('GET', hosts)
    expect(body.hosts?.map(({ name }) => name)).toContain(`r${n}`)
  }
})

test('the replica that wrote serves its next read from its cache', async () => {
  await using set = await startReplicas(2)
  const [first] = set.replicas
  await first.call('POST', `${hosts}/A`, record('new'))
  const calls = first.commands().length

  await first.call('GET', hosts)

  expect(first.commands()).toHaveLength(calls)
})

test.each([
  ['that poll', false],
  ['that listen', true],
])('replicas %s answer a refusal alike, with its headers', async (_name, isListening) => {
  await using set = await startReplicas(2, { isListening })
  const stale = { ...record('new'), headers: { 'if-match': '"stale"' } }

  const answers = await Promise.all(set.replicas.map((replica) => replica.call('POST', `${hosts}/A`, stale)))

  expect(answers.map(({ status, body }) => [status, body.code])).toEqual([
    [412, 'precondition_failed'],
    [412, 'precondition_failed'],
  ])
  const [etag, other] = answers.map(({ headers }) => headers.get('etag'))
  expect(etag).toMatch(/^"/)
  expect(other).toBe(etag)
})

test('one request under one key at two replicas is one write with one answer', async () => {
  await using set = await startReplicas(2)
  const request = { ...record('new'), headers: { 'idempotency-key': 'key' } }

  const answers = await Promise.all(set.replicas.map((replica) => replica.call('POST', `${hosts}/A`, request)))

  expect(answers.map(({ status }) => status)).toEqual([201, 201])
  expect(set.replicas[0].live()).toHaveLength(2)
})

test('changes that a dead replica has accepted: asynchronous ones are carried out, others are cancelled', async () => {
  await using database = await makeDatabase()
  await using replica = await start({ databaseUrl: database.url })
  const request = (name: string) =>
    JSON.stringify({
      domain: 'example.com',
      by: 'admin',
      requestId: 'request',
      edit: {
        kind: 'ensure',
        present: [{ name, type: 'A', address: '192.0.2.9', ttl: 1800 }],
        absent: [],
      },
      force: false,
    })

  await database.postgres.query(
    `insert into domain_service.changes (domain, status, by, caller, request_id, is_async, verified, created_at, warnings,
       request)
     select 'example.com', 'queued', 'admin', 'admin', 'request', is_async, 0, 0, '[]', request
     from unnest($1::int[], $2::text[]) change (is_async, request)`,
    [
      [1, 0],
      [request('asynchronous'), request('awaited')],
    ],
  )

  const statuses = async () => {
    const { body } = await replica.call('GET', '/api/changes')
    return body.change_list?.map(({ status }) => status)
  }
  await expect.poll(statuses).toEqual(['cancelled', 'confirmed'])
  expect(replica.live().filter((row) => /asynchronous|awaited/.test(row))).toHaveLength(1)
})

test('a send that a dead replica left open is resolved by the next holder of the lease', async () => {
  await using database = await makeDatabase()
  await using replica = await start({ databaseUrl: database.url })
  await replica.call('POST', `${hosts}/A`, record('new'))
  await replica.close()
  // As the holder left it that died before it recorded the outcome.
  await database.postgres.query(
    `with opened as (update domain_service.sends set state = 'open', found = null, ended_at = null)
     update domain_service.changes set status = 'sending', verified = 0, ended_at = null`,
  )

  await using next = await start({ databaseUrl: database.url, sandbox: replica.sandbox })

  const changes = async () => (await next.call('GET', '/api/changes')).body.change_list
  await expect.poll(changes).toMatchObject([{ status: 'confirmed' }])
})

test.each([
  ['that is silent', 'silence'],
  ['behind a pooler that gets no answer from it', 'ignoreQueries'],
] as const)(
  'a database %s is a 503 within the time limit, and is used again as soon as it is back',
  async (_name, fault) => {
    await using database = await makeDatabase()
    await using proxy = await PostgresProxy.open(database.url)
    await using replica = await start({ databaseUrl: proxy.url, env: limited })
    await replica.sessionOf('admin')

    await silence(proxy, fault)
    const answers = Promise.all([
      replica.call('POST', `${hosts}/A`, record('lost')),
      replica.call('GET', hosts),
      replica.call('GET', '/api/changes'),
    ])
    const first = await Promise.race([answers, afterOneLimit()])
    proxy.resume()

    expect(first).not.toBe('late')
    expect((await answers).map(({ status }) => status)).toEqual([503, 503, 503])
    const again = () => replica.call('POST', `${hosts}/A`, record('new')).then(({ status }) => status)
    await expect.poll(again).toBe(201)
    expect(replica.live().some((row) => row.startsWith('lost'))).toBe(false)
  },
)

/** Takes the database away, between two statements: from now on its time limits pass quickly, until the result is called. */
const silence = (proxy: PostgresProxy, fault: 'silence' | 'ignoreQueries' = 'silence') =>
  vi.waitUntil(
    () => {
      if (!isDatabaseQuiet(proxy.url)) return undefined
      const calm = hurryTimers()
      proxy[fault]()
      return calm
    },
    { timeout: 180_000, interval: 5 },
  )

/** Resolves when one statement has run into its time limit, and not two in a row. */
async function afterOneLimit() {
  await new Promise((resolve) => setTimeout(resolve, 1.5 * limitMs))
  // Both times pass in this process. If it has stood still since, the answers are on their way: it has the sockets at both ends.
  for (let turns = 0; turns < 1_000; turns++) await turn()
  return 'late'
}

test('however many clients a batch has, they are answered soon after the database has fallen silent', async () => {
  await using database = await makeDatabase()
  await using proxy = await PostgresProxy.open(database.url)
  await using replica = await start({ databaseUrl: proxy.url, env: limited })
  await replica.call('GET', hosts)
  replica.sandbox.clearCalls()
  replica.sandbox.fault({ kind: 'slow', ms: 600_000, command: 'namecheap.domains.dns.getHosts' })
  const writes = Array.from({ length: 40 }, (_, n) => replica.call('POST', `${hosts}/A`, record(`r${n}`)))
  await expect.poll(() => replica.commands().length, { interval: 10 }).toBe(1)

  await silence(proxy)
  replica.sandbox.clearFaults()
  const started = performance.now()
  const answers = await Promise.all(writes)
  const waited = performance.now() - started
  proxy.resume()

  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]))
  // The time limit of one query, and not one for each client.
  expect(waited).toBeLessThan(((writes.length / 2) * limitMs) / hurry)
})

test('a client that waits for calls together with an asynchronous change gets a 503 when the database goes away', async () => {
  await using database = await makeDatabase()
  await using proxy = await PostgresProxy.open(database.url)
  await using replica = await start({
    databaseUrl: proxy.url,
    env: { ...limited, REGISTRAR_RATE: '3/minute' },
  })
  await replica.call('GET', hosts)
  const later = { ...record('later'), headers: { prefer: 'respond-async' } }
  await replica.call('POST', `${hosts}/A`, later)
  const write = replica.call('POST', `${hosts}/A`, record('lost'))
  const countAccepted = async () => (await database.postgres.query('select id from domain_service.changes')).length
  await expect.poll(countAccepted).toBe(2)

  await silence(proxy)
  const { status } = await write
  proxy.resume()

  expect(status).toBe(503)
  expect(replica.live()).toHaveLength(1)
})

/** The lease of the domain as another replica holds it, until it is released. */
async function holdLease(postgres: Pick<Postgres, 'query'>) {
  await postgres.query(
    `insert into domain_service.leases values ('example.com', 'another', 1, domain_service.lease_ms() + 3600000)`,
  )
  return () => postgres.query('update domain_service.leases set until = 0')
}

/** Resolves when a write has been queued. */
const queued = (postgres: Pick<Postgres, 'query'>) =>
  expect.poll(() => postgres.query('select status from domain_service.changes')).toEqual([{ status: 'queued' }])

test('a write that was queued and answered `outcome_unknown` is never sent, and ends as cancelled', async () => {
  await using database = await makeDatabase()
  await using proxy = await PostgresProxy.open(database.url)
  await using first = await start({ databaseUrl: proxy.url, env: limited })
  await using second = await start({ databaseUrl: database.url, sandbox: first.sandbox })
  await Promise.all([first, second].map((replica) => replica.sessionOf('admin')))
  const release = await holdLease(database.postgres)
  const write = first.call('POST', `${hosts}/A`, record('lost'))
  await queued(database.postgres)

  const calm = await silence(proxy)
  const { status, body } = await write
  calm() // The other replica needs the time that it needs.
  await release()
  const later = await second.call('POST', `${hosts}/A`, record('later'))
  proxy.resume()
  // As if half a minute had passed.
  await database.postgres.query('update domain_service.changes set awaited_until = awaited_until - 30000')

  expect([status, body.code]).toEqual([503, 'outcome_unknown'])
  expect(later.status).toBe(201)
  const statuses = async () => {
    const answer = await second.call('GET', '/api/changes')
    return answer.body.change_list?.map((change) => change.status)
  }
  await expect.poll(statuses).toEqual(['confirmed', 'cancelled'])
  expect(first.live().some((row) => row.startsWith('lost'))).toBe(false)
})

test('a write that waits while connections to the database are lost is carried out once it can be', async () => {
  await using database = await makeDatabase()
  await using proxy = await PostgresProxy.open(database.url)
  await using replica = await start({ databaseUrl: proxy.url })
  await replica.sessionOf('admin')
  const release = await holdLease(database.postgres)
  const write = replica.call('POST', `${hosts}/A`, record('new'))
  await queued(database.postgres)

  proxy.cut()
  await release()

  expect((await write).status).toBe(201)
})

test.each(['lose', 'hide'] as const)('a COMMIT that the network %ss leaves nothing wrongly answered', async (fault) => {
  await using database = await makeDatabase()
  await using proxy = await PostgresProxy.open(database.url)
  await using replica = await start({ databaseUrl: proxy.url })
  await replica.sessionOf('admin')
  let commits = 0
  proxy.onCommit = () => (++commits % 7 === 0 ? fault : undefined)

  const answers = new Map<string, number>()
  for (let n = 0; n < 8; n++) {
    const { status, body } = await replica.call('POST', `${hosts}/A`, record(`r${n}`))
    if (body.code !== 'outcome_unknown' && body.code !== 'write_not_confirmed') answers.set(`r${n}`, status)
  }
  proxy.onCommit = undefined

  const live = new Set(replica.live().map((row) => row.split(' ')[0]))
  const wrong = [...answers].filter(([name, status]) => live.has(name) !== (status === 201))
  expect(wrong).toEqual([])
})
