import { startSandbox } from '@domains-and-files/registrar-sandbox'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { faultsOf, type RecordInput, toRow } from '../../src/dns/record.ts'

const check = (draft: Partial<RecordInput>) => {
  const input = { name: 'www', type: 'A', address: '192.0.2.1', ...draft }
  return { row: toRow(input), faults: faultsOf(input, 'example.com') }
}

const placeOf = (type: string) => (type === 'MXE' ? '@' : 'www')

/** Of 255 characters. */
const longestUrl = `https://example.net/${'a'.repeat(235)}`
const longestCaa = `0 iodef "https://example.net/${'a'.repeat(225)}"`

/** Of 253 characters. */
const longestTarget = `${`${'a'.repeat(49)}.`.repeat(5)}net`

test.each([
  ['A', '192.0.2.1', '192.0.2.1'],
  ['AAAA', '2001:DB8::1', '2001:DB8::1'],
  ['CNAME', 'Host.Example.NET', 'host.example.net.'],
  ['CNAME', 'host.example.net.', 'host.example.net.'],
  ['ALIAS', 'host.example.net', 'host.example.net.'],
  ['NS', 'ns1.example.net', 'ns1.example.net.'],
  ['MX', 'm\u00fcnchen.de', 'xn--mnchen-3ya.de.'],
  ['CNAME', '_dmarc.example.net', '_dmarc.example.net.'],
  [
    'CAA',
    '0 issue "ca.example.net; validationmethods=dns-01; accounturi=https://ca.example.net/acct/1"',
    '0 issue "ca.example.net; validationmethods=dns-01; accounturi=https://ca.example.net/acct/1"',
  ],
  ['CAA', '0 issue ca.example.net; policy=ev', '0 issue "ca.example.net; policy=ev"'],
  ['CAA', '0 issue "ca.example.net;"', '0 issue "ca.example.net;"'],
  ['CAA', '0 issuewild ""', '0 issuewild ""'],
  ['MXE', '192.0.2.1', '192.0.2.1'],
  ['CAA', '0 issue ca.example.net', '0 issue "ca.example.net"'],
  ['CAA', ' 128  ISSUEWILD ";" ', '128 issuewild ";"'],
  ['CAA', '0 iodef mailto:a@example.net', '0 iodef "mailto:a@example.net"'],
  ['CAA', longestCaa, longestCaa],
  ['MX', longestTarget, `${longestTarget}.`],
  ['TXT', '  v=spf1 "a" +all;\t\u00e9 ', '  v=spf1 "a" +all;\t\u00e9 '],
  ['TXT', 'x'.repeat(2500), 'x'.repeat(2500)],
  ['TXT', '.', '.'],
  ['TXT', '\u{1f600}'.repeat(2500), '\u{1f600}'.repeat(2500)],
  ['URL', 'http://example.net/a?b=c&d', 'http://example.net/a?b=c&d'],
  ['URL', longestUrl, longestUrl],
  ['url301', 'HTTPS://example.net', 'HTTPS://example.net'],
  ['FRAME', 'https://example.net/', 'https://example.net/'],
])('%s %s is normalized', (type, address, sent) => {
  const name = placeOf(type)
  expect(check({ name, type, address })).toEqual({
    row: {
      name,
      type: type.toUpperCase(),
      address: sent,
      ttl: '1800',
      mxPref: '10',
      dynamic: false,
    },
    faults: [],
  })
})

