import { HttpError } from '@domains-and-files/http'
import { expect, test } from 'vitest'
import {
  demandSuccess,
  readDomainInfo,
  readDomainList,
  readNameserverList,
  readZone,
} from '../../src/registrar/responses.ts'
import { CallFailed, readResult } from '../../src/registrar/transport.ts'
import { answer, host, refusal, zoneAnswer } from '../support/responses.ts'

const getHosts = {
  command: 'namecheap.domains.dns.getHosts',
  result: 'DomainDNSGetHostsResult',
  domain: 'example.com',
}
const getInfo = {
  command: 'namecheap.domains.getInfo',
  result: 'DomainGetInfoResult',
  domain: 'example.com',
}
const getList = { command: 'namecheap.domains.getList', result: 'DomainGetListResult', domain: '' }
const getServers = {
  command: 'namecheap.domains.dns.getList',
  result: 'DomainDNSGetListResult',
  domain: 'example.com',
}
const setHosts = {
  command: 'namecheap.domains.dns.setHosts',
  result: 'DomainDNSSetHostsResult',
  domain: 'example.com',
}

const zoneOf = (text: string) => readZone(readResult(text, getHosts).result, 'example.com')

function failureOf(read: () => unknown): CallFailed {
  try {
    read()
  } catch (error) {
    if (error instanceof CallFailed) return error
    throw error
  }
  throw new Error('it was read')
}

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
  const documented = zoneAnswer(
    ['<Host HostId="1" Name="@" Type="A" Address="192.0.2.1" />'],
    'Domain="EXAMPLE.com"',
  )
  expect(zoneOf(documented)).toEqual({
    domain: 'example.com',
    usesRegistrarDns: true,
    emailType: undefined,
    rows: [{ name: '@', type: 'A', address: '192.0.2.1', ttl: '', mxPref: '', dynamic: false }],
  })
})

const good = zoneAnswer([host({ Name: '@', Type: 'A', Address: '192.0.2.1' })])

