import { expect, test } from 'vitest'
import { AttemptLimit } from '../../src/index.ts'

const tooMany = (seconds: number) => expect.objectContaining({ status: 429, headers: { 'retry-after': `${seconds}` } })

test('failures of one network are limited for a minute, those of others are not', () => {
  const clock = { ms: 5_000, now: () => clock.ms }
  const limit = new AttemptLimit(2, clock)
  const fails = (address: string) => {
    limit.check(address)
    limit.add(address)
  }

  fails('192.0.2.1')
  clock.ms += 20_000
  fails('::ffff:192.0.2.1')
  expect(() => fails('192.0.2.1')).toThrow(tooMany(40))
  fails('192.0.2.2')
  clock.ms += 40_000
  fails('192.0.2.1')
})

test('in its last millisecond a limit lasts a second, not none', () => {
  const clock = { ms: 5_000, now: () => clock.ms }
  const limit = new AttemptLimit(1, clock)
  limit.add('192.0.2.1')

  clock.ms += 59_999
  expect(() => limit.check('192.0.2.1')).toThrow(tooMany(1))
  clock.ms += 1
  limit.check('192.0.2.1')
})

test('addresses of one IPv6 network count together', () => {
  const limit = new AttemptLimit(1, { now: () => 1 })

  limit.add('2001:db8::1')

  expect(() => limit.check('2001:db8:0:0:ffff::2')).toThrow(tooMany(60))
  limit.check('2001:db8:0:1::1')
})

test('the networks that are remembered are bounded', () => {
  const limit = new AttemptLimit(1, { now: () => 1 })

  for (let count = 0; count <= 10_000; count += 1) limit.add(`10.0.${count >> 8}.${count & 255}`)

  limit.check('10.0.0.0')
  expect(() => limit.check('10.0.0.1')).toThrow(tooMany(60))
})
