import { expect, test } from 'vitest'
import { access, exchange, read, start } from '../support/start.ts'

const whole = {
  ApiUser: access.apiUser,
  ApiKey: access.apiKey,
  UserName: access.apiUser,
  ClientIp: '127.0.0.1',
  Command: 'namecheap.domains.getTldList',
}

test.each([
  ['no API user', { ApiUser: '' }, '1010101'],
  ['another API user', { ApiUser: 'somebody' }, '1011102'],
  ['no key', { ApiKey: '' }, '1011102'],
  ['a wrong key', { ApiKey: 'guess' }, '1011102'],
  ['no user name', { UserName: '' }, '1010103'],
  ['another user name', { UserName: 'somebody' }, '1019103'],
  ['no command', { Command: '' }, '1010104'],
  ['no client address', { ClientIp: '' }, '1010105'],
  ['an IPv6 client address', { ClientIp: '::1' }, '1011105'],
  ['an address that is not allowed', { ClientIp: '192.0.2.1' }, '1011150'],
])('a caller with %s is turned away without a word on the command', async (_case, change, number) => {
  await using registrar = await start()

  const answer = await exchange(registrar.sandbox.url, 'POST', { ...whole, ...change })

  const { status, errors, command, hasResponse } = read(answer.body)
  expect({ status, errors, command, hasResponse }).toEqual({
    status: 'ERROR',
    errors: [[number, expect.any(String)]],
    command: '',
    hasResponse: false,
  })
})

test.each([
  ['domains.nothing', {}, '1011104'],
  ['domains.getRegistrarLock', { DomainName: 'not-ours.com' }, '2019166'],
  ['domains.getInfo', {}, '2010166'],
  ['domains.getInfo', { DomainName: 'not-ours.com' }, '2030166'],
  ['domains.dns.getHosts', { SLD: 'quietharbour' }, '2010166'],
  ['domains.dns.getHosts', { TLD: 'org' }, '2010166'],
  ['domains.dns.getHosts', { SLD: 'not-ours', TLD: 'com' }, '2019166'],
  ['domains.dns.getHosts', { SLD: 'sub', TLD: 'quietharbour.org' }, '2019166'],
  ['domains.dns.getHosts', { SLD: 'thistlebakery.co', TLD: 'uk' }, '2019166'],
  ['domains.dns.setHosts', { SLD: 'not-ours', TLD: 'com' }, '2019166'],
  ['domains.dns.getList', { SLD: 'not-ours', TLD: 'com' }, '2019166'],
  ['domains.dns.getList', { SLD: 'borrowed-plot', TLD: 'com' }, '2019166'],
  ['domains.dns.getHosts', { SLD: 'farwood', TLD: 'dev' }, '2030288'],
  ['domains.dns.setHosts', { SLD: 'farwood', TLD: 'dev' }, '2030288'],
  ['domains.dns.setHosts', { SLD: 'locked-vault', TLD: 'com' }, '2030166'],
])('%s with %o is refused with the number %s', async (command, params, number) => {
  await using registrar = await start()

  const answer = await registrar.call(command, params)

  expect(answer.status).toBe('ERROR')
  expect(answer.command).toBe(`namecheap.${command.toLowerCase()}`)
  expect(answer.errors.map(([value]) => value)).toEqual([number])
})

test('a refused setHosts still carries a failed result', async () => {
  await using registrar = await start()

  const answer = await registrar.setHosts('not-ours.com', [])

  expect(answer.first('DomainDNSSetHostsResult')).toMatchObject({
    '@Domain': 'not-ours.com',
    '@EmailType': '',
    '@IsSuccess': 'false',
  })
})

test('recorded calls do not contain the API key', async () => {
  await using registrar = await start()

  await registrar.call('domains.getInfo', { DomainName: 'QuietHarbour.org' })
  await registrar.call('domains.getInfo', { apikey: access.apiKey, DomainName: 'not-ours.com' })

  expect(registrar.sandbox.calls).toMatchObject([
    { command: 'namecheap.domains.getinfo', domain: 'quietharbour.org', outcome: 'ok' },
    { domain: 'not-ours.com', outcome: 'error 2030166', params: { DomainName: 'not-ours.com' } },
  ])
  expect(JSON.stringify(registrar.sandbox.calls)).not.toContain(access.apiKey)
})

test('the sandbox reports its health', async () => {
  await using registrar = await start()

  const answer = await exchange(new URL('/health', registrar.sandbox.url).href, 'GET', {})

  expect(answer.status).toBe(200)
  expect(JSON.parse(answer.body)).toMatchObject({ status: 'ok' })
})
