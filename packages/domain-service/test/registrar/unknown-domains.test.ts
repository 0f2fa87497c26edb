import { expect, test } from 'vitest'
import { UnknownDomains } from '../../src/registrar/unknown-domains.ts'
import { FakeClock } from '../support/fake-clock.ts'

test('a name is remembered for 60 s, for its command only', async () => {
  const clock = new FakeClock()
  const unknown = new UnknownDomains(clock)
  unknown.add('getHosts', 'example.com')

  await clock.advance(59_999)
  expect(unknown.has('getHosts', 'example.com')).toBe(true)
  expect(unknown.has('getInfo', 'example.com')).toBe(false)
  await clock.advance(1)
  expect(unknown.has('getHosts', 'example.com')).toBe(false)
})

test('the oldest of more than 10,000 names is forgotten', () => {
  const unknown = new UnknownDomains(new FakeClock())
  for (let name = 0; name <= 10_000; name++) unknown.add('getHosts', `${name}.com`)

  expect(unknown.has('getHosts', '0.com')).toBe(false)
  expect(unknown.has('getHosts', '1.com')).toBe(true)
  expect(unknown.has('getHosts', '10000.com')).toBe(true)
})
