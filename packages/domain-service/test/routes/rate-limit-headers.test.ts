import { expect, test } from 'vitest'
import { FakeClock } from '../support/fake-clock.ts'
import { realRate, start } from '../support/start.ts'

const zone = '/api/domains/example.com/dns/hosts'
const policy = '"minute";q=20;w=60, "hour";q=700;w=3600, "day";q=8000;w=86400'

test('answers of domain routes tell the limits, what is left of them, and when the next call is free', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock, env: { REGISTRAR_RATE: realRate } })

  const first = await service.call('GET', '/api/domains/example.com/dns/history')
  await service.call('GET', zone)
  await clock.advance(17_500)
  const cached = await service.call('GET', zone)

  expect(first.headers.get('ratelimit-policy')).toBe(policy)
  expect(first.headers.get('ratelimit')).toBe('"minute";r=20;t=0, "hour";r=700;t=0, "day";r=8000;t=0')
  expect(cached.headers.get('ratelimit')).toBe('"minute";r=19;t=43, "hour";r=699;t=3583, "day";r=7999;t=86383')
})

test.each([
  ['GET', '/api/domains', {}, 200],
  ['GET', '/api/domains/example.com/info', {}, 200],
  ['POST', `${zone}/A`, { user: 'viewer', body: {} }, 403],
  ['PUT', zone, { body: {} }, 400],
  ['GET', '/api/domains/unknown.com/dns/hosts', {}, 404],
  ['GET', zone, { headers: { authorization: 'Bearer wrong' } }, 401],
] as const)('%s %s has them too', async (method, path, options, status) => {
  await using service = await start()

  const answer = await service.call(method, path, options)

  expect(answer.status).toBe(status)
  expect(answer.headers.get('ratelimit-policy')).toBe('"minute";q=100000;w=60')
  expect(answer.headers.get('ratelimit')).toMatch(/^"minute";r=\d+;t=\d+$/)
})

test('other answers have none', async () => {
  await using service = await start()

  const { headers } = await service.call('GET', '/health')

  expect([...headers.keys()].filter((name) => name.startsWith('ratelimit'))).toEqual([])
})
