import { expect, test } from 'vitest'
import { start, www } from '../support/start.ts'

const zonefile = '/api/domains/example.com/dns/zonefile'
const dns = { 'content-type': 'text/dns' }
const domains = [
  {
    name: 'example.com',
    emailType: 'FWD' as const,
    hosts: [
      www,
      { name: 'go', type: 'URL301', address: 'https://example.net/' },
      { name: '@', type: 'TXT', address: 'v=spf1 "a" \u00e9;' },
    ],
  },
]

test('a zone is exported, and imported again without a write', async () => {
  await using service = await start({ domains })

  const got = await service.call('GET', zonefile, { user: 'viewer' })
  const put = await service.call('PUT', zonefile, { text: got.text, headers: dns })

  expect(got.headers.get('content-type')).toBe('text/dns')
  expect(got.text).toContain('www\t1800\tIN\tA\t192.0.2.1\n')
  expect(got.text).toContain('; domain-service email-type FWD\n')
  expect(put.status).toBe(200)
  expect(put.body.changes).toEqual({ added: [], removed: [], kept: 3 })
  expect(put.headers.get('etag')).toBe(got.headers.get('etag'))
  expect(service.commands()).not.toContain('dns.sethosts')
})

test('an import replaces the zone, and warns of what it skips', async () => {
  await using service = await start()

  const put = await service.call('PUT', zonefile, {
    text: '@ SOA a. b. 1 2 3 4 300\n@ NS ns.example.net.\nwww 300 A 192.0.2.9\n',
    headers: dns,
  })

  expect(put.status).toBe(200)
  expect(put.body.warnings).toEqual([expect.stringContaining('line 1: SOA'), expect.stringContaining('line 2: NS')])
  expect(service.live()).toEqual(['www A 192.0.2.9 300 10'])
})

test('the document lists how a zone file is refused that is too large, or of another type', async () => {
  await using service = await start()

  const { body } = await service.call('GET', '/openapi.json')

  expect(body.paths).toHaveProperty(
    ['/api/domains/{domain}/dns/zonefile', 'put', 'responses'],
    expect.objectContaining({
      413: expect.objectContaining({ description: '`body_too_large`' }),
      415: expect.objectContaining({ description: '`unsupported_media_type`' }),
    }),
  )
})

test.each([
  '',
  ' \n',
  '; nothing\n; at all\n',
  '$ORIGIN example.com.\n$TTL 300\n',
  '@ SOA a. b. 1 2 3 4 300\n@ NS ns.example.net.\n',
  '; domain-service email-type NONE\n',
])('the body %j is refused: it would delete every record', async (text) => {
  await using service = await start()

  const put = await service.call('PUT', zonefile, { text, headers: dns })

  expect([put.status, put.body.code]).toEqual([400, 'malformed_body'])
  expect(service.commands()).toEqual([])
})

test('a dry run of an import writes nothing', async () => {
  await using service = await start()

  const put = await service.call('PUT', `${zonefile}?dry_run=true`, {
    text: 'new A 192.0.2.2',
    headers: dns,
  })

  expect(put.body).toMatchObject({ dry_run: true, changes: { removed: [{ name: 'www' }] } })
  expect(service.live()).toEqual(['www A 192.0.2.1 1800 10'])
})

test.each([
  ['a SRV 0 0 1 b\nb A x', ['/line/1', '/line/2']],
  ['\na A 192.0.2.1\na A 192.0.2.1', ['/line/2', '/line/3']],
  ['a b A 192.0.2.1', ['/line/1']],
  ['@ CNAME a.example.net.', ['/line/1']],
  ['a A 192.0.2.1\n; domain-service email-type MX', ['/line/2']],
])('the zone file %j is refused by its lines', async (text, paths) => {
  await using service = await start()

  const put = await service.call('PUT', zonefile, { text, headers: dns })

  expect([put.status, put.body.code]).toEqual([400, 'validation_failed'])
  expect(put.body.errors?.map(({ path }) => path)).toEqual(paths)
})

test('a zone file of another media type, or not of UTF-8, is refused', async () => {
  await using service = await start()

  const json = await service.call('PUT', zonefile, { body: {} })
  const latin = await service.call('PUT', zonefile, {
    text: Buffer.from('a TXT "\xe9"', 'latin1'),
    headers: dns,
  })

  expect([json.status, json.body.code]).toEqual([415, 'unsupported_media_type'])
  expect(json.body.detail).toContain('send text/dns')
  expect(latin.status).toBe(400)
})

test('a full zone of the longest texts is exported and imported', async () => {
  const hosts = Array.from({ length: 150 }, (_, index) => ({
    name: `t${index}`,
    type: 'TXT',
    address: `${index}${'\\'.repeat(2490)}`,
  }))
  await using service = await start({ domains: [{ name: 'example.com', hosts }] })

  const got = await service.call('GET', zonefile)
  const put = await service.call('PUT', zonefile, { text: got.text, headers: dns })

  expect([put.status, put.body.changes]).toEqual([200, { added: [], removed: [], kept: 150 }])
})

test('a zone file of more than 1 MiB is refused before it is parsed', async () => {
  await using service = await start()

  const put = await service.call('PUT', zonefile, {
    text: `t TXT ${'\\'.repeat(1024 * 1024)}`,
    headers: dns,
  })

  expect([put.status, put.body.code]).toEqual([413, 'body_too_large'])
})