test.each([
  [
    'another command',
    answer('namecheap.domains.getInfo', '<DomainDNSGetHostsResult Domain="example.com"/>'),
  ],
  [
    'another result',
    answer(getHosts.command, '<DomainDNSSetHostsResult Domain="example.com" IsSuccess="true"/>'),
  ],
  ['another domain', good.replace('Domain="example.com"', 'Domain="example.net"')],
  ['no domain', good.replace('Domain="example.com"', '')],
  ['no result', answer(getHosts.command, '')],
  [
    'two results',
    good.replace(
      '<DomainDNSGetHostsResult',
      '<DomainDNSGetHostsResult Domain="example.com"/><DomainDNSGetHostsResult',
    ),
  ],
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
    error: { status: 502, code: 'registrar_bad_answer' },
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
  const rows = Array.from({ length: 3 }, (_, n) =>
    host({ Name: `h${n}`, Type: 'TXT', Address: `a"${n}` }),
  )
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

test.each([
  ['1011102', getHosts, 'auth', 502, 'registrar_auth'],
  ['1011150', getHosts, 'auth', 502, 'registrar_auth'],
  ['1017411', setHosts, 'auth', 502, 'registrar_auth'],
  ['1030408', getList, 'auth', 502, 'registrar_auth'],
  ['1050900', getList, 'auth', 502, 'registrar_auth'],
  ['500000', getHosts, 'busy', 503, 'registrar_busy'],
  ['2019166', getHosts, 'refused', 404, 'domain_not_found'],
  ['2016166', getServers, 'refused', 404, 'domain_not_found'],
  ['3016166', getHosts, 'refused', 404, 'domain_not_found'],
  ['2030166', getInfo, 'refused', 404, 'domain_not_found'],
  ['2030166', setHosts, 'refused', 403, 'domain_not_editable'],
  ['4011103', setHosts, 'refused', 403, 'domain_not_editable'],
  ['2030288', setHosts, 'refused', 409, 'dns_not_managed'],
  ['3013288', setHosts, 'refused', 422, 'too_many_records'],
  ['4013288', setHosts, 'refused', 422, 'too_many_records'],
  ['2010166', getInfo, 'refused', 422, 'registrar_rejected'],
  ['2011170', setHosts, 'refused', 422, 'registrar_rejected'],
  ['3050900', getHosts, 'unknown', 502, 'registrar_error'],
  ['5019169', getList, 'unknown', 502, 'registrar_error'],
  ['5050169', getList, 'unknown', 502, 'registrar_error'],
  ['5050900', getHosts, 'unknown', 502, 'registrar_error'],
  ['3031510', getHosts, 'doubtful', 502, 'registrar_error'],
  ['9999999', getHosts, 'doubtful', 502, 'registrar_error'],
] as const)('error %s of $command is %s', (number, expected, kind, status, code) => {
  const skeleton = `<CommandResponse Type="${expected.command}"><${expected.result} Domain="example.com" IsSuccess="true" EmailType=""/></CommandResponse>`

  const failure = failureOf(() => readResult(refusal(number, 'secret words', skeleton), expected))

  expect(failure).toMatchObject({ kind, number, error: { status, code } })
  expect(failure.error).toBeInstanceOf(HttpError)
})

test('of several errors the telling one counts', () => {
  const text = refusal('9999999', 'x').replace(
    '</Errors>',
    '<Error Number="2019166">not found</Error></Errors>',
  )

  expect(failureOf(() => readResult(text, getHosts)).error.code).toBe('domain_not_found')
})

test('the words of a refusal are passed on tidied', () => {
  const text = refusal('2011170', `TTL\u0085is ${'bad '.repeat(200)}`)

  const { message } = failureOf(() => readResult(text, setHosts)).error
  expect(message).toMatch(/^The registrar refused this: TTL is bad bad/)
  expect(message.length).toBeLessThan(400)
})

test.each([
  [
    'OK, but not done',
    answer(setHosts.command, '<DomainDNSSetHostsResult Domain="example.com" IsSuccess="false"/>'),
  ],
  [
    'OK without a word',
    answer(setHosts.command, '<DomainDNSSetHostsResult Domain="example.com"/>'),
  ],
  [
    'an error without a reason',
    answer(
      setHosts.command,
      '<DomainDNSSetHostsResult Domain="example.com" IsSuccess="true"/>',
      'ERROR',
    ),
  ],
  [
    'no status',
    answer(
      setHosts.command,
      '<DomainDNSSetHostsResult Domain="example.com" IsSuccess="true"/>',
      '',
    ),
  ],
])('a write that is answered with %s may have been done', (_name, text) => {
  const failure = failureOf(() => demandSuccess(readResult(text, setHosts).result, 'example.com'))

  expect(failure.kind).toBe('unknown')
})

test('a list of domains', () => {
  const text = answer(
    getList.command,
    `<DomainGetListResult>
      <Domain ID="7" Name="Example.com" User="u" Created="09/03/2023" Expires="02/10/2027" IsExpired="false" IsLocked="true" AutoRenew="true" WhoisGuard="ENABLED" IsPremium="false" IsOurDNS="true" />
      <Domain ID="8" Name="old.net" Created="01/02/2014" Expires="bad" IsExpired="true" IsLocked="false" AutoRenew="false" />
    </DomainGetListResult><Paging><TotalItems>12</TotalItems><CurrentPage>1</CurrentPage><PageSize>10</PageSize></Paging>`,
  )

  const { response, result } = readResult(text, getList)
  expect(readDomainList(response, result)).toEqual({
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
        created_on: '2014-01-02',
        expires_on: null,
        is_expired: true,
        is_locked: false,
        auto_renew: false,
        whois_guard: null,
        is_premium: null,
        uses_registrar_dns: null,
      },
    ],
  })
})

test('a list that does not say how long it is cannot be paged', () => {
  const { response, result } = readResult(
    answer(getList.command, '<DomainGetListResult/>'),
    getList,
  )

  expect(failureOf(() => readDomainList(response, result)).error.code).toBe('registrar_bad_answer')
})

test('a domain with all details, and one with hardly any', () => {
  const full = `<DomainGetInfoResult Status="Ok" ID="7" DomainName="example.com" OwnerName="me" IsOwner="true" IsPremium="false">
    <DomainDetails><CreatedDate>05/20/2020</CreatedDate><ExpiredDate>05/20/2027</ExpiredDate><NumYears>2</NumYears></DomainDetails>
    <LockDetails /><Whoisguard Enabled="True"><ID>1</ID><ExpiredDate>05/20/2027</ExpiredDate></Whoisguard>
    <PremiumDnsSubscription><CreatedDate>0001-01-01T00:00:00</CreatedDate></PremiumDnsSubscription>
    <DnsDetails ProviderType="FREE" IsUsingOurDNS="true" HostCount="22" EmailType="FWD"><Nameserver>DNS1.example.net.</Nameserver><Nameserver>dns2.example.net</Nameserver></DnsDetails>
    <Modificationrights All="false"><Rights Type="dns">OK</Rights><Rights Type="hosts">NO</Rights></Modificationrights></DomainGetInfoResult>`
  const read = (inner: string) =>
    readDomainInfo(readResult(answer(getInfo.command, inner), getInfo).result, 'example.com')

  expect(read(full)).toEqual({
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
  expect(read('<DomainGetInfoResult DomainName="example.com"/>')).toEqual({
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

  expect(readNameserverList(readResult(text, getServers).result, 'example.com')).toEqual({
    uses_registrar_dns: false,
    nameservers: [{ name: 'ns1.example.org' }],
  })
})
