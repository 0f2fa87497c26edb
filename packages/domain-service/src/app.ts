import { auth, type Users } from '@house/auth'
import { type App, createApp, Gauge, HttpError, type Logger, type Registry } from '@house/http'
import type { Database } from 'better-sqlite3'
import packageJson from '../package.json' with { type: 'json' }
import { serveAccount } from './account.ts'
import type { Config } from './config.ts'
import { serveDomains } from './domains.ts'
import { serveHistory } from './history.ts'
import { serveHosts } from './hosts.ts'
import type { Journal } from './journal.ts'
import type { Registrar } from './registrar.ts'
import type { Zones } from './zones.ts'

export interface Parts {
  config: Config
  secret: string
  users: Users
  database: Database
  registrar: Registrar
  journal: Journal
  zones: Zones
  metrics: Registry
  log: Logger
}

/** The domain service's app, all its routes in place, not yet listening. */
export function buildApp(parts: Parts): Promise<App> {
  const { config, registrar, journal, zones, users, secret } = parts
  observe(parts)
  return createApp(
    {
      about: {
        title: 'Domain service',
        version: packageJson.version,
        description: 'Domains and their DNS records, held at a registrar, safe to share.',
      },
      log: parts.log,
      trustProxy: config.trustProxy,
      corsOrigins: config.corsOrigins,
      connections: config.connections,
      metrics: { registry: parts.metrics, token: config.metricsToken },
      bodyLimit: 4 * 1024 * 1024, // 150 records of 2500 characters, however JSON writes them.
      health: () => ({
        checks: { database: checkDatabase(parts.database), registrar: checkRegistrar(registrar) },
      }),
    },
    async (app) => {
      await app.register(auth, {
        secret,
        audience: 'domain-service',
        tokenTtl: config.auth.tokenTtl,
        users,
        refuse,
      })
      serveDomains(app, registrar, config.cacheTtl)
      serveHosts(app, zones)
      serveHistory(app, journal, zones)
      serveAccount(app, registrar)
    },
  )
}

const refuse = (
  status: number,
  code: string,
  detail: string,
  headers: Record<string, string> = {},
) => new HttpError(status, code, detail, { headers })

function checkDatabase(database: Database) {
  try {
    database.prepare('select 1').get()
    return { status: 'ok' as const }
  } catch {
    return { status: 'unavailable' as const }
  }
}

// The registrar is not asked: what the last calls told is known.
function checkRegistrar(registrar: Registrar) {
  const { breaker, lastFailure } = registrar.state()
  if (breaker === 'closed' && !lastFailure) return { status: 'ok' as const }
  const failure = lastFailure
    ? { last_failure: lastFailure.code, failed_at: lastFailure.at.toISOString() }
    : {}
  return { status: 'degraded' as const, breaker, ...failure }
}

function observe({ metrics, registrar, zones }: Parts) {
  const registers = [metrics]
  new Gauge({
    name: 'registrar_calls_left',
    help: 'Calls that the registrar still allows, by window',
    labelNames: ['window'],
    registers,
    collect() {
      for (const { window, left } of registrar.state().budget) this.set({ window }, left)
    },
  })
  new Gauge({
    name: 'zone_writes_waiting',
    help: 'Writes that wait for their round',
    registers,
    collect() {
      this.set(zones.waiting)
    },
  })
  new Gauge({
    name: 'zone_cache_reads_total',
    help: 'Reads of zones by what the cache had',
    labelNames: ['result'],
    registers,
    collect() {
      for (const [result, count] of Object.entries(zones.cacheCounts)) this.set({ result }, count)
    },
  })
}
