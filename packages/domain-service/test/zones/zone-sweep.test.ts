import { expect, test } from 'vitest'
import { FakeClock } from '../support/fake-clock.ts'
import { start, www } from '../support/start.ts'

const domains = ['a.com', 'b.com', 'c.com'].map((name) => ({ name, hosts: [www] }))
const getHosts = 'dns.gethosts'

test('a sweep reads each zone once in its interval, at most a sixth of the readers in a minute', async () => {
  const clock = new FakeClock()
  const env = { DRIFT_INTERVAL_S: '3600', REGISTRAR_RATE: '20/minute,700/hour,8000/day' }
  await using service = await start({ domains, clock, env })
  await service.call('GET', '/api/domains')
  const sweepState = async () =>
    JSON.parse((await service.call('GET', '/api/registrar')).text).sweep
  const reads = () => service.commands().filter((each) => each === getHosts).length
  /** Moves the clock until so many zones were read. @returns how long that took. */
  const advanceTo = async (count: number) => {
    const from = clock.now()
    const step = async () => {
      await clock.advance(5_000)
      return reads()
    }
    await expect.poll(step).toBe(count)
    return clock.now() - from
  }

  await advanceTo(1)
  const begun = await sweepState()
  const tookMs = await advanceTo(3)
  await expect.poll(async () => (await sweepState()).seen).toBe(3)
  await clock.advance(600_000)
  const readsAfter = reads()
  await service.sandbox.setZone('b.com', { hosts: [{ ...www, name: 'panel' }] })
  const found = async () =>
    (await service.call('GET', '/api/changes?domain=b.com')).body.change_list ?? []
  await expect
    .poll(async () => {
      await clock.advance(61_000)
      return (await found()).length
    })
    .toBe(1)

  expect(begun).toMatchObject({ interval_s: 3600, is_active: true, domains: 3, seen: 1 })
  expect(begun.oldest_seen_at).toBeNull()
  expect(tookMs).toBeGreaterThan(115_000)
  expect(readsAfter).toBe(3)
  expect(await found()).toMatchObject([{ by: null, reason: 'outside', domain: 'b.com' }])
})
