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
  registerRegistrarMetrics(sources)
  registerDomainListMetrics(sources)
  registerGauge(
    metrics,
    { name: 'zone_writes_waiting', help: 'Zone writes queued for a batch' },
    () => zones.waiting,
  )
  registerCounter(
    metrics,
    {
      name: 'zone_late_writes_total',
      help: 'Late writes that overwrote newer changes and were repaired',
    },
    () => zones.lateWrites,
  )
  registerCounter(
    metrics,
    {
      name: 'zone_changes_outside_total',
      help: 'Changes that were not made through this service, and were found by reading',
    },
    () => zones.outsideChanges,
  )
  registerGauge(
    metrics,
    {
      name: 'changes_queued',
      help: 'Asynchronous changes that wait for their turn (queued), or for an admin after a restore (held)',
      label: 'state',
    },
    async () => ({ ...(await ledger.countQueued()) }),
  )
  registerGauge(
    metrics,
    { name: 'auth_hashes_waiting', help: 'Logins queued for password hashing' },
    () => hashes.pendingCount,
  )
  registerStorageGauges(metrics, config)
}

function registerRegistrarMetrics({ metrics, registrar }: MetricSources) {
  registerGauge(
    metrics,
    {
      name: 'registrar_calls_left',
      help: 'Calls left in each window of the rate limit',
      label: 'window',
    },
    () => Object.fromEntries(registrar.quota.state().map(({ window, left }) => [window, left])),
  )
  registerGauge(
    metrics,
    {
      name: 'registrar_calls_limit',
      help: 'Calls allowed in each window of the rate limit',
      label: 'window',
    },
    () => Object.fromEntries(registrar.quota.state().map(({ window, limit }) => [window, limit])),
  )
  registerGauge(
    metrics,
    {
      name: 'registrar_calls_waiting',
      help: 'Calls and write rounds that wait for slots of the rate limit',
    },
    () => registrar.state().waiting,
  )
  registerGauge(
    metrics,
    {
      name: 'registrar_circuit_state',
      help: '1 for the present state of the circuit breaker',
      label: 'state',
    },
    () => ({ closed: 0, open: 0, half_open: 0, [registrar.state().breaker]: 1 }),
  )
}

function registerDomainListMetrics({ metrics, domains }: MetricSources) {
  registerGauge(
    metrics,
    { name: 'domain_list_domains', help: "Domains in the local copy of the account's list" },
    () => domains.state().domains ?? 0,
  )
  registerGauge(
    metrics,
    {
      name: 'domain_list_age_seconds',
      help: "Age of the local copy of the account's list; 0 before the first reading",
    },
    () => domains.state().ageMs / 1000,
  )
  registerGauge(
    metrics,
    {
      name: 'domain_list_expiring',
      help: 'Domains of the local copy that expire within so many days',
      label: 'days',
    },
    () => Object.fromEntries([30, 14, 3].map((days) => [days, domains.countExpiring(days)])),
  )
}

interface CacheCounts {
  counts: { hit: number; miss: number; stale: number }
}

/** Hits, misses and stale answers of each read cache, by its name. */
export function registerCacheMetrics(
  metrics: Metrics | undefined,
  caches: Record<string, CacheCounts>,
) {
  const results = {
    hit: ['domain_cache_hits_total', 'Reads served from the cache'],
    miss: ['domain_cache_misses_total', 'Reads that called the registrar'],
    stale: ['domain_cache_stale_total', 'Reads served stale because the registrar failed'],
  } as const
  for (const [result, [name, help]] of Object.entries(results)) {
    registerCounter(metrics, { name, help, label: 'cache' }, () =>
      Object.fromEntries(
        Object.entries(caches).map(([cache, { counts }]) => [
          cache,
          counts[result as keyof typeof counts], // The keys of `results` are those of the counts.
        ]),
      ),
    )
  }
}
