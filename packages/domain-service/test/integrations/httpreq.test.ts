import { expect, test, vi } from 'vitest'
import { driveClock } from '../support/drive-clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { joinWrites } from '../support/join-writes.ts'
import { basic, createToken, send } from '../support/protocol-client.ts'
import { type Service, start, www } from '../support/start.ts'

const present = '/integrations/acme/present'
const cleanup = '/integrations/acme/cleanup'
const json = { 'content-type': 'application/json' }
const fqdn = '_acme-challenge.example.com.'
const www1 = 'www A 192.0.2.1 1800 10'

const limits = { records: [{ name: '_acme-challenge', types: ['TXT'] }] }

async function post(service: Service, path: string, body: unknown, token?: string) {
  const headers = { ...json, ...basic(token ?? (await createToken(service, limits))) }
  return send(service, 'POST', path, { headers, body: JSON.stringify(body) })
}

test.each([
  ['lego', json, { fqdn, value: 'v1' }, { fqdn, value: 'v1' }],
  ['a client that names no valid type', { 'content-type': 'json' }, { fqdn, value: 'v1' }, { fqdn, value: 'v1' }],
  ['acme.sh', { 'content-type': 'application/x-www-form-urlencoded' }, { fqdn, value: 'v1' }, { fqdn, value: 'v1' }],
  [
    'Caddy',
    json,
    { FQDN: '_ACME-challenge.Example.com', Value: 'v1' },
    { FQDN: '_ACME-challenge.Example.com', Value: 'v1' },
  ],
  [
    'lego in RAW mode',
    json,
    { domain: 'example.com', token: 't', keyAuth: 'v1' },
    { fqdn, value: 'O_wmlZTvZJIo6adLqwDwQu_JHVrMb77jGjgugNQjiP4' },
  ],
])('the form of %s sets and removes a record', async (_client, headers, body, echo) => {
  await using service = await start()
  const token = await createToken(service, limits)
  const request = { headers: { ...headers, ...basic(token) }, body: JSON.stringify(body) }
  const value = 'value' in echo ? echo.value : echo.Value

  const set = await send(service, 'POST', present, request)
  const live = service.live()
  const removed = await send(service, 'POST', cleanup, request)

  for (const answer of [set, removed]) {
    expect([answer.status, JSON.parse(answer.text)]).toEqual([200, echo])
    expect(answer.type).toMatch(/^application\/json/)
  }
  expect(live.sort()).toEqual([`_acme-challenge TXT ${value} 60 10`, www1])
  expect(service.live()).toEqual([www1])
})

test('a body without content type is JSON, too', async () => {
  await using service = await start()
  const token = await createToken(service, limits)

  const answer = await fetch(service.url + present, {
    method: 'POST',
    headers: basic(token),
    body: new Blob([JSON.stringify({ fqdn, value: 'v1' })]),
  })

  expect(answer.status).toBe(200)
})

test('two values at one name coexist, and each is removed alone', async () => {
  await using service = await start()
  await post(service, present, { fqdn, value: 'apex' })
  await post(service, present, { fqdn, value: 'wildcard' })

  await post(service, cleanup, { fqdn, value: 'apex' })

  expect(service.live().sort()).toEqual(['_acme-challenge TXT wildcard 60 10', www1])
})

test('a repeated present or cleanup is 200 and no write', async () => {
  await using service = await start()
  await post(service, present, { fqdn, value: 'v1' })
  const writes = () => service.commands().filter((each) => each === 'dns.sethosts').length
  const before = writes()

  const again = await post(service, present, { fqdn, value: 'v1' })
  const absent = await post(service, cleanup, { fqdn, value: 'v2' })

  expect([again.status, absent.status]).toEqual([200, 200])
  expect(writes()).toBe(before)
})

