import { expect, test } from 'vitest'
import { parseRow } from '../../src/dns/record.ts'
import { CallFailed } from '../../src/registrar/call-failed.ts'
import { readDomainInfo, readDomainList, readNameserverList, readZone } from '../../src/registrar/responses.ts'
import { readEnvelope } from '../../src/registrar/transport.ts'
import { failureOf, getHosts, getInfo, getList, getServers } from '../support/expected.ts'
import { answer, host, zoneAnswer } from '../support/responses.ts'

const zoneOf = (text: string) => readZone(readEnvelope(text, getHosts).result, 'example.com')

test('a zone is read as it is written: texts, also those that look like numbers', () => {
  const zone = zoneOf(
    zoneAnswer([
      host({ Name: '@', Type: 'TXT', Address: ' 1e3 <&"\u{1f600}\t', TTL: '60' }),
      host({ Name: 'WWW', Type: 'CNAME', Address: 'Example.net.', IsDDNSEnabled: 'true' }),
    ]),
  )

  expect(zone).toEqual({
    domain: 'example.com',
    usesRegistrarDns: true,
    emailType: 'NONE',
    rows: [
      {
        name: '@',
        type: 'TXT',
        address: ' 1e3 <&"\u{1f600}\t',
        ttl: '60',
        mxPref: '10',
        dynamic: false,
      },
      {
        name: 'WWW',
        type: 'CNAME',
        address: 'Example.net.',
        ttl: '1800',
        mxPref: '10',
        dynamic: true,
      },
    ],
  })
})

test('an empty zone, the documented spelling, and attributes that are missing', () => {
  expect(zoneOf(zoneAnswer([])).rows).toEqual([])
  const documented = zoneAnswer(['<Host HostId="1" Name="@" Type="A" Address="192.0.2.1" />'], 'Domain="EXAMPLE.com"')
  expect(zoneOf(documented)).toEqual({
    domain: 'example.com',
    usesRegistrarDns: true,
    emailType: undefined,
    rows: [{ name: '@', type: 'A', address: '192.0.2.1', ttl: '', mxPref: '', dynamic: false }],
  })
})

const good = zoneAnswer([host({ Name: '@', Type: 'A', Address: '192.0.2.1' })])

const emptied = '<CommandResponse><DomainDNSGetHostsResult Domain="example.com"/></CommandResponse>'

test.each([
  ['another command', answer('namecheap.domains.getInfo', '<DomainDNSGetHostsResult Domain="example.com"/>')],
  ['another result', answer(getHosts.command, '<DomainDNSSetHostsResult Domain="example.com" IsSuccess="true"/>')],
  ['another domain', good.replace('Domain="example.com"', 'Domain="example.net"')],
  ['no domain', good.replace('Domain="example.com"', '')],
  ['no result', answer(getHosts.command, '')],
  [
    'two results',
    good.replace('<DomainDNSGetHostsResult', '<DomainDNSGetHostsResult Domain="example.com"/><DomainDNSGetHostsResult'),
  ],
  ['an empty zone before it', good.replace('<CommandResponse', `${emptied}<CommandResponse`)],
  ['a zone that was not read', good.replace('IsUsingOurDNS', 'IsSuccess="false" IsUsingOurDNS')],
  ['a row without a name', zoneAnswer(['<host Type="A" Address="192.0.2.1"/>'])],
  ['a row without an address', zoneAnswer(['<host Name="@" Type="A"/>'])],
  ['something else among the rows', good.replace('<host', '<hosd')],
  ['a cut answer', good.slice(0, -5)],
  ['HTML', '<html><head></head><body>Checking your browser</body></html>'],
  ['no XML', 'Too many requests'],
])('an answer with %s is a bad answer, not a zone', (_name, text) => {
  const failure = failureOf(() => zoneOf(text))

  expect(failure).toMatchObject({
    kind: 'unknown',
    status: 502,
    code: 'registrar_bad_answer',
  })
})

test('a zone answer that is cut at whatever byte is refused', () => {
  const text = zoneAnswer([
    host({ Name: '@', Type: 'A', Address: '192.0.2.1' }),
    host({ Name: 'www', Type: 'TXT', Address: 'grüße' }),
  ]).trimEnd()

  const taken: number[] = []
  for (let at = 0; at < text.length; at++) {
    try {
      zoneOf(text.slice(0, at))
      taken.push(at)
    } catch (error) {
      expect(error).toBeInstanceOf(CallFailed)
    }
  }

  expect(taken).toEqual([])
})

test('a zone answer with one byte changed keeps every row, or is refused', () => {
  const rows = Array.from({ length: 3 }, (_, n) => host({ Name: `h${n}`, Type: 'TXT', Address: `a"${n}` }))
  const text = zoneAnswer(rows)

  const counts = new Set<number>()
  for (let at = 0; at < text.length; at++) {
    for (const byte of ['<', '>', '/', '"', '&', ' ', 'x', '\0', "'", '=', '!', '?', '-']) {
      try {
        counts.add(zoneOf(text.slice(0, at) + byte + text.slice(at + 1)).rows.length)
      } catch (error) {
        expect(error).toBeInstanceOf(CallFailed)
      }
    }
  }

  expect([...counts]).toEqual([3])
})

