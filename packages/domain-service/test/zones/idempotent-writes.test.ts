import { expect, test } from 'vitest'
import { driveClock } from '../support/drive-clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { createToken, send } from '../support/protocol-client.ts'
import { type Service, start } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const setHosts = 'namecheap.domains.dns.setHosts'

const add = (service: Service, key: string, { name = 'new', user = 'admin' } = {}) =>
  service.call('POST', `${hosts}/A`, {
    body: { name, address: '192.0.2.9' },
    headers: { 'idempotency-key': key },
    user,
  })

const sendsOf = (service: Service) => service.commands().filter((command) => command === 'dns.sethosts').length

test('a repeated request gets the same answer and writes nothing', async () => {
  await using service = await start()

  const answers = [await add(service, 'key'), await add(service, 'key')]

  expect(answers.map(({ status }) => status)).toEqual([201, 201])
  expect(answers[1]?.body).toEqual(answers[0]?.body)
  expect(answers[1]?.headers.get('etag')).toBe(answers[0]?.headers.get('etag'))
  expect(sendsOf(service)).toBe(1)
})

test('requests at once under one key are one write', async () => {
  await using service = await start()
  await service.call('GET', '/health')

  const answers = await Promise.all([1, 2, 3].map(() => add(service, 'key')))

  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
  expect(sendsOf(service)).toBe(1)
})

test('another request under the same key is refused; another user has keys of their own', async () => {
  await using service = await start()
  await add(service, 'key')

  const other = await add(service, 'key', { name: 'other' })
  const foreign = await add(service, 'key', { name: 'foreign', user: 'editor' })

  expect([other.status, other.body.code]).toEqual([422, 'idempotency_key_reused'])
  expect(foreign.status).toBe(201)
})

test('a refusal is repeated as it was', async () => {
  await using service = await start()
  service.sandbox.fault({ kind: 'error', number: 2011170, message: 'no', command: setHosts })

  const answers = [await add(service, 'key'), await add(service, 'key')]

  expect(answers.map(({ status, body }) => [status, body.code, body.detail])).toEqual(
    Array(2).fill([422, 'registrar_rejected', answers[0]?.body.detail]),
  )
  expect(sendsOf(service)).toBe(1)
})

test('a refused request stays refused when repeated, though it would succeed now', async () => {
  await using service = await start()
  await add(service, 'other key')

  const first = await add(service, 'key')
  await service.call('DELETE', '/api/domains/example.com/dns/rrsets/new/A')
  const repeated = await add(service, 'key')

  expect([first.body.code, repeated.body.code]).toEqual(['record_exists', 'record_exists'])
  expect(service.live()).toHaveLength(1)
})

test('a request that failed before anything was sent is carried out when repeated', async () => {
  const clock = new FakeClock()
  await using service = await start({ env: { REGISTRAR_RATE: '3/minute' }, clock })
  await service.call('GET', hosts)

  const busy = await add(service, 'key')
  await clock.advance(61_000)
  const again = await driveClock(clock, service, add(service, 'key'))

  expect([busy.body.code, again.status]).toEqual(['registrar_busy', 201])
  expect(sendsOf(service)).toBe(1)
})

test('the answer outlives the service', async () => {
  await using first = await start()
  const answer = await add(first, 'key')
  await first.close()

  await using second = await start({ dataDir: first.dataDir, sandbox: first.sandbox })
  const again = await add(second, 'key')

  expect([again.status, again.body]).toEqual([201, answer.body])
  expect(sendsOf(second)).toBe(1)
})

test('a key belongs to the token: another token of the same user has keys of its own', async () => {
  await using service = await start()
  const tokens = [await createToken(service, { role: 'editor' }), await createToken(service, { role: 'editor' })]
  const addAs = async (token = '') => {
    const answer = await send(service, 'POST', `${hosts}/A`, {
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'idempotency-key': 'key',
      },
      body: JSON.stringify({ name: 'new', address: '192.0.2.9' }),
    })
    return answer.status
  }

  const first = await addAs(tokens[0])
  const other = await addAs(tokens[1])
  const again = await addAs(tokens[0])

  expect([first, other, again]).toEqual([201, 409, 201])
})

test('one key used by a waiting and an asynchronous request at once is one write', async () => {
  await using service = await start()
  await service.call('GET', '/health')
  const addAs = (name: string, prefer: object) =>
    service.call('POST', `${hosts}/A`, {
      body: { name, address: '192.0.2.9' },
      headers: { 'idempotency-key': 'key', ...prefer },
    })

  const answers = await Promise.all([addAs('waiting', {}), addAs('asynchronous', { prefer: 'respond-async' })])
  const done = async () => {
    const { body } = await service.call('GET', '/api/changes?status=confirmed')
    return body.change_list?.length
  }

  await expect.poll(done).toBe(1)
  const codes = answers.map(({ status, body }) => body.code ?? status)
  expect(codes).toContain('idempotency_key_reused')
  expect(service.live()).toHaveLength(2)
  expect(sendsOf(service)).toBe(1)
})

test('a cancelled change gives its key back: the repeated request is queued again', async () => {
  await using service = await start({ env: { REGISTRAR_RATE: '1/day' } })
  const queue = () =>
    service.call('POST', `${hosts}/A`, {
      body: { name: 'new', address: '192.0.2.9' },
      headers: { 'idempotency-key': 'key', prefer: 'respond-async' },
    })
  await service.call('GET', hosts) // The only call: nothing can be carried out.
  const first = await queue()
  const cancelled = await service.call('DELETE', first.headers.get('location') ?? '')

  const again = await queue()

  expect([first.status, cancelled.status, again.status]).toEqual([202, 200, 202])
  expect(again.body.status).toBe('queued')
  expect(again.headers.get('location')).not.toBe(first.headers.get('location'))
})

test('a dry run neither uses nor takes a key', async () => {
  await using service = await start()
  const dryRun = {
    body: { name: 'new', address: '192.0.2.9' },
    headers: { 'idempotency-key': 'key' },
  }

  const tried = await service.call('POST', `${hosts}/A?dry_run=true`, dryRun)
  const written = await add(service, 'key', { name: 'other' })

  expect([tried.status, written.status]).toEqual([201, 201])
})

test.each(['', 'ä', 'x'.repeat(129)])('the key %j is refused', async (key) => {
  await using service = await start()

  const { status, body } = await add(service, key)

  expect([status, body.errors?.[0]?.path]).toEqual([400, '/header/idempotency-key'])
})