test('twenty challenges at once are one batch', async () => {
  // The clock stands still: these writes give up after 25 s of it.
  await using service = await start({ clock: new FakeClock(), env: { REGISTRAR_TIMEOUT_MS: '60000' } })
  const token = await createToken(service, limits)

  const answers = await joinWrites({ services: [service], count: 20 }, (n) =>
    post(service, present, { fqdn, value: `v${n}` }, token),
  )

  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
  expect(service.live()).toHaveLength(21)
  expect(service.commands().filter((each) => each === 'dns.sethosts')).toHaveLength(1)
})

test('the history names owner and token', async () => {
  await using service = await start()

  await post(service, present, { fqdn, value: 'v1' })

  const { body } = await service.call('GET', '/api/domains/example.com/dns/history')
  expect(body.history?.[0]).toMatchObject({ by: 'admin', token: expect.stringMatching(/^test /) })
})

test('a refusal of a name that is no challenge says what would allow it', async () => {
  await using service = await start()

  const token = await createToken(service, { role: 'editor' })
  const { text } = await post(service, present, { fqdn: 'www.example.com.', value: 'v' }, token)

  expect(JSON.parse(text).detail).toBe(
    'www.example.com. does not begin with _acme-challenge: use a token whose records name it',
  )
})

test.each([
  ['a name that is no challenge', {}, { fqdn: 'www.example.com.', value: 'v' }, 403, 'forbidden'],
  [
    'a name that only begins like a challenge',
    {},
    { fqdn: '_acme-challenges.example.com.', value: 'v' },
    403,
    'forbidden',
  ],
  ['a domain that the token may not see', { domains: ['example.net'] }, { fqdn, value: 'v' }, 404, 'domain_not_found'],
  ['a name outside of the records', limits, { fqdn: '_acme-challenge.www.example.com.', value: 'v' }, 403, 'forbidden'],
  [
    'a domain outside of the account',
    {},
    { fqdn: '_acme-challenge.example.net.', value: 'v' },
    404,
    'domain_not_found',
  ],
  ['no value', limits, { fqdn }, 400, 'validation_failed'],
  ['a value that is no text', limits, { fqdn, value: 5, keyAuth: null }, 400, 'validation_failed'],
  ['a list', limits, [], 400, 'malformed_body'],
  ['an empty value', limits, { fqdn, value: '' }, 400, 'validation_failed'],
])('%s is refused with error beside the problem', async (_name, token, body, status, code) => {
  await using service = await start()

  const answer = await post(service, present, body, await createToken(service, { role: 'editor', ...token }))

  expect(answer.status).toBe(status)
  expect(JSON.parse(answer.text)).toMatchObject({ error: code, code, status })
  expect(service.live()).toEqual([www1])
})

test.each([
  [{ fqdn, value: 'v'.repeat(2501) }, ['/value']],
  [{ fqdn: `${'l'.repeat(61)}.${fqdn}`, value: 'v' }, ['/fqdn']],
])('a fault is named where it is in the request: %#', async (body, paths) => {
  await using service = await start()
  const token = await createToken(service, { records: [{ name: '*', types: ['TXT'] }] })

  const { status, text } = await post(service, present, body, token)

  const { errors } = JSON.parse(text) as { errors?: { path: string }[] } // As its status says.
  expect([status, errors?.map(({ path }) => path)]).toEqual([400, paths])
})

test('a name that is no challenge is accepted from a token whose records name it', async () => {
  await using service = await start()
  const token = await createToken(service, { records: [{ name: 'delegated', types: ['TXT'] }] })

  const answer = await post(service, present, { fqdn: 'delegated.example.com', value: 'v' }, token)

  expect(answer.status).toBe(200)
})

test.each([[{}], [basic('ds_wrong')], [{ 'x-api-key': 'ds_wrong' }]])(
  'without a valid token nothing is done: %j',
  async (headers) => {
    await using service = await start()

    const answer = await send(service, 'POST', present, {
      headers: { ...json, ...headers },
      body: JSON.stringify({ fqdn, value: 'v' }),
    })

    expect(answer.status).toBe(401)
    expect(JSON.parse(answer.text)).toHaveProperty('error')
    expect(service.commands()).toEqual([])
  },
)

