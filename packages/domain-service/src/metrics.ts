import type { HashQueue } from '@domains-and-files/auth'
import {
  createHistogram,
  type Metrics,
  registerCounter,
  registerGauge,
  registerStorageGauges,
} from '@domains-and-files/http'
import type { Config } from './config.ts'
import type { DomainList } from './domain-list/domain-list.ts'
import type { Ledger } from './ledger/ledger.ts'
import type { RegistrarClient } from './registrar/client.ts'
import type { ZoneWriter } from './zones/zone-writer.ts'

// Metrics of this service. Label values come from short fixed lists, never from domains or usernames.

/** Seconds of each call to the registrar by command and outcome, without the wait for a slot. */
export const createCallHistogram = (metrics: Metrics | undefined) =>
  createHistogram(metrics, {
    name: 'registrar_call_duration_seconds',
    help: 'Duration of calls to the registrar by command and outcome (ok, or the error code)',
    labelNames: ['command', 'outcome'],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30],
  })

type Read = Parameters<typeof registerGauge>[2]

/** Registers a figure by name, help, what is read, and the label of its series if it has several. */
const figures =
  (metrics: Metrics | undefined, register: typeof registerGauge) =>
  (name: string, help: string, read: Read, label?: string) =>
    register(metrics, { name, help, ...(label && { label }) }, read)

interface MetricSources {
  config: Config
  metrics: Metrics | undefined
  registrar: RegistrarClient
  domains: DomainList
  zones: ZoneWriter
  ledger: Ledger
  hashes: HashQueue
}

export function registerMetrics(sources: MetricSources) {
  const { config, metrics, zones, ledger, hashes } = sources
  const gauge = figures(metrics, registerGauge)
  const counter = figures(metrics, registerCounter)
  registerRegistrarMetrics(sources)
  registerDomainListMetrics(sources)
  gauge('zone_writes_waiting', 'Zone writes queued for a batch', () => zones.waiting)
  const late = 'Late writes that overwrote newer changes and were repaired'
  counter('zone_late_writes_total', late, () => zones.lateWrites)
  const outside = 'Changes that were not made through this service, and were found by reading'
  counter('zone_changes_outside_total', outside, () => zones.outsideChanges)
  const queued =
    'Asynchronous changes that wait for their turn (queued), or for an admin after a restore (held)'
  gauge('changes_queued', queued, async () => ({ ...(await ledger.countQueued()) }), 'state')
  gauge('auth_hashes_waiting', 'Logins queued for password hashing', () => hashes.pendingCount)
  registerStorageGauges(metrics, config)
}

function registerRegistrarMetrics({ metrics, registrar }: MetricSources) {
  const gauge = figures(metrics, registerGauge)
  const byWindow = (figure: 'left' | 'limit') => () =>
    Object.fromEntries(registrar.quota.state().map((each) => [each.window, each[figure]]))
  const left = 'Calls left in each window of the rate limit'
  gauge('registrar_calls_left', left, byWindow('left'), 'window')
  const limit = 'Calls allowed in each window of the rate limit'
  gauge('registrar_calls_limit', limit, byWindow('limit'), 'window')
  const waiting = 'Calls and write rounds that wait for slots of the rate limit'
  gauge('registrar_calls_waiting', waiting, () => registrar.quota.waiting)
  const states = () => ({ closed: 0, open: 0, half_open: 0, [registrar.state().breaker]: 1 })
  const present = '1 for the present state of the circuit breaker'
  gauge('registrar_circuit_state', present, states, 'state')
}

function registerDomainListMetrics({ metrics, domains }: MetricSources) {
  const gauge = figures(metrics, registerGauge)
  const count = "Domains in the local copy of the account's list"
  gauge('domain_list_domains', count, () => domains.state().domains ?? 0)
  const age = "Age of the local copy of the account's list; 0 before the first reading"
  gauge('domain_list_age_seconds', age, () => domains.state().ageMs / 1000)
  const expiring = 'Domains of the local copy that expire within so many days'
  const byDays = () =>
    Object.fromEntries([30, 14, 3].map((days) => [days, domains.countExpiring(days)]))
  gauge('domain_list_expiring', expiring, byDays, 'days')
}

interface CacheCounts {
  counts: { hit: number; miss: number; stale: number }
}

/** Hits, misses and stale answers of each read cache, by its name. */
export function registerCacheMetrics(
  metrics: Metrics | undefined,
  caches: Record<string, CacheCounts>,
) {
  const counter = figures(metrics, registerCounter)
  const byCache = (result: keyof CacheCounts['counts']) => () =>
    Object.fromEntries(Object.entries(caches).map(([name, { counts }]) => [name, counts[result]]))
  counter('domain_cache_hits_total', 'Reads served from the cache', byCache('hit'), 'cache')
  counter('domain_cache_misses_total', 'Reads that called the registrar', byCache('miss'), 'cache')
  const stale = 'Reads served stale because the registrar failed'
  counter('domain_cache_stale_total', stale, byCache('stale'), 'cache')
}