test('a list of domains', () => {
  const text = answer(
    getList.command,
    `<DomainGetListResult>
      <Domain ID="7" Name="Example.com" User="u" Created="09/03/2023" Expires="02/10/2027" IsExpired="false" IsLocked="true" AutoRenew="true" WhoisGuard="ENABLED" IsPremium="false" IsOurDNS="true" />
      <Domain ID="8" Name="old.net" Created="01/01/0001" Expires="02/29/2027" />
    </DomainGetListResult><Paging><TotalItems>12</TotalItems><CurrentPage>1</CurrentPage><PageSize>10</PageSize></Paging>`,
  )

  const { response, result } = readEnvelope(text, getList)
  expect(readDomainList(result, '', response)).toEqual({
    total: 12,
    domains: [
      {
        name: 'example.com',
        id: '7',
        created_on: '2023-09-03',
        expires_on: '2027-02-10',
        is_expired: false,
        is_locked: true,
        auto_renew: true,
        whois_guard: 'ENABLED',
        is_premium: false,
        uses_registrar_dns: true,
      },
      {
        name: 'old.net',
        id: '8',
        created_on: null,
        expires_on: null,
        is_expired: null,
        is_locked: null,
        auto_renew: null,
        whois_guard: null,
        is_premium: null,
        uses_registrar_dns: null,
      },
    ],
  })
})

test('an international name is the same in Unicode', () => {
  const rows = [host({ Name: 'b\u00fccher', Type: 'CNAME', Address: 'B\u00fccher.example.' })]
  const shown = zoneAnswer(rows, 'Domain="B\u00fccher.com." EmailType="NONE"')
  const listed = answer(
    getList.command,
    '<DomainGetListResult><Domain ID="7" Name="B\u00fccher.com" /></DomainGetListResult><Paging><TotalItems>1</TotalItems></Paging>',
  )

  const zone = readZone(readEnvelope(shown, getHosts).result, 'xn--bcher-kva.com')
  const { response, result } = readEnvelope(listed, getList)
  const list = readDomainList(result, '', response)

  expect(zone.rows.map((row) => parseRow(row).key)).toEqual(['xn--bcher-kva CNAME xn--bcher-kva.example'])
  expect(list.domains.map(({ name }) => name)).toEqual(['xn--bcher-kva.com'])
})

test('a list that does not say how long it is cannot be paged', () => {
  const { response, result } = readEnvelope(answer(getList.command, '<DomainGetListResult/>'), getList)

  expect(failureOf(() => readDomainList(result, '', response)).code).toBe('registrar_bad_answer')
})

test('a domain with all details, and one with hardly any', () => {
  const full = `<DomainGetInfoResult Status="Ok" ID="7" DomainName="example.com" OwnerName="me" IsOwner="true" IsPremium="false">
    <DomainDetails><CreatedDate>05/20/2020</CreatedDate><ExpiredDate>05/20/2027</ExpiredDate><NumYears>2</NumYears></DomainDetails>
    <LockDetails /><Whoisguard Enabled="True"><ID>1</ID><ExpiredDate>05/20/2027</ExpiredDate></Whoisguard>
    <PremiumDnsSubscription><CreatedDate>0001-01-01T00:00:00</CreatedDate></PremiumDnsSubscription>
    <DnsDetails ProviderType="FREE" IsUsingOurDNS="true" HostCount="22" EmailType="FWD"><Nameserver>DNS1.example.net.</Nameserver><Nameserver>dns2.example.net</Nameserver></DnsDetails>
    <Modificationrights All="false"><Rights Type="dns">OK</Rights><Rights Type="hosts">NO</Rights></Modificationrights></DomainGetInfoResult>`
  const read = (inner: string) =>
    readDomainInfo(readEnvelope(answer(getInfo.command, inner), getInfo).result, 'example.com')

  expect(read(full)).toEqual({
    element: expect.objectContaining({ name: 'DomainGetInfoResult' }),
    name: 'example.com',
    id: '7',
    status: 'Ok',
    owner: 'me',
    is_owner: true,
    is_premium: false,
    created_on: '2020-05-20',
    expires_on: '2027-05-20',
    years: 2,
    whois_guard: { status: 'ENABLED', expires_on: '2027-05-20' },
    dns: {
      provider: 'FREE',
      uses_registrar_dns: true,
      host_count: 22,
      email_type: 'FWD',
      nameservers: ['dns1.example.net', 'dns2.example.net'],
    },
    rights: ['dns'],
  })
  const wrong = full.replace('05/20/2020', '00/00/0000').replace('05/20/2027', '13/01/2027')
  expect(read(wrong), 'dates that are none').toMatchObject({ created_on: null, expires_on: null, years: 2 })
  expect(read('<DomainGetInfoResult DomainName="example.com"/>')).toEqual({
    element: expect.objectContaining({ children: [] }),
    name: 'example.com',
    id: '',
    status: null,
    owner: null,
    is_owner: null,
    is_premium: null,
    created_on: null,
    expires_on: null,
    years: null,
    whois_guard: { status: null, expires_on: null },
    dns: {
      provider: null,
      uses_registrar_dns: null,
      host_count: null,
      email_type: null,
      nameservers: [],
    },
    rights: [],
  })
})

test('nameservers', () => {
  const text = answer(
    getServers.command,
    '<DomainDNSGetListResult Domain="example.com" IsUsingOurDNS="false"><Nameserver>NS1.example.org</Nameserver></DomainDNSGetListResult>',
  )

  expect(readNameserverList(readEnvelope(text, getServers).result, 'example.com')).toEqual({
    uses_registrar_dns: false,
    nameservers: [{ name: 'ns1.example.org' }],
  })
})

test.each([
  ['FWD', 'FWD'],
  ['mx', 'MX'],
  ['No Email Service', 'NONE'],
  ['Private Email', 'Private Email'],
  [null, null],
])('the email type %j of getInfo is shown as %j', (shown, told) => {
  const attribute = shown === null ? '' : ` EmailType="${shown}"`
  const inner = `<DomainGetInfoResult DomainName="example.com"><DnsDetails${attribute}/></DomainGetInfoResult>`
  const { result } = readEnvelope(answer(getInfo.command, inner), getInfo)

  expect(readDomainInfo(result, 'example.com').dns.email_type).toBe(told)
})