test.each([
  ['A', '1.2.3'],
  ['A', '01.2.3.4'],
  ['A', '1.2.3.256'],
  ['A', ' 1.2.3.4'],
  ['A', '0x7f.0.0.1'],
  ['A', '::1'],
  ['A', '\uff11.2.3.4'],
  ['A', ''],
  ['AAAA', '2001:db8::\uff11'],
  ['CNAME', '\uff11.example.net'],
  ['AAAA', '1.2.3.4'],
  ['AAAA', 'fe80::1%eth0'],
  ['AAAA', '2001:db8::1::2'],
  ['CNAME', '192.0.2.1'],
  ['CNAME', '2001:db8::1'],
  ['CNAME', 'www.example.com'],
  ['CNAME', 'WWW.example.com.'],
  ['CNAME', 'a..b'],
  ['CNAME', 'localhost'],
  ['ALIAS', 'target.'],
  ['NS', 'ns1'],
  ['MX', 'mail'],
  ['CNAME', 'a b'],
  ['CNAME', 'http://a.example'],
  ['CNAME', '*.example.net'],
  ['CNAME', `${'a'.repeat(64)}.example.net`],
  ['CNAME', ''],
  ['MX', '.'],
  ['MX', '192.0.2.1'],
  ['NS', 'ns1 .example.net'],
  ['MXE', 'host.example.net'],
  ['CAA', 'random'],
  ['CAA', '256 issue "a"'],
  ['CAA', '0 other "a"'],
  ['CAA', '0 iodef "example.net"'],
  ['CAA', '0 issue "a'],
  ['CAA', '0 issue'],
  ['CAA', '0 issue "two words"'],
  ['CAA', '0 issue "ca.example.net; policy"'],
  ['CAA', '0 issue "ca.example.net; p_q=1"'],
  ['CAA', '0 issue "-ca.example.net"'],
  ['TXT', ''],
  ['TXT', 'x'.repeat(2501)],
  ['TXT', 'a\u0000b'],
  ['TXT', 'a\nb'],
  ['TXT', 'a\ud800b'],
  ['URL', 'example.net'],
  ['URL', 'ftp://example.net'],
  ['URL', 'https://user:pass@example.net/'],
  ['URL', 'https://user@example.net/'],
  ['URL', 'https:///x'],
  ['URL', 'https://example.net/a b'],
  ['URL', `https://example.net/${'a'.repeat(236)}`],
  ['URL', 'javascript:alert(1)'],
  ['URL', 'https://example.net/"'],
  ['URL301', 'https://example.net/<a>'],
  ['FRAME', 'https://example.net/\u0001'],
  ['URL', 'https://example.net/\ud800'],
  ['CAA', '0 iodef "https://example.net/&quot;"'],
  ['CAA', longestCaa.replace('/a', '/aa')],
  ['MX', `a${longestTarget}`],
  ['MX', 'host.1'],
  ['ALIAS', 'www.example.com'],
])('%s %j is refused at its address', (type, address) => {
  const { faults } = check({ name: placeOf(type), type, address })

  expect(faults.map(([field]) => field)).toEqual(['address'])
})

test.each([
  ['@', '@'],
  ['WWW', 'www'],
  ['*', '*'],
  ['*.dev', '*.dev'],
  ['_dmarc', '_dmarc'],
  ['s1._domainkey', 's1._domainkey'],
  ['a_b', 'a_b'],
  ['b\u00fccher', 'xn--bcher-kva'],
  ['xn--bcher-kva', 'xn--bcher-kva'],
  ['x'.repeat(60), 'x'.repeat(60)],
])('the name %s is sent as %s', (name, sent) => {
  const { row, faults } = check({ name })

  expect([row.name, faults]).toEqual([sent, []])
})

test.each([
  ['', /required/],
  ['example.com', /write @/],
  ['example.com.', /write @/],
  ['www.example.com', /write www/],
  ['WWW.Example.com.', /write www/],
  ['-a', /labels/],
  ['a-', /labels/],
  ['a..b', /labels/],
  ['a.', /labels/],
  ['a b', /labels/],
  ['a.*', /labels/],
  ['a*', /labels/],
  ['**', /labels/],
  ['a/b', /labels/],
  ['\uff11', /labels/], // The registrar would get 0.0.0.1.
  ['\uff12.\uff11', /labels/],
  ['\u0661', /labels/],
  ['a\u00b2', /labels/],
  ['a\u2488b', /labels/],
  ['1.2%33', /labels/],
  [`${'x'.repeat(30)}.${'y'.repeat(30)}`, /60/],
  ['x'.repeat(64), /labels/],
])('the name %j is refused', (name, reason) => {
  const { faults } = check({ name })

  expect(faults).toEqual([['name', expect.stringMatching(reason)]])
})

test('a name that is too long with its domain is refused', () => {
  const domain = `${'d'.repeat(63)}.${'e'.repeat(63)}.${'f'.repeat(63)}.co`
  const faultsOfName = (length: number) =>
    faultsOf({ name: 'x'.repeat(length), type: 'A', address: '192.0.2.1' }, domain)

  expect(domain.length).toBe(194)
  expect(faultsOfName(58)).toEqual([])
  expect(faultsOfName(59)).toEqual([['name', expect.stringMatching(/253/)]])
})

