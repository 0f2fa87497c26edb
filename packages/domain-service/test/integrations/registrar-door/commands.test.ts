import { expect, test } from 'vitest'
import { openDoor, readAnswer, split } from '../../support/door.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { send } from '../../support/protocol-client.ts'
import { realRate, start } from '../../support/start.ts'

const domains = [
  {
    name: 'example.com',
    emailType: 'MXE' as const,
    created: '2020-02-01',
    expires: '2030-01-31',
    hosts: [
      { name: 'www', type: 'A', address: '192.0.2.1', ttl: 300, isDdns: true },
      { name: 'example.com', type: 'MXE', address: '192.0.2.2' },
      { name: '@', type: 'TXT', address: '<&"\u00e9\t' },
    ],
  },
  {
    name: 'elsewhere.net',
    dns: 'custom' as const,
    nameservers: ['ns1.x.example', 'ns2.x.example'],
  },
  { name: 'srv.org', hosts: [{ name: '_sip._tcp', type: 'SRV', address: '1 2 3 x.example.' }] },
  { name: 'example.co.uk', hosts: [] },
]

test('getHosts gives the rows as the registrar does, sorted by type and name', async () => {
  await using service = await start({ domains })
  const door = await openDoor(service)

  const answer = await door.getHosts()

  expect(answer.text).toMatch(/^<\?xml version="1\.0" encoding="utf-8"\?>\r\n<ApiResponse Status="OK"/)
  expect(answer.command).toBe('namecheap.domains.dns.gethosts')
  expect(answer.all('CommandResponse')).toEqual([{ Type: 'namecheap.domains.dns.getHosts' }])
  expect(answer.all('DomainDNSGetHostsResult')).toEqual([
    { Domain: 'example.com', EmailType: 'MXE', IsUsingOurDNS: 'true' },
  ])
  const common = {
    IsActive: 'true',
    IsDDNSEnabled: 'false',
    AssociatedAppTitle: '',
    FriendlyName: '',
  }
  expect(answer.all('host').map(({ HostId, ...rest }) => [/^\d+$/.test(HostId ?? ''), rest])).toEqual([
    [
      true,
      {
        ...common,
        Name: 'www',
        Type: 'A',
        Address: '192.0.2.1',
        MXPref: '10',
        TTL: '300',
        IsDDNSEnabled: 'true',
      },
    ],
    [
      true,
      {
        ...common,
        Name: 'example.com',
        Type: 'MXE',
        Address: '192.0.2.2',
        MXPref: '10',
        TTL: '1800',
        AssociatedAppTitle: 'MXE',
        FriendlyName: 'MXE1',
      },
    ],
    [true, { ...common, Name: '@', Type: 'TXT', Address: '<&"\u00e9\t', MXPref: '10', TTL: '1800' }],
  ])
})

test('getList, getInfo, dns.getList and getTldList answer as the registrar, the last from a cache of a day', async () => {
  const clock = new FakeClock()
  await using service = await start({ domains, clock })
  const door = await openDoor(service)

  const list = await door.call('domains.getList', { PageSize: '10', SortBy: 'name_desc' })
  const info = await door.call('domains.getInfo', { DomainName: 'Example.COM' })
  const servers = await door.call('domains.dns.getList', split('elsewhere.net'))
  const tlds = await door.call('domains.getTldList')
  const readTlds = () => service.commands().filter((each) => each === 'gettldlist').length
  await clock.advance(86_000_000)
  const again = await door.call('domains.getTldList')
  const calls = readTlds()
  await clock.advance(1_000_000)
  await door.call('domains.getTldList')

  expect(list.all('Domain').map(({ Name }) => Name)).toEqual([
    'srv.org',
    'example.com',
    'example.co.uk',
    'elsewhere.net',
  ])
  expect(list.all('Domain')[1]).toMatchObject({
    User: 'admin',
    Created: '02/01/2020',
    Expires: '01/31/2030',
    IsExpired: 'false',
    IsOurDNS: 'true',
  })
  expect(list.text).toMatch(/<TotalItems>4<\/TotalItems>\s*<CurrentPage>1<[\s\S]*<PageSize>10</)
  expect(info.all('DomainGetInfoResult')[0]).toMatchObject({
    Status: 'Ok',
    DomainName: 'example.com',
  })
  expect(info.all('DnsDetails')[0]).toMatchObject({ HostCount: '3', EmailType: 'MXE' })
  expect(info.all('EmailDetails')).toEqual([])
  expect(info.all('Modificationrights')).toEqual([{ All: 'true' }])
  expect(servers.all('DomainDNSGetListResult')[0]).toMatchObject({ IsUsingOurDNS: 'false' })
  expect(servers.text).toContain('<Nameserver>ns1.x.example</Nameserver>')
  expect(tlds.all('Tld').map(({ Name }) => Name)).toContain('co.uk')
  expect(again.all('Tld')).toEqual(tlds.all('Tld'))
  expect([calls, readTlds()]).toEqual([1, 2])
})

