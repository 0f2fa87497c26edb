import { expect, test } from 'vitest'
import { parseZoneFile } from '../../../src/dns/zone-file/zone-file.ts'
import { failureOf } from '../../support/zones.ts'

const parse = (text: string) => parseZoneFile(text, 'example.com')

const textsOf = (text: string) =>
  parse(text).records.map(({ name, ttl, type, mx_pref, address }) =>
    [name, ttl, type, mx_pref, address].filter((each) => each !== undefined).join(' '),
  )

const faultsOf = (text: string) => failureOf(() => parse(text)).errors

test('names are relative to $ORIGIN or absolute, and repeated where the line is indented', () => {
  const records = textsOf(`
$ORIGIN example.com.
www      A    192.0.2.1
         AAAA 2001:db8::1
@        A    192.0.2.2
api.example.com. A 192.0.2.3
$ORIGIN dev.example.com.
@        A    192.0.2.4
*        CNAME @
$ORIGIN eu
web      CNAME other.example.net.
         MX 10 mail
$ORIGIN com.
example  A    192.0.2.5
$ORIGIN .
mx.example.com CNAME a.example.net
`)

  expect(records).toEqual([
    'www A 192.0.2.1',
    'www AAAA 2001:db8::1',
    '@ A 192.0.2.2',
    'api A 192.0.2.3',
    'dev A 192.0.2.4',
    '*.dev CNAME dev.example.com',
    'web.eu.dev CNAME other.example.net',
    'web.eu.dev MX 10 mail.eu.dev.example.com',
    '@ A 192.0.2.5',
    'mx CNAME a.example.net',
  ])
})

test.each([
  ['seconds', 'a 300 A 192.0.2.1', 300],
  ['TTL before class', 'a 300 IN A 192.0.2.1', 300],
  ['class before TTL', 'a in 300 A 192.0.2.1', 300],
  ['units of BIND', 'a 1h30m A 192.0.2.1', 5400],
  ['$TTL', '$TTL 10M\na A 192.0.2.1', 600],
  ['the last TTL', 'z 120 A 192.0.2.1\na A 192.0.2.1', 120],
  ['$TTL before the last TTL', '$TTL 240\nz 120 A 192.0.2.1\na A 192.0.2.1', 240],
  ['the minimum of the SOA', '@ SOA a. b. 1 2 3 4 900\na A 192.0.2.1', 900],
  ['none', 'a A 192.0.2.1', undefined],
])('the TTL comes from %s', (_name, text, ttl) => {
  expect(parse(text).records.at(-1)).toMatchObject({ name: 'a' })
  expect(parse(text).records.at(-1)?.ttl).toBe(ttl)
})

test.each([
  ['1', 60],
  ['86400', 60_000],
  ['1w', 60_000],
])('the TTL %s of another provider is bounded, with a warning', (ttl, bounded) => {
  const { records, warnings } = parse(`\na ${ttl} A 192.0.2.1`)

  expect(records).toMatchObject([{ ttl: bounded }])
  expect(warnings).toEqual([expect.stringMatching(/^line 2: TTL \d+ is set to/)])
})

test.each([
  ['one string', '"v=spf1 -all"', 'v=spf1 -all'],
  ['a word', 'v=spf1', 'v=spf1'],
  ['strings in sequence', '"abc" "def" ghi', 'abcdefghi'],
  ['lines in parentheses', '( "abc" ; first\n  "def"\n )', 'abcdef'],
  ['a semicolon in quotes', '"v=DKIM1; k=rsa" ; comment', 'v=DKIM1; k=rsa'],
  ['an escaped semicolon', 'v=DKIM1\\;', 'v=DKIM1;'],
  ['escaped quotes and backslashes', '"a \\"b\\" \\\\"', 'a "b" \\'],
  ['octets as \\DDD', '"\\195\\169 \\059"', '\u00e9 ;'],
  ['an octet sequence over two strings', '"\\195" "\\169"', '\u00e9'],
  ['UTF-8', '"\u00e9"', '\u00e9'],
  ['parentheses in quotes', '"(a"', '(a'],
])('TXT is %s', (_name, rdata, address) => {
  expect(parse(`a TXT ${rdata}`).records).toEqual([{ name: 'a', type: 'TXT', address }])
})

test.each([
  ['CAA 0 issue "ca.example.net; policy=ev"', '0 issue "ca.example.net; policy=ev"'],
  ['CAA 128 issuewild ca.example.net', '128 issuewild "ca.example.net"'],
  ['CAA 0 iodef "mailto:a@example.com"', '0 iodef "mailto:a@example.com"'],
  ['NS ns1', 'ns1.example.com'],
  ['ALIAS target.example.net.', 'target.example.net'],
  ['cname Target', 'target.example.com'],
])('%s has the address %s', (rdata, address) => {
  expect(parse(`a ${rdata}`).records).toMatchObject([{ name: 'a', address }])
})

