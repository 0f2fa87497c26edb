import type { HashQueue } from '@domains-and-files/auth'
import {
  Histogram,
  type Registry,
  registerCounter,
  registerDiskGauges,
  registerGauge,
} from '@domains-and-files/http'
import type { Config } from './config.ts'
import type { RegistrarClient } from './registrar/client.ts'
import type { ZoneWriter } from './zones/zone-writer.ts'

// What an operator wants to know of this service. Labels come from short lists of ours: never a domain or a name.

/** The seconds of each call to the registrar, without the wait for the budget, by command and outcome. */
export const createCallHistogram = (registry: Registry) =>
  new Histogram({
    name: 'registrar_call_duration_seconds',
    help: 'Time that the registrar took, by command and outcome (ok, or the code of the failure)',
    labelNames: ['command', 'outcome'],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30],
    registers: [registry],
  })

interface MetricSources {
  config: Config
  metrics: Registry
  registrar: RegistrarClient
  zones: ZoneWriter
  hashes: HashQueue
}

export function registerMetrics({ config, metrics, registrar, zones, hashes }: MetricSources) {
  const windows = () => registrar.state().windows
  registerGauge(
    metrics,
    {
      name: 'registrar_calls_left',
      help: 'Calls that the registrar still allows',
      label: 'window',
    },
    () => Object.fromEntries(windows().map(({ window, left }) => [window, left])),
  )
  registerGauge(
    metrics,
    { name: 'registrar_calls_limit', help: 'Calls that it allows at all', label: 'window' },
    () => Object.fromEntries(windows().map(({ window, limit }) => [window, limit])),
  )
  registerGauge(
    metrics,
    { name: 'registrar_calls_waiting', help: 'Calls that wait for a place in the budget' },
    () => registrar.state().waiting,
  )
  registerGauge(
    metrics,
    { name: 'registrar_circuit_state', help: '1 for the state that it is in', label: 'state' },
    () => ({ closed: 0, open: 0, half_open: 0, [registrar.state().breaker]: 1 }),
  )
  registerGauge(
    metrics,
    { name: 'zone_writes_waiting', help: 'Writes that wait for their round' },
    () => zones.waiting,
  )
  registerGauge(
    metrics,
    { name: 'auth_hashes_waiting', help: 'Logins that wait for their password to be hashed' },
    () => hashes.pendingCount,
  )
  registerDiskGauges(metrics, config.dataDir)
}

interface Counted {
  counts: { hit: number; miss: number; stale: number }
}

/** What the read caches had, each by its name. */
export function registerCacheMetrics(metrics: Registry, caches: Record<string, Counted>) {
  const figures = {
    hit: ['domain_cache_hits_total', 'Reads that were answered from the cache'],
    miss: ['domain_cache_misses_total', 'Reads that the registrar was asked for'],
    stale: ['domain_cache_stale_total', 'Reads answered with an older value, as it failed'],
  } as const
  for (const [result, [name, help]] of Object.entries(figures)) {
    registerCounter(metrics, { name, help, label: 'cache' }, () =>
      Object.fromEntries(
        // The keys of `figures` are those of the counts.
        Object.entries(caches).map(([cache, { counts }]) => [
          cache,
          counts[result as keyof typeof counts],
        ]),
      ),
    )
  }
}