test('parameters may be in the query and the form, in any case and order', async () => {
  await using service = await start({ domains })
  const { key, call } = await openDoor(service)
  const got = await call('domains.dns.getHosts', split('example.com'), 'GET')
  const path = '/integrations/registrar/xml.response?tLd=com&COMMAND=Namecheap.Domains.DNS.gethosts'

  const answer = await send(service, 'POST', path, {
    headers: { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' },
    body: new URLSearchParams({ sld: 'EXAMPLE', apikey: key, Unknown: '1' }).toString(),
  })

  expect(got.all('host')).toHaveLength(3)
  expect(answer.type).toBe('text/xml; charset=utf-8')
  expect(answer.text).toContain('Domain="example.com"')
})

const nothing = { ...split('example.com') }

test.each([
  ['domains.dns.getHosts', split('example.org'), '2019166', 'DomainDNSGetHostsResult'],
  ['domains.dns.getHosts', { SLD: 'www.example', TLD: 'com' }, '2019166', 'DomainDNSGetHostsResult'],
  ['domains.dns.getHosts', { SLD: 'www', TLD: 'example.com' }, '2019166', 'DomainDNSGetHostsResult'],
  ['domains.dns.getHosts', { SLD: 'example.co', TLD: 'uk' }, '2019166', 'DomainDNSGetHostsResult'],
  ['domains.dns.getHosts', { TLD: 'com' }, '2010166', undefined],
  ['domains.dns.getHosts', split('elsewhere.net'), '2030288', undefined],
  ['domains.dns.getList', split('example.org'), '2019166', 'DomainDNSGetListResult'],
  ['domains.dns.setHosts', split('-.org'), '2019166', 'DomainDNSSetHostsResult'],
  ['domains.dns.setHosts', { ...nothing, HostName1: 'a', RecordType1: 'A' }, '2010288', undefined],
  [
    'domains.dns.setHosts',
    { ...nothing, HostName1: 'a', RecordType1: 'TXT', Address1: 'a', TTL1: 'x' },
    '2011288',
    undefined,
  ],
  ['domains.getInfo', { DomainName: 'example.org' }, '2030166', 'DomainGetInfoResult'],
  ['domains.getInfo', {}, '2010166', undefined],
  ['domains.getList', { PageSize: '9' }, '2013275', 'DomainGetListResult'],
  ['domains.getList', { ListType: 'SOME' }, '2011169', undefined],
  ['domains.getList', { SortBy: 'AGE' }, '2011173', undefined],
  ['domains.dns.setCustom', nothing, '1019102', undefined],
  ['users.getBalances', {}, '1019102', undefined],
])('%s with %j is refused with %s', async (command, params, number, skeleton) => {
  await using service = await start({ domains })
  const door = await openDoor(service)

  const answer = await door.call(command, params)

  expect([answer.http, answer.status, answer.numbers]).toEqual([200, 'ERROR', [number]])
  expect(answer.command).toBe(`namecheap.${command.toLowerCase()}`)
  if (skeleton) expect(answer.all(skeleton)).toHaveLength(1)
  expect(service.commands().filter((each) => each.includes('.set'))).toEqual([])
})

test('a token sees its domains only, a viewer writes nothing, and records of other types stop a write', async () => {
  await using service = await start({ domains })
  const limited = await openDoor(service, { role: 'editor', domains: ['example.com'] })
  const viewer = await openDoor(service, {})
  const narrow = await openDoor(service, { records: [{ name: 'home', types: ['A'] }] })
  const editor = await openDoor(service)

  const list = await limited.call('domains.getList')
  const foreign = await limited.getHosts('srv.org')
  const foreignInfo = await limited.call('domains.getInfo', { DomainName: 'srv.org' })
  const info = await narrow.call('domains.getInfo', { DomainName: 'example.com' })
  const read = await viewer.getHosts()
  const written = await viewer.setHosts([])
  await editor.rows('srv.org')
  const srv = await editor.setHosts([], {}, 'srv.org')

  expect(list.all('Domain').map(({ Name }) => Name)).toEqual(['example.com'])
  expect(info.all('DnsDetails')[0]).not.toHaveProperty('HostCount')
  expect([foreign.numbers, foreignInfo.numbers]).toEqual([['2019166'], ['2030166']])
  expect([read.numbers, written.numbers]).toEqual([[], ['2030166']])
  expect([srv.numbers, srv.words]).toEqual([['2011288'], expect.stringContaining('_sip._tcp SRV')])
})

test.each([['wrong'], ['ds_wrong'], ['']])('the key %j is refused, in HTTP 200', async (key) => {
  await using service = await start({ domains })

  const answer = await (await openDoor(service, key)).getHosts()

  expect([answer.http, answer.numbers, answer.command]).toEqual([200, ['1011102'], ''])
  expect(answer.all('CommandResponse')).toEqual([])
})

test('a key that has expired is refused', async () => {
  await using service = await start({ domains })
  const door = await openDoor(service, { role: 'editor', expires_in: 1 })

  await expect.poll(async () => (await door.getHosts()).numbers).toEqual(['1011102'])
})

test('the key is in no log line and in no metric', async () => {
  await using service = await start({ domains })
  const door = await openDoor(service)
  for (const method of ['GET', 'POST', 'PUT'])
    for (const command of ['domains.dns.getHosts', 'domains.dns.setHosts', 'no.such', '\u0000'])
      await door.call(command, split('example.com'), method)
  const query = `ApiKey=${door.key}`
  await send(service, 'GET', `/integrations/registrar/xml.responses?${query}`)
  await send(service, 'DELETE', `/integrations/registrar/xml.response?${query}`)
  const body = `${query}&Address1=${'x'.repeat(3_000_000)}`
  const large = await send(service, 'POST', '/integrations/registrar/xml.response', { body })
  service.sandbox.fault({ kind: 'html', times: 0 })
  await door.getHosts('example.co.uk')
  const metrics = await send(service, 'GET', '/metrics', {
    headers: { authorization: 'Bearer metrics-token-of-tests' },
  })

  expect([large.status, large.text]).toEqual([200, expect.stringContaining('Status="ERROR"')])
  const lines = JSON.stringify(service.lines())
  expect(lines).toContain('/integrations/registrar/xml.response')
  expect(lines).not.toContain(door.key)
  expect(metrics.text).not.toContain(door.key)
})

test('a form of more parameters than any zone has is refused before it is parsed; its connection stays open', async () => {
  await using service = await start()
  const door = await openDoor(service)
  const others = Array.from({ length: 5_000 - 5 }, (_, at) => [`Other${at}`, ''])

  const most = await door.call('domains.getList', Object.fromEntries(others))
  const more = await send(service, 'POST', '/integrations/registrar/xml.response', { body: '&'.repeat(5_000) })

  expect(most.numbers).toEqual([])
  expect(readAnswer(more)).toMatchObject({ numbers: ['2011288'], words: 'The form has more than 5000 parameters' })
  expect(more.headers.get('connection')).not.toBe('close')
})

test('a getHosts without a call left keeps its place, unless the zone is known', async () => {
  const clock = new FakeClock()
  const names = Array.from({ length: 11 }, (_, n) => `domain${n}.example`)
  const env = { REGISTRAR_RATE: realRate, DRIFT_INTERVAL_S: '0' }
  await using service = await start({ clock, env, domains: names.map((name) => ({ name, hosts: [] })) })
  const door = await openDoor(service)
  for (const name of names.slice(0, -1)) await service.call('GET', `/api/domains/${name}/dns/hosts`)
  await clock.advance(31_000) // The cached zones are too old.
  const waiting = async () => (await service.call('GET', '/api/registrar')).body.calls_waiting

  const known = [(await door.getHosts('domain0.example')).http, await waiting()]
  const refused = [(await door.getHosts('domain10.example')).http, await waiting()]

  expect(known).toEqual([200, 0])
  expect(refused).toEqual([405, 1])
})
