import { expect, test } from 'vitest'
import { readDomain } from '../../src/dns/domain-name.ts'

test.each([
  ['example.com', 'example', 'com'],
  ['EXAMPLE.Com.', 'example', 'com'],
  ['example.co.uk', 'example', 'co.uk'],
  ['shop.it.com', 'shop', 'it.com'],
  ['www.za.com', 'www', 'za.com'],
  ['m\u00fcnchen.de', 'xn--mnchen-3ya', 'de'],
  ['xn--mnchen-3ya.de', 'xn--mnchen-3ya', 'de'],
  ['\u4f8b\u3048\u3002jp', 'xn--r8jz45g', 'jp'],
  ['xn--i-7iq.ws', 'xn--i-7iq', 'ws'],
  ['foxn--bar.com', 'foxn--bar', 'com'],
  ['made-up.sandbox', 'made-up', 'sandbox'],
])('%s is %s . %s', (text, sld, tld) => {
  expect(readDomain(text)).toEqual({ name: `${sld}.${tld}`, sld, tld })
})

test.each([
  ['sub.example.com', /subdomain.*example\.com/],
  ['a.b.example.co.uk', /subdomain.*example\.co\.uk/],
  ['co.uk', /public suffix/],
  ['it.com', /public suffix/],
  ['github.io', /public suffix/],
  ['com', /domain name/],
  ['', /domain name/],
  ['.', /domain name/],
  ['.example.com', /domain name/],
  ['example..com', /domain name/],
  ['example.com..', /domain name/],
  ['do_main.ua', /domain name/],
  ['-a.com', /domain name/],
  ['a-.com', /domain name/],
  ['*.com', /domain name/],
  ['http://domain.ua', /domain name/],
  ['domain.ua/', /domain name/],
  ['example.com/other', /domain name/],
  ['ex%61mple.com', /domain name/],
  ['exa mple.com', /domain name/],
  ['example.com\n', /domain name/],
  ['m\u00fcnchen.de/x', /domain name/],
  ['xn--a.com', /domain name/],
  ['xn--.com', /domain name/],
  ['127.0.0.1', /address/],
  ['1.2', /address/],
  ['\uff11.de', /domain name/],
  ['example\u0661.com', /domain name/],
  ['example\u2488com', /domain name/],
  [`${'a'.repeat(64)}.com`, /domain name/],
  [`${'a.'.repeat(140)}com`, /domain name/],
])('%j is refused', (text, reason) => {
  expect(readDomain(text)).toMatch(reason)
})

test('a name that is read again gives the same, however many were read before', () => {
  const names = Array.from({ length: 1500 }, (_, at) => `Many-${at}.example.com`)
  const read = () => ['example.com', 'co.uk', ...names].map(readDomain)

  const first = read()

  expect(read()).toEqual(first)
  expect(readDomain('example.com')).toBe(readDomain('example.com'))
  expect(readDomain(`${'a'.repeat(300)}.com`)).toMatch(/domain name/)
})
