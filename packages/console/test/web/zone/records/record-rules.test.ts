import { expect, test } from 'vitest'
import { findFaults } from '../../../../web/zone/records/record-rules.js'

const domain = 'example.com'
const zone = [
  { name: 'www', type: 'A', address: '192.0.2.1' },
  { name: 'alias', type: 'CNAME', address: 'www.example.com' },
  { name: 'go', type: 'URL', address: 'https://example.net/' },
]
const faultsOf = (type: string, name: string, address: string) =>
  Object.keys(findFaults({ type, name, address, ttl: 1800, mx_pref: 10 }, domain, zone))

test.each([
  ['A', '@', '192.0.2.10'],
  ['A', '*.dev', '192.0.2.10'],
  ['AAAA', 'www', '2001:db8::10'],
  ['CNAME', 'blog', 'pages.example.net.'],
  ['MX', '@', 'mx1.example.net'],
  ['MXE', '@', '192.0.2.25'],
  ['TXT', '_dmarc', 'v=DMARC1; p=none'],
  ['CAA', '@', '0 issue "letsencrypt.org; validationmethods=dns-01"'],
  ['CAA', '@', '0 iodef "mailto:security@example.com"'],
  ['NS', 'lab', 'ns1.example.net'],
  ['ALIAS', '@', 'edge.example.net'],
  ['URL301', 'old', 'https://example.net/new'],
])('%s %s %s is fine', (type, name, address) => {
  expect(faultsOf(type, name, address)).toEqual([])
})

test.each([
  ['A', '@', '192.0.2.010', 'address'],
  ['A', '@', 'example.net', 'address'],
  ['A', 'www.example.com', '192.0.2.1', 'name'],
  ['A', 'a..b', '192.0.2.1', 'name'],
  ['A', 'a.*', '192.0.2.1', 'name'],
  ['A', '-a', '192.0.2.1', 'name'],
  ['A', '', '192.0.2.1', 'name'],
  ['A', 'alias', '192.0.2.1', 'name'],
  ['A', 'www', '192.0.2.1', 'address'],
  ['AAAA', '@', '2001:db8::1%eth0', 'address'],
  ['CNAME', '@', 'www.example.net', 'name'],
  ['CNAME', 'www', 'www.example.net', 'name'],
  ['CNAME', 'self', 'self.example.com', 'address'],
  ['MX', '@', '192.0.2.1', 'address'],
  ['MX', '@', 'mail', 'address'],
  ['MXE', 'mail', '192.0.2.1', 'name'],
  ['NS', '@', 'ns1.example.net', 'name'],
  ['ALIAS', 'www', 'edge.example.net', 'name'],
  ['CAA', '@', 'letsencrypt.org', 'address'],
  ['CAA', '@', '256 issue "letsencrypt.org"', 'address'],
  ['CAA', '@', '0 iodef "security@example.com"', 'address'],
  ['URL', 'go', 'https://example.net/other', 'name'],
  ['URL', 'new', 'https://user:secret@example.net/', 'address'],
  ['URL', 'new', 'javascript:alert(1)', 'address'],
  ['TXT', '@', 'x'.repeat(2501), 'address'],
])('%s %s %s has a fault in its %s', (type, name, address, field) => {
  expect(faultsOf(type, name, address)).toEqual([field])
})

test('TTL and preference have bounds', () => {
  const faults = findFaults({ type: 'MX', name: '@', address: 'mx.example.net', ttl: 59, mx_pref: 65_536 }, domain, [])

  expect(Object.keys(faults)).toEqual(['ttl', 'mx_pref'])
})
