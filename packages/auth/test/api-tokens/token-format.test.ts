import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createToken, digestOf, prefixOf } from '../../src/api-tokens/token-format.ts'

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const numberOf = (text: string) => [...text].reduce((value, digit) => value * 62 + digits.indexOf(digit), 0)

test('a token is a prefix, 32 random digits, and the CRC-32 of both', () => {
  const token = createToken('ds_')

  expect(token).toMatch(/^ds_[0-9A-Za-z]{38}$/)
  expect(numberOf(token.slice(-6))).toBe(crc32(token.slice(0, -6)))
  expect(prefixOf(token)).toBe('ds_')
})

test('a short checksum is padded with zeros', () => {
  const tokens = Array.from({ length: 200 }, () => createToken('ss_'))

  expect(new Set(tokens.map(prefixOf))).toEqual(new Set(['ss_']))
  expect(new Set(tokens).size).toBe(200)
})

test('a typo in any place is rejected', () => {
  const token = createToken('ds_')
  fc.assert(
    fc.property(fc.integer({ min: 3, max: 40 }), fc.constantFrom(...digits), (at, digit) => {
      fc.pre(token[at] !== digit)
      expect(prefixOf(token.slice(0, at) + digit + token.slice(at + 1))).toBeUndefined()
    }),
  )
})

test.each(['', 'ds_', `${createToken('ds_')}x`, ` ${createToken('ds_')}`, 'a.b.c'])('%j is not a token', (text) => {
  expect(prefixOf(text)).toBeUndefined()
})

test('the digest is SHA-256 in hex', () => {
  expect(digestOf('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
})