test.each([
  [{ ttl: 59 }, 'ttl'],
  [{ ttl: 60_001 }, 'ttl'],
  [{ ttl: -1 }, 'ttl'],
  [{ type: 'MX', address: 'mx.example.net', mx_pref: 65_536 }, 'mx_pref'],
  [{ type: 'MX', address: 'mx.example.net', mx_pref: -1 }, 'mx_pref'],
  [{ type: 'SRV' }, 'type'],
  [{ type: 'constructor' }, 'type'],
  [{ type: '' }, 'type'],
  [{ type: 'CNAME', name: '@', address: 'a.example.net' }, 'name'],
  [{ type: 'NS', name: '@', address: 'a.example.net' }, 'name'],
  [{ type: 'MXE', name: 'www', address: '192.0.2.1' }, 'name'], // The registrar would name it after the domain.
])('%j is refused at %s', (draft, field) => {
  expect(check(draft).faults.map(([at]) => at)).toEqual([field])
})

test.each([
  [{ ttl: 60 }, { ttl: '60' }],
  [{ ttl: 60_000 }, { ttl: '60000' }],
  [{ mx_pref: 70_000 }, { mxPref: '10' }], // Ignored beside types other than MX.
  [{ type: 'MX', address: 'mx.example.net', mx_pref: 0 }, { mxPref: '0' }],
  [{ type: 'MX', address: 'mx.example.net', mx_pref: 65_535 }, { mxPref: '65535' }],
])('%j is taken', (draft, sent) => {
  const { row, faults } = check(draft)

  expect(faults).toEqual([])
  expect(row).toMatchObject(sent)
})

test('all faults are named at once', () => {
  const { faults } = check({
    name: 'a b',
    type: 'MX',
    address: '1.2.3.4',
    ttl: 1,
    mx_pref: 70_000,
  })

  expect(faults.map(([field]) => field)).toEqual(['name', 'address', 'ttl', 'mx_pref'])
})

const oddTexts = [
  ...'abz019.-_*@:/=,+#?%\'"<>&;\\|()[]{}\t\n\r \u0000\u0001\u007f\u0085\u00a0é\u2028\ufeff\ufffe\ud800',
]
const templates = [
  ...['A', 'AAAA', 'ALIAS', 'CNAME', 'MX', 'MXE', 'NS', 'TXT'].map((type) => [type, '…']),
  ...['ALIAS', 'CNAME', 'MX', 'NS'].map((type) => [type, '….example.net']),
  ...['URL', 'URL301', 'FRAME'].map((type) => [type, 'https://example.net/…']),
  ...['https://…', 'http://example.net?…'].map((address) => ['URL', address]),
  ['A', '192.0.2.…'],
  ['AAAA', '2001:db8::…'],
  ...['0 … "ca.example.net"', '…', '0 issue …', '0 issue "ca.example.net; a=…"'].map((each) => ['CAA', each]),
  ...['0 iodef "https://…"', '0 iodef "mailto:a@…"', '… issue ""'].map((each) => ['CAA', each]),
] as [type: string, address: string][]

test('the registrar refuses no record that is valid here', async () => {
  await using sandbox = await startSandbox({
    apiUser: 'a',
    apiKey: 'b',
    rate: 'off',
    domains: [{ name: 'example.com', hosts: [] }],
  })
  const text = fc.array(fc.constantFrom(...oddTexts, '&quot;', '&#34;', '😀'), { maxLength: 8 })
  const record = fc.record({ template: fc.constantFrom(...templates), text, isName: fc.boolean() })
  const property = fc.asyncProperty(record, async ({ template: [type, address], text, isName }) => {
    const value = address.replaceAll('…', () => text.join(''))
    const name = type === 'MXE' ? '@' : isName ? text.join('') : 'www'
    const { row, faults } = check({ name, type, address: value })
    if (faults.length > 0) return
    const body = new URLSearchParams({
      ApiUser: 'a',
      ApiKey: 'b',
      UserName: 'a',
      ClientIp: '127.0.0.1',
      SLD: 'example',
      TLD: 'com',
      Command: 'namecheap.domains.dns.setHosts',
      EmailType: /^MXE?$/.test(type) ? type : 'NONE',
      HostName1: row.name,
      RecordType1: type,
      Address1: row.address,
    })
    const answer = await fetch(sandbox.url, { method: 'POST', body })
    expect(await answer.text()).not.toContain('<Error ')
  })
  await fc.assert(property, { numRuns: 3000 })
})
