import { type Metrics, registerCounters, registerGauges, registerStorageGauges } from '@domains-and-files/http'
import type { Dependencies } from './storage.ts'

// Metrics of this service. Label values come from short fixed lists, never from domains or usernames.

/** Seconds of each call to the registrar by command and outcome, without the wait for a slot. */
export const createCallHistogram = (metrics: Metrics | undefined) =>
  metrics &&
  new metrics.client.Histogram({
    name: 'registrar_call_duration_seconds',
    help: 'Duration of calls to the registrar by command and outcome (ok, or the error code)',
    labelNames: ['command', 'outcome'],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30],
    registers: [metrics.registry],
  })

export function registerMetrics(parts: Dependencies) {
  const { config, metrics, zones, ledger, auth, domains } = parts
  registerRegistrarMetrics(parts)
  registerCacheMetrics(parts)
  const queued = 'Asynchronous changes that wait for their turn (queued), or for an admin after a restore (held)'
  const expiring = 'Domains that expire within so many days'
  const byDays = () => Object.fromEntries([30, 14, 3].map((days) => [days, domains.countExpiring(days)]))
  registerGauges(metrics, {
    domain_list_expiring: [expiring, byDays, 'days'],
    zone_writes_waiting: ['Zone writes queued for a batch', () => zones.queue.waiting],
    changes_queued: [queued, async () => ({ ...(await ledger.countQueued()) }), 'state'],
    auth_hashes_waiting: ['Logins queued for password hashing', () => auth.hashes.pendingCount],
  })
  const late = 'Late writes that overwrote newer changes and were repaired'
  const outside = 'Changes that were not made through this service, and were found by reading'
  registerCounters(metrics, {
    zone_late_writes_total: [late, () => zones.found.lateWrites],
    zone_changes_outside_total: [outside, () => zones.found.outsideChanges],
  })
  registerStorageGauges(metrics, config)
}

function registerRegistrarMetrics({ metrics, registrar }: Dependencies) {
  const { quota } = registrar
  const byWindow = (figure: 'left' | 'limit') => () =>
    Object.fromEntries(quota.windows.state(quota.now()).map((each) => [each.window, each[figure]]))
  const left = 'Calls left in each window of the rate limit'
  const limit = 'Calls allowed in each window of the rate limit'
  const waiting = 'Calls and write rounds that wait for slots of the rate limit'
  const states = () => ({ closed: 0, open: 0, half_open: 0, [registrar.state().breaker]: 1 })
  const present = '1 for the present state of the circuit breaker'
  registerGauges(metrics, {
    registrar_calls_left: [left, byWindow('left'), 'window'],
    registrar_calls_limit: [limit, byWindow('limit'), 'window'],
    registrar_calls_waiting: [waiting, () => quota.waiting],
    registrar_circuit_state: [present, states, 'state'],
  })
}

/** Hits, misses and stale answers of each read cache, by its name. */
function registerCacheMetrics({ metrics, infos, nameservers, zones }: Dependencies) {
  const byCache = (result: 'hit' | 'miss' | 'stale') => () =>
    Object.fromEntries(
      Object.entries({ infos, nameservers, zones }).map(([name, { counts }]) => [name, counts[result]]),
    )
  const stale = 'Reads served stale because the registrar failed'
  registerCounters(metrics, {
    domain_cache_hits_total: ['Reads served from the cache', byCache('hit'), 'cache'],
    domain_cache_misses_total: ['Reads that called the registrar', byCache('miss'), 'cache'],
    domain_cache_stale_total: [stale, byCache('stale'), 'cache'],
  })
}
