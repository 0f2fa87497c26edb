import { expect, test } from 'vitest'
import {
  byHostName,
  daysUntil,
  formatAge,
  formatBytes,
  formatCount,
  formatDuration,
  formatTtl,
  toUnicode,
} from '../../../web/ui/format.js'

test.each([
  [0, '0 bytes'],
  [1, '1 byte'],
  [999, '999 bytes'],
  [1536, '1.5 KB'],
  [1024 * 1024 * 250, '250 MB'],
  [5 * 1024 ** 4, '5.0 TB'],
])('%d bytes are shown as %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text)
})

test('counts have separators and the right number', () => {
  expect(formatCount(1, 'file')).toBe('1 file')
  expect(formatCount(12_345, 'file')).toBe('12,345 files')
})

test.each([
  [1799, 'automatic'],
  [1800, '30 min'],
  [3600, '1 h'],
  [61, '61 s'],
])('a TTL of %d is shown as %s', (ttl, text) => {
  expect(formatTtl(ttl)).toBe(text)
})

test('ages, durations and days left are rounded to what matters', () => {
  const now = Date.parse('2027-01-15T12:00:00Z')

  expect(formatAge('2027-01-15T11:59:40Z', now)).toBe('just now')
  expect(formatAge('2027-01-15T09:00:00Z', now)).toBe('3 hours ago')
  expect(formatDuration(0.2)).toBe('1 s')
  expect(formatDuration(600)).toBe('10 min')
  expect(daysUntil('2027-01-17', now)).toBe(2)
})

test.each([
  ['xn--mnchen-3ya.example', 'münchen.example'],
  ['www.xn--wgv71a119e.jp', 'www.日本語.jp'],
  ['xn--80aafi6cg.com', 'правда.com'],
  ['a.xn--a--hia.de', 'a.a-ß.de'],
  ['plain-name.example', 'plain-name.example'],
  ['xn--99999999999.example', 'xn--99999999999.example'],
])('%s is written as %s', (name, written) => {
  expect(toUnicode(name)).toBe(written)
})

test('records are listed by name, those of the domain itself first', () => {
  const names = ['www', 'part 10', '_dmarc', '@', 'part 2', '*']
  const sorted = names.map((name) => ({ name })).toSorted(byHostName)
  expect(sorted.map(({ name }) => name)).toEqual(['@', '_dmarc', '*', 'part 2', 'part 10', 'www'])
})
