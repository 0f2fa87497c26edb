import { expect, test } from 'vitest'
import { z } from 'zod'
import { createToken, send } from '../support/protocol-client.ts'
import { type Service, start } from '../support/start.ts'

// What a token that is limited to `home A` learns of other records: nothing.

const dns = '/api/domains/example.com/dns'
const records = [{ name: 'home', types: ['A'] }]
const home = { name: 'home', type: 'A', address: '192.0.2.5' }
const dynamic = { name: 'secret', type: 'A', address: '203.0.113.77', isDdns: true }
// A word with which other warnings begin.
const dynamicToo = { name: 'the', type: 'A', address: '203.0.113.78', isDdns: true }
const srv = { name: '_secret._tcp', type: 'SRV', address: '0 0 1 secret.example.net.' }

async function call(service: Service, token: string, [method, path, body]: [string, string, unknown?]) {
  const { status, text, headers } = await send(service, method, path, {
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status, text, headers }
}

const setHome = (address: string): [string, string, unknown] => ['PUT', `${dns}/rrsets/home/A`, { values: [address] }]

const lastChange = async (service: Service) => {
  const { body } = await service.call('GET', '/api/changes')
  return `/api/changes/${body.change_list?.[0]?.id}`
}

test('a warning about another record is for those who may read it', async () => {
  const hosts = [home, dynamic, dynamicToo]
  await using service = await start({ domains: [{ name: 'example.com', hosts }] })
  const limited = await createToken(service, { records })
  const reading = await createToken(service, { records, role: 'editor' })

  const preview = await call(service, reading, ['PUT', `${dns}/rrsets/home/A?dry_run=true`, { values: ['192.0.2.6'] }])
  const set = await call(service, limited, setHome('192.0.2.6'))
  const path = await lastChange(service)
  const own = await call(service, limited, ['GET', path])
  const all = await service.call('GET', path)

  expect([set.status, own.status]).toEqual([200, 200])
  expect(preview.text).toContain('secret A 203.0.113.77 loses its dynamic-DNS flag')
  expect(all.text).toContain('secret A 203.0.113.77 loses its dynamic-DNS flag')
  expect(set.text + own.text).not.toMatch(/secret|203\.0\.113/)
})

test('records that cannot be sent are not named', async () => {
  await using service = await start({ domains: [{ name: 'example.com', hosts: [home, srv] }] })
  const limited = await createToken(service, { records })

  const set = await call(service, limited, setHome('192.0.2.6'))
  const owner = await service.call('PUT', `${dns}/rrsets/home/A`, {
    body: { values: ['192.0.2.6'] },
  })

  expect([set.status, JSON.parse(set.text).code]).toEqual([409, 'unsupported_records'])
  expect(set.text).not.toContain('secret')
  expect(owner.body.detail).toContain('_secret._tcp SRV')
})

test('a record that stands in the way is not named', async () => {
  const cname = { name: 'home', type: 'CNAME', address: 'secret.example.net.' }
  await using service = await start({ domains: [{ name: 'example.com', hosts: [cname] }] })
  const limited = await createToken(service, { records })

  const set = await call(service, limited, setHome('192.0.2.6'))

  expect([set.status, JSON.parse(set.text).code]).toEqual([409, 'record_conflict'])
  expect(set.text).not.toContain('secret')
})

test('a zone that came back otherwise is not shown, neither at once nor later', async () => {
  await using service = await start({ domains: [{ name: 'example.com', hosts: [home] }] })
  const limited = await createToken(service, { records })
  const secret = { name: 'secret', type: 'TXT', address: 'secret-value' }
  const command = 'namecheap.domains.dns.setHosts'
  service.sandbox.fault({ kind: 'other_tool', command, add: [secret] })

  const set = await call(service, limited, setHome('192.0.2.6'))
  const path = await lastChange(service)
  const own = await call(service, limited, ['GET', path])
  const all = await service.call('GET', path)

  expect([set.status, own.status]).toEqual([502, 200])
  expect(all.text).toContain('secret-value')
  expect(set.text + own.text).not.toContain('secret')
})

test('a token does not take over the changes of an earlier one with its name', async () => {
  await using service = await start({ domains: [{ name: 'example.com', hosts: [home] }] })
  const earlier = await createToken(service, { name: 'ci', records })
  await call(service, earlier, setHome('192.0.2.6'))
  const path = await lastChange(service)
  const { text } = await service.call('GET', '/api/tokens')
  const { tokens } = z.object({ tokens: z.array(z.object({ id: z.string() })) }).parse(JSON.parse(text))
  await service.call('DELETE', `/api/tokens/${tokens[0]?.id}`)
  const later = await createToken(service, { name: 'ci', records })

  const read = await call(service, later, ['GET', path])
  const cancelled = await call(service, later, ['DELETE', path])

  expect([read.status, cancelled.status]).toEqual([404, 404])
})

test.each<[number, string, string, unknown]>([
  [403, 'PUT', '/rrsets/www/A', { values: ['192.0.2.1'] }],
  [403, 'PATCH', '/hosts', { add: [{ name: 'www', type: 'TXT', address: 'x' }] }],
  [400, 'POST', '/hosts/A', { name: 'home', address: 'x' }],
  [400, 'PATCH', '/hosts', { add: [{ name: 'home', type: 'A', address: 'x' }] }],
  [400, 'PUT', '/rrsets/home/A', { values: ['x'] }],
])('%i: nothing is queued by %s %s %j', async (status, method, path, body) => {
  await using service = await start({ domains: [{ name: 'example.com', hosts: [home] }] })
  const token = await createToken(service, { records })

  const answer = await send(service, method, dns + path, {
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      prefer: 'respond-async',
    },
    body: JSON.stringify(body),
  })

  expect(answer.status).toBe(status)
  expect((await service.call('GET', '/api/changes')).body.change_list).toEqual([])
})