test('SOA and NS of the domain itself are skipped with a warning', () => {
  const { records, warnings } = parse(`$TTL 3600
@ IN SOA ns1.example.net. host.example.com. (
    2024010101 ; serial
    7200 3600 1209600 3600 )
  IN NS ns1.example.net.
sub IN NS ns1.example.net.`)

  expect(records).toMatchObject([{ name: 'sub', type: 'NS', address: 'ns1.example.net' }])
  expect(warnings).toEqual([expect.stringMatching(/^line 2: SOA/), expect.stringMatching(/^line 5: NS/)])
})

test('records that DNS does not have come from annotations', () => {
  const file = parse(`; a comment; with a semicolon
; domain-service email-type fwd
;domain-service record @ 1800 URL301 "https://example.net/?a=b;c"\r
; domain-service record "odd \\" name" 60 MX "mx" 70000
; domain-serviced record a`)

  expect(file).toEqual({
    records: [
      { name: '@', ttl: 1800, type: 'URL301', address: 'https://example.net/?a=b;c' },
      { name: 'odd " name', ttl: 60, type: 'MX', address: 'mx', mx_pref: 70_000 },
    ],
    lines: [3, 4],
    emailType: 'FWD',
    emailTypePath: '/line/2',
    warnings: [],
  })
})

test.each([
  ['a SRV 0 0 5060 b', 'type SRV'],
  ['a TYPE65 \\# 0', 'type TYPE65'],
  ['$INCLUDE other.zone', 'must be $ORIGIN'],
  ['$GENERATE 1-9 a$ A 192.0.2.$', 'must be $ORIGIN'],
  ['$ORIGIN', 'must be $ORIGIN'],
  ['$TTL soon', 'must be $ORIGIN'],
  ['a CH TXT x', 'type CH'],
  ['a A', 'one address'],
  ['a A 192.0.2.1 192.0.2.2', 'one address'],
  ['a MX mail', 'a preference'],
  ['a MX 10 mail backup', 'a preference'],
  ['a CNAME', 'one host name'],
  ['a CNAME b\\.c', 'one host name'],
  ['a\\046b A 192.0.2.1', 'a name that'],
  ['a TXT', 'a text'],
  ['a TXT "\\233"', 'UTF-8'],
  ['a TXT "\\300"', 'escape'],
  ['a TXT "\\1x"', 'escape'],
  ['a CAA 0 issue', 'flags'],
  ['a.example.net. A 192.0.2.1', 'outside of example.com'],
  ['notexample.com. A 192.0.2.1', 'outside of example.com'],
  ['  A 192.0.2.1', 'no name'],
  ['a 300', 'no record type'],
  ['a TXT "open', 'not closed'],
  ['a TXT ( "x"', 'not closed'],
  ['a TXT "x" )', 'not open'],
  ['; domain-service record a URL x', 'must be such as'],
  ['; domain-service record a 60 URL "\\300"', 'must be such as'],
  ['; domain-service email-type', 'email-type MX'],
  ['; domain-service other', 'must be such as'],
])('%j is refused with its line', (text, message) => {
  expect(faultsOf(`\n\n${text}\n`)).toEqual([{ path: '/line/3', message: expect.stringContaining(message) }])
})

test('all faults are named, by line', () => {
  const text = 'a SRV 1\nb A 192.0.2.1\n-c A 192.0.2.1\nd CNAME single.\ne TXT "open\nf A x'

  expect(faultsOf(text)?.map(({ path }) => path)).toEqual(['/line/1', '/line/3', '/line/4', '/line/5', '/line/6'])
})

test.each([
  ['lines', '\n'.repeat(50_001)],
  ['comments', ';\n'.repeat(25_001)],
  ['words', `a TXT ${'"" '.repeat(60_000)}`],
])('a file of too many %s is refused', (_name, text) => {
  expect(faultsOf(text)).toMatchObject([{ message: expect.stringContaining('past the limit') }])
})

test('a file of 10,000 bad lines is refused with 1,000 faults', () => {
  expect(faultsOf('a A\n'.repeat(10_000))).toHaveLength(1000)
})

test('an export of Cloudflare is read', () => {
  const { records, warnings } = parse(`;;
;; Domain:     example.com.
;; Exported:   2024-05-05 10:00:00
;;
;; SOA Record
example.com\t3600\tIN\tSOA\tns.example.net. dns.example.net. 2044 10000 2400 604800 3600

;; NS Records
example.com.\t86400\tIN\tNS\tns.example.net.

;; A Records
example.com.\t1\tIN\tA\t192.0.2.1 ; cf_tags=cf-proxied:true

;; CAA Records
example.com.\t1\tIN\tCAA\t0 issue "ca.example.net"

;; MX Records
example.com.\t1\tIN\tMX\t10 mx.example.net.

;; TXT Records
_dmarc.example.com.\t1\tIN\tTXT\t"v=DMARC1; p=none"
`)

  expect(records.map(({ name, type, address }) => `${name} ${type} ${address}`)).toEqual([
    '@ A 192.0.2.1',
    '@ CAA 0 issue "ca.example.net"',
    '@ MX mx.example.net',
    '_dmarc TXT v=DMARC1; p=none',
  ])
  expect(warnings).toHaveLength(6)
})
