import { HttpError } from '@domains-and-files/http'
import { expect, test } from 'vitest'
import * as errors from '../../src/errors.ts'
import { visibleError } from '../../src/routes/zone/zone-schema.ts'
import { createToken, send } from '../support/protocol-client.ts'
import { type Service, start, www } from '../support/start.ts'

const dns = '/api/domains/example.com/dns'
const home = { name: 'home', type: 'A', address: '192.0.2.5' }
const domains = [{ name: 'example.com', hosts: [www, home] }]
const records = [{ name: 'home', types: ['A', 'AAAA'] }]

async function call(service: Service, limits: object, [method, path, body]: [string, string, unknown?]) {
  const token = await createToken(service, limits)
  const answer = await send(service, method, dns + path, {
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: answer.status, body: answer.text === '' ? undefined : JSON.parse(answer.text) }
}

const idOf = async (service: Service, name: string) => {
  const { body } = await service.call('GET', `${dns}/hosts`)
  return body.hosts?.find((each) => each.name === name)?.id ?? ''
}

test('a token limited to records sets, reads and removes their RRsets', async () => {
  await using service = await start({ domains })

  const set = await call(service, { records }, ['PUT', '/rrsets/home/A', { values: ['192.0.2.6'] }])
  const read = await call(service, { records }, ['GET', '/rrsets/home/A'])
  const list = await call(service, { records }, ['GET', '/rrsets'])
  const removed = await call(service, { records }, ['DELETE', '/rrsets/home/A'])

  expect([set.status, read.status, list.status, removed.status]).toEqual([200, 200, 200, 204])
  expect(list.body.rrsets).toEqual([read.body])
  expect(service.live()).toEqual(['www A 192.0.2.1 1800 10'])
})

test.each<[string, string, unknown?]>([
  ['PUT', '/rrsets/www/A', { values: ['192.0.2.6'] }],
  ['PUT', '/rrsets/home/TXT', { values: ['x'] }],
  ['PUT', '/rrsets/www/A', { values: ['192.0.2.1'] }],
  ['PUT', '/rrsets/WWW/CNAME', { values: ['example.net'] }],
  ['DELETE', '/rrsets/www/A'],
  ['DELETE', '/rrsets/www/TXT'],
  ['GET', '/rrsets/www/A'],
  ['POST', '/hosts/A', { name: 'www', address: '192.0.2.1' }],
  ['POST', '/hosts/CNAME', { name: 'www', address: 'example.net' }],
  ['POST', '/hosts/A?dry_run=true', { name: 'www', address: '192.0.2.1' }],
  ['PATCH', '/hosts', { add: [home, { name: 'www', type: 'CNAME', address: 'example.net' }] }],
  ['PATCH', '/hosts', { add: [{ name: 'home', type: 'AAAA', address: '::1' }], email_type: 'OX' }],
  ['PATCH', '/hosts', { add: [{ name: 'www', type: 'TXT', address: 'x' }] }],
  ['GET', '/zonefile'],
])('%s %s outside of its records is forbidden', async (...request) => {
  await using service = await start({ domains })

  const { status, body } = await call(service, { records }, request)

  expect([status, body.code]).toEqual([403, 'forbidden'])
  expect(service.live()).toHaveLength(2)
})

test('a request outside of its records is forbidden before its If-Match is compared', async () => {
  await using service = await start({ domains })
  const token = await createToken(service, { records })

  const { status } = await send(service, 'DELETE', `${dns}/rrsets/www/A`, {
    headers: { authorization: `Bearer ${token}`, 'if-match': '"outdated"' },
  })

  expect(status).toBe(403)
})

test('a record outside of them is forbidden before the faults of a request are told', async () => {
  await using service = await start({ domains })
  const path = `/hosts/${await idOf(service, 'www')}`

  const { status, body } = await call(service, { records }, ['PATCH', path, { address: 'no address' }])

  expect([status, body.code]).toEqual([403, 'forbidden'])
})

test('a token limited to MX records does not change the email type by adding the first', async () => {
  await using service = await start({ domains })
  const limits = { records: [{ name: '@', types: ['MX'] }] }

  const { status, body } = await call(service, limits, ['POST', '/hosts/MX', { name: '@', address: 'mx.example.net' }])

  expect([status, body.code]).toEqual([403, 'forbidden'])
  expect(service.live()).toHaveLength(2)
})

test('a token limited to records is told what is wrong with a name', async () => {
  await using service = await start({ domains })

  const { status, body } = await call(service, { records }, [
    'PUT',
    '/rrsets/home.example.com/A',
    { values: ['192.0.2.6'] },
  ])

  expect([status, body.detail]).toEqual([400, '/path/name: must not end in the domain: write home'])
})

test('a token limited to records patches these, and does not move them elsewhere', async () => {
  await using service = await start({ domains })
  const path = `/hosts/${await idOf(service, 'home')}`

  const moved = await call(service, { records }, ['PATCH', path, { name: 'www' }])
  const foreign = await call(service, { records }, ['PATCH', `/hosts/${await idOf(service, 'www')}`, { ttl: 60 }])
  const patched = await call(service, { records }, ['PATCH', path, { ttl: 60 }])

  expect([moved.status, foreign.status, patched.status]).toEqual([403, 403, 200])
  expect(patched.body).toMatchObject({ name: 'home', ttl: 60 })
})

test('a token limited to a name in Unicode writes the record of that name', async () => {
  await using service = await start({ domains })
  const limits = { records: [{ name: 'B\u00fccher', types: ['A'] }] }

  const set = await call(service, limits, ['PUT', '/rrsets/b%C3%BCcher/A', { values: ['192.0.2.6'] }])

  expect([set.status, set.body.name]).toEqual([201, 'xn--bcher-kva'])
})

test('a batch shows a token only the records that it may read', async () => {
  await using service = await start({ domains })

  const { status, body } = await call(service, { records }, [
    'PATCH',
    '/hosts',
    { add: [{ name: 'home', type: 'AAAA', address: '2001:db8::1' }] },
  ])

  expect(status).toBe(200)
  expect(body.hosts.map(({ name }: { name: string }) => name)).toEqual(['home', 'home'])
})

test('a zone file needs a token without records', async () => {
  await using service = await start({ domains })
  const token = await createToken(service, { role: 'editor', records })

  const answer = await send(service, 'PUT', `${dns}/zonefile`, {
    headers: { authorization: `Bearer ${token}`, 'content-type': 'text/dns' },
    body: '',
  })

  expect(answer.status).toBe(403)
})

test('a token limited to records cannot give up records of another type by force', async () => {
  const srv = { name: '_sip._tcp', type: 'SRV', address: '10 5 5060 sip.example.net.' }
  await using service = await start({ domains: [{ name: 'example.com', hosts: [home, srv] }] })
  const body = { values: ['192.0.2.6'] }

  const unforced = await call(service, { records }, ['PUT', '/rrsets/home/A', body])
  const forced = await call(service, { records }, ['PUT', '/rrsets/home/A?force=true', body])

  expect([unforced.status, unforced.body.code]).toEqual([409, 'unsupported_records'])
  expect([forced.status, forced.body.code]).toEqual([403, 'forbidden'])
  expect(JSON.stringify([unforced.body, forced.body])).not.toMatch(/_sip|SRV/)
  expect(service.live()).toHaveLength(2)
})

test('no error of a write shows a token limited to records what others have in the zone', () => {
  const words = 'vault TXT of-others'
  const foreign = { id: 'id', name: 'vault', type: 'TXT', address: 'of-others' }
  // What any of them takes: a record, a list of records, or words.
  const found = Object.assign([foreign], foreign, { toString: () => words })
  const caller = { role: 'editor' as const, records }

  const showing = Object.entries(errors).flatMap(([name, create]) => {
    const make = create as (...found: unknown[]) => unknown // Each takes up to three.
    const visible = visibleError(make(found, found, found), caller)
    const isShown = visible instanceof HttpError && /vault|of-others/.test(visible.message)
    return isShown ? name : []
  })

  // Their words come from the request, the path, or the service: never from a zone or the registrar.
  expect(showing.sort()).toEqual([
    ...['changeCancelled', 'changeClosed', 'changeNotFound', 'changeNotQueued', 'changeOutdated'],
    ...['changeSuperseded', 'dnsNotManaged', 'domainNotEditable'],
    ...['domainNotFound', 'leaseLost', 'preconditionFailed', 'recordNotFound', 'registrarBusy'],
    ...['registrarTimeout', 'rrsetNotFound', 'tooManyChanges'],
  ])
})

test('a refusal of the registrar does not name records of others to a token limited to records', async () => {
  await using service = await start({ domains })
  const message = 'Address 192.0.2.1 of host www is not valid'
  service.sandbox.fault({
    kind: 'error',
    command: 'namecheap.domains.dns.setHosts',
    number: '2011170',
    message,
  })

  const { status, body } = await call(service, { records }, ['PUT', '/rrsets/home/A', { values: ['192.0.2.6'] }])

  expect([status, body.code]).toEqual([422, 'registrar_rejected'])
  expect(JSON.stringify(body)).not.toMatch(/www|192\.0\.2\.1\b/)
})
