/** Strings that have broken other services. */
export const hostile = [
  ...['', ' ', '.', '..', '../..', '/', '//', '\\', '%', '%00', '%2e%2e%2f', '%ff', '\0', '\r\nx: y'],
  ...["' or 1=1 --", '"; drop table files', '%_', '*', '"', '""', 'a"b*', 'NEAR(', '{{7*7}}', '#{x}'],
  ...['<script>alert(1)</script>', '<!--', ']]>', '&lt;', '<!DOCTYPE x>', '\u202e', '\ufeff', '\ufffd'],
  ...['__proto__', 'constructor', 'toString', 'null', 'undefined', 'NaN', '-0', '1e309', '0x10'],
  ...['9'.repeat(30), 'a'.repeat(300), '\u0130\u0131\u00df', 'e\u0301', '\u{1f600}'.repeat(90), '\ud800'],
]

/** Placeholder in a path for the id of an existing record. */
export const liveRecord = 'live-record'

/** Valid records, so that some writes succeed. */
export const records = [
  { name: 'www', type: 'A', address: '192.0.2.1' },
  { name: 'www', type: 'A', address: '192.0.2.2', ttl: 60 },
  { name: 'mail', type: 'MX', address: 'mx.example.net', mx_pref: 0 },
  { name: '@', type: 'TXT', address: ' "a;b" + c ' },
  { name: '@', type: 'CAA', address: '0 issue ca.example' },
]

/** Meaningful values by parameter name. */
export const telling: Record<string, string[]> = {
  domain: [
    ...Array(8).fill('example.com'),
    ...['EXAMPLE.com.', 'absent.com', 'b\u00fccher.de', 'a.example.com', 'co.uk'],
  ],
  record: ['A', 'A', 'A', 'A', 'a', 'MX', 'TXT', 'CAA', 'URL', 'SRV', '0123456789ab', ...Array(5).fill(liveRecord)],
  path: ['a.txt', 'dir/b.html', 'dir', 'absent', 'upload/x'],
  prefix: ['dir', '/dir/', 'absent'],
  search: ['a', 'txt', 'dir/'],
  name: ['@', 'www', '*', '*.x', 'www.example.com', '_dmarc', 'M\u00fcller'],
  type: ['A', 'AAAA', 'CNAME', 'MX', 'MXE', 'TXT', 'CAA', 'NS', 'ALIAS', 'URL', 'URL301', 'FRAME', 'SRV'],
  address: ['192.0.2.1', '2001:db8::1', 'a.example.net.', '0 issue "ca.example"', 'http://a.example/', 'v=spf1'],
  username: ['admin', 'absent'],
  version: ['1.0.0', '1.0.1+x'],
  id: ['1', '2', '999'],
}
