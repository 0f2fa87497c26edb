import { expect, test } from 'vitest'
import { tableToZoneFile } from '../../../../web/zone/records/spreadsheet.js'

const read = (text: string) => tableToZoneFile(text, 'example.com')

test('pasted rows become records, each in its line', () => {
  expect(read('www\tA\t192.0.2.1\t300\n\n@\tMX\t10 mx1.example.net\t')).toBe(
    [
      '; domain-service record "www" 300 A "192.0.2.1"',
      '',
      '; domain-service record "@" 1800 MX "mx1.example.net" 10',
    ].join('\n'),
  )
})

test('a row of titles names the columns, in any order', () => {
  expect(read('Type,Host,Priority,Value\nmx,example.com,20,mx.example.net')).toBe(
    '\n; domain-service record "@" 1800 MX "mx.example.net" 20',
  )
})

test('a quoted cell keeps separators and quotes; full names become short', () => {
  expect(read('name;type;value\ninfo.example.com.;TXT;"a;b ""c"""')).toBe(
    '\n; domain-service record "info" 1800 TXT "a;b \\"c\\""',
  )
})

test.each([
  'www 300 IN A 192.0.2.1',
  '; a comment; with a semicolon',
  '$ORIGIN example.com.\nwww\t1800\tIN\tA\t192.0.2.1',
  '@ IN TXT "a, b, c"',
])('a zone file stays as it is: %s', (text) => {
  expect(read(text)).toBe(text)
})
