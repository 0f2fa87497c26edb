import { expect, test } from 'vitest'
import { isOfType, type ListQuery, sortDomains } from '../../src/protocol/list-query.ts'
import type { Listed } from '../../src/protocol/responses.ts'

const entry = (name: string, fields: Partial<Listed> = {}): Listed => ({
  name,
  created_on: null,
  expires_on: null,
  is_expired: null,
  ...fields,
})

const domains = [
  entry('c.com', { created_on: '2021-01-01', expires_on: '2028-01-01' }),
  entry('a.com', { created_on: '2022-01-01', expires_on: '2027-01-01' }),
  entry('d.com'),
  entry('b.com', { created_on: '2022-01-01', expires_on: '2029-01-01' }),
]

test.each<[ListQuery['sortBy'], string]>([
  ['NAME', 'a b c d'],
  ['NAME_DESC', 'd c b a'],
  ['EXPIREDATE', 'a c b d'],
  ['EXPIREDATE_DESC', 'b c a d'],
  ['CREATEDATE', 'c a b d'],
  ['CREATEDATE_DESC', 'a b c d'],
])('sorted by %s: %s, unknown dates last', (sortBy, expected) => {
  const names = sortDomains(domains, sortBy).map(({ name }) => name.replace('.com', ''))

  expect(names.join(' ')).toBe(expected)
})

test.each([
  ['2027-06-30', null, 'EXPIRING'],
  ['2027-07-15', null, 'EXPIRING'],
  ['2027-07-30', null, 'EXPIRING'],
  ['2027-07-31', null, 'neither'],
  ['2027-06-29', null, 'EXPIRED'],
  ['2027-07-15', true, 'EXPIRED'],
  ['2027-06-29', false, 'EXPIRING'],
  [null, null, 'neither'],
  [null, true, 'EXPIRED'],
])('a domain that expires on %s (the registrar: %s) is %s', (expires_on, is_expired, expected) => {
  const now = Date.parse('2027-06-30T15:00:00Z')
  const domain = entry('a.com', { expires_on, is_expired })

  const types = (['EXPIRING', 'EXPIRED'] as const).filter((type) => isOfType(domain, type, now))
  expect(types.join() || 'neither').toBe(expected)
  expect(isOfType(domain, 'ALL', now)).toBe(true)
})
