import { expect, it } from 'vitest'
import { createMetrics, registerCounters, registerDatabaseMetrics } from '../../src/index.ts'

it('measures nothing without a token, so that there is no /metrics', async () => {
  expect(await createMetrics(undefined)).toBeUndefined()
})

it('services of one process share the metrics of the process, and have the others for themselves', async () => {
  const [one, other] = [await createMetrics('one-token-1234'), await createMetrics('other-token-12')]
  registerCounters(one, { calls_total: ['Calls', () => 1] })

  const lag = 'nodejs_eventloop_lag_seconds'
  expect(one?.registry.getSingleMetric(lag)).toBeDefined()
  expect(one?.registry.getSingleMetric(lag)).toBe(other?.registry.getSingleMetric(lag))
  expect(await one?.registry.metrics()).toContain('calls_total 1')
  expect(await other?.registry.metrics()).not.toContain('calls_total')
})

it('shows the connections in use, idle and waited for, and whether the database answers', async () => {
  const metrics = await createMetrics('metrics-token-1234')
  registerDatabaseMetrics(metrics, {
    isAvailable: false,
    pool: { total: 10, idle: 3, waiting: 5 },
  })

  const lines = (await metrics?.registry.metrics())?.split('\n').filter((line) => /^database_/.test(line))

  expect(lines).toEqual([
    'database_available 0',
    'database_connections{state="idle"} 3',
    'database_connections{state="used"} 7',
    'database_connections_waiting 5',
  ])
})

it('shows each of two scrapes at the same time what a counter counts, once', async () => {
  const metrics = await createMetrics('metrics-token-1234')
  registerCounters(metrics, { calls_total: ['Calls', () => 5] })

  const scrapes = await Promise.all([metrics?.registry.metrics(), metrics?.registry.metrics()])

  for (const text of scrapes) expect(text).toContain('\ncalls_total 5\n')
})
