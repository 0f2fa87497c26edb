import { expect, test } from 'vitest'
import { toUnicode } from '../../../web/ui/unicode.js'

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
