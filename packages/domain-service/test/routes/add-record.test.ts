import { expect, test } from 'vitest'
import { start, www } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'

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
  expect(Object.values(params ?? {})).toEqual(expect.arrayContaining(['Old', 'Target.Example.net', '1799', 'FWD']))
  expect(service.sandbox.zone('example.com').emailType).toBe('FWD')
  expect(service.steps()).toEqual(['dns.gethosts', 'dns.sethosts', 'dns.gethosts'])
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
    warnings: [expect.stringContaining('the email type changes from NONE to MX')],
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

test.each([
  ['MX', { name: '@', address: 'mx.example.net' }, { type: 'MXE' as const, address: '192.0.2.7' }],
  ['MXE', { name: '@', address: '192.0.2.7' }, { type: 'MX' as const, address: 'mx.example.net.' }],
])('an %s conflicts with a live record of the other kind', async (type, body, live) => {
  await using service = await start({
    domains: [{ name: 'example.com', emailType: live.type, hosts: [{ name: '@', ...live }] }],
  })

  const refused = await service.call('POST', `${hosts}/${type}`, { body })

  const [record] = (await service.call('GET', hosts)).body.hosts ?? []
  expect([refused.status, refused.body.code]).toEqual([409, 'record_conflict'])
  expect(refused.body.detail).toContain(`record ${record?.id} (@ ${live.type}`)
  expect(service.commands()).not.toContain('dns.sethosts')
})

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

test.each([
  ['SRV', { name: 'a', address: 'x' }, ['/path/type']],
  ['A', { name: 'a b', address: '1.2.3', ttl: 1, mx_pref: 70_000 }, ['/name', '/address', '/ttl']],
  ['A', { address: 5 }, ['/name', '/address']],
  ['A', [], ['']],
  ['SRV', { color: 'red' }, ['/name', '/address', '/color', '/path/type']],
  ['MX', { name: '-', ttl: 1, mx_pref: -1 }, ['/address', '/name', '/ttl', '/mx_pref']],
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

test('the longest text is added and patched by clients that escape its characters in JSON', async () => {
  await using service = await start()
  const headers = { 'content-type': 'application/json' }
  const send = async (method: string, path: string, fields: object) => {
    const text = JSON.stringify(fields).replaceAll('\u{1f600}', '\\ud83d\\ude00')
    const { status, body } = await service.call(method, path, { text, headers })
    return [status, body.address]
  }
  const address = '\u{1f600}'.repeat(2500)
  const { body } = await service.call('POST', `${hosts}/TXT`, { body: { name: '@', address: 'x' } })

  expect(await send('PATCH', `${hosts}/${body.id}`, { address })).toEqual([200, address])
  expect(await send('POST', `${hosts}/TXT`, { name: 'a', address })).toEqual([201, address])
})
