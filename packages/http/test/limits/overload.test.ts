import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createMetrics } from '../../src/index.ts'
import { start } from '../support/start.ts'

/** Keeps the event loop busy, each turn for longer than it may be late, until it is told to stop. */
function overload() {
  let isOver = false
  const run = async () => {
    while (!isOver) {
      for (const end = performance.now() + 60; performance.now() < end; );
      await nextTurn()
    }
  }
  const running = run()
  return {
    stop: () => {
      isOver = true
      return running
    },
  }
}

test('who asks too much of it is told to come back, while machines still learn how it is', async () => {
  const metrics = { registry: createMetrics(), token: 'metrics-token-1234' }
  await using service = await start({ connections: { loopDelay: 20 }, metrics })
  const statusOf = async (path: string) =>
    (await fetch(service.url + path, { headers: { authorization: 'Bearer metrics-token-1234' } }))
      .status

  const load = overload()
  await expect.poll(() => statusOf('/things'), { timeout: 20_000 }).toBe(503)
  const refused = await fetch(`${service.url}/things`)
  const told = [await statusOf('/health'), await statusOf('/metrics')]
  await load.stop()

  expect(refused.status).toBe(503)
  expect(refused.headers.get('retry-after')).toBe('2')
  expect(await refused.json()).toMatchObject({ code: 'unavailable' })
  expect(told).toEqual([200, 200])
  await expect.poll(() => statusOf('/things'), { timeout: 20_000 }).toBe(200)
})
