import { syncBuiltinESMExports } from 'node:module'
import perfHooks from 'node:perf_hooks'
import { setImmediate as nextIteration } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createMetrics } from '../../src/index.ts'
import { start } from '../support/start.ts'

/** Blocks each event-loop iteration for longer than the permitted lag, until stopped. */
function overload() {
  let isOver = false
  const run = async () => {
    while (!isOver) {
      for (const end = performance.now() + 60; performance.now() < end; );
      await nextIteration()
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

test('a start that takes long does not make the first requests get 503', async () => {
  const sampled = Promise.withResolvers<void>()
  let isMeasuring = false
  // Instead of a real delay, to which a busy machine would add its own.
  const delays = {
    mean: 0,
    enable: () => {
      isMeasuring = true
    },
    disable: () => undefined,
    reset: sampled.resolve,
  }
  const monitor = vi.spyOn(perfHooks, 'monitorEventLoopDelay').mockReturnValue(delays as never)
  syncBuiltinESMExports()
  onTestFinished(() => {
    monitor.mockRestore()
    syncBuiltinESMExports()
  })
  await using service = await start({ maxLoopDelayMs: 20 }, (app) => {
    app.addHook('onReady', async () => {
      if (isMeasuring) delays.mean = 1e9
    })
  })
  await sampled.promise

  const statuses = await Promise.all(
    Array.from({ length: 5 }, async () => (await fetch(`${service.url}/things`)).status),
  )

  expect(monitor).toHaveBeenCalledOnce()
  expect(statuses).toEqual([200, 200, 200, 200, 200])
})

test('while the event loop lags requests get 503, except /health and /metrics', async () => {
  const metrics = await createMetrics('metrics-token-1234')
  await using service = await start({ maxLoopDelayMs: 20, metrics })
  const statusOf = async (path: string) =>
    (await fetch(service.url + path, { headers: { authorization: 'Bearer metrics-token-1234' } })).status

  const load = overload()
  await expect.poll(() => statusOf('/things')).toBe(503)
  const refused = await fetch(`${service.url}/things`)
  const exempt = [await statusOf('/health'), await statusOf('/metrics')]
  await load.stop()

  expect(refused.status).toBe(503)
  expect(refused.headers.get('retry-after')).toBe('2')
  expect(await refused.json()).toMatchObject({ code: 'unavailable' })
  expect(exempt).toEqual([200, 200])
  await expect.poll(() => statusOf('/things')).toBe(200)
})