test('the longest domain of the account that the name ends in is written', async () => {
  await using service = await start({
    domains: [
      { name: 'example.co.uk', hosts: [www] },
      { name: 'other.example', hosts: [www] },
    ],
  })
  const token = await createToken(service, {
    records: [{ name: '_acme-challenge.*', types: ['TXT'] }],
  })

  const answer = await post(service, present, { fqdn: '_acme-challenge.a.b.example.co.uk.', value: 'v' }, token)

  expect(answer.status).toBe(200)
  expect(service.live('example.co.uk')).toContain('_acme-challenge.a.b TXT v 60 10')
})

test('a client is answered within 25 s, however long the list of domains took', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  const token = await createToken(service, limits)
  const reached = (command: string) =>
    vi.waitFor(() => expect(service.commands()).toContain(command), { timeout: 90_000 })
  const slow = { kind: 'slow', ms: 3_600_000 } as const
  service.sandbox.fault({ ...slow, command: 'namecheap.domains.getList' })

  const answered = post(service, present, { fqdn, value: 'v1' }, token)
  await reached('getlist')
  await clock.advance(9_000)
  service.sandbox.clearFaults()
  service.sandbox.fault({ ...slow, command: 'namecheap.domains.dns.getHosts' })
  await reached('dns.gethosts')
  await clock.advance(16_000)

  expect(await answered).toMatchObject({ status: 503 })
  service.sandbox.clearFaults()
})

test('the first repeat after a long outage of the registrar is carried out, however long its change was to pause', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  const token = await createToken(service, limits)
  const repeat = async (value = 'v') => {
    const { status } = await driveClock(clock, service, post(service, present, { fqdn, value }, token))
    return status
  }
  await repeat('w') // Now the domains are known.
  service.sandbox.fault({ kind: 'reset', times: 0 })
  const during = [await repeat(), await repeat(), await repeat(), await repeat()]
  await clock.advance(600_000) // A failed attempt of this time is followed by the longest pause.
  during.push(await repeat()) // No attempt is under way any more.
  service.sandbox.clearFaults()

  const after = await repeat()

  expect([during, after]).toEqual([[503, 503, 503, 503, 503], 200])
  expect(service.live()).toContain('_acme-challenge TXT v 60 10')
})

test('a repeat that comes during an attempt that fails does not share its pause', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  const token = await createToken(service, limits)
  const repeat = (value = 'v') => post(service, present, { fqdn, value }, token)
  await driveClock(clock, service, repeat('w')) // Now the domains are known.
  const command = 'namecheap.domains.dns.getHosts'
  service.sandbox.fault({ kind: 'reset', times: 0, command })
  const during = [await driveClock(clock, service, repeat()), await driveClock(clock, service, repeat())]
  await clock.advance(600_000) // The next failure is followed by the longest pause.
  during.push(await driveClock(clock, service, repeat())) // No attempt is under way any more.
  await clock.advance(10_000) // The circuit breaker lets a call pass.
  service.sandbox.clearFaults()
  service.sandbox.fault({ kind: 'slow', ms: 3_600_000, command }, { kind: 'reset', command })
  const made = service.commands().length
  const first = repeat()
  await vi.waitFor(() => expect(service.commands().length).toBeGreaterThan(made), { timeout: 90_000 })
  await clock.advance(31_000) // Its read is not repeated any more.
  during.push(await first)

  const second = repeat()
  await service.call('GET', '/api/domains')
  service.sandbox.clearFaults() // Now the attempt fails.

  expect(during.map(({ status }) => status)).toEqual([503, 503, 503, 503])
  expect((await driveClock(clock, service, second)).status).toBe(200)
})

test.each([
  ['5,000 values', Array.from({ length: 5_000 }, () => 0)],
  ['16 KiB', 'x'.repeat(16_384)],
])('a body with more than %s is refused; its connection stays open', async (_limit, more) => {
  await using service = await start()

  const answer = await post(service, present, { fqdn, value: 'v', more })

  expect([answer.status, JSON.parse(answer.text).error]).toEqual([413, 'body_too_large'])
  expect(answer.headers.get('connection')).not.toBe('close')
})
