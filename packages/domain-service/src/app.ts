import { type Auth, auth } from '@domains-and-files/auth'
import { type App, createApp, type Logger, type Registry } from '@domains-and-files/http'
import type { Database } from 'better-sqlite3'
import packageJson from '../package.json' with { type: 'json' }
import type { Config } from './config.ts'
import type { DomainList } from './domain-list/domain-list.ts'
import type { ChangeHistory } from './ledger/change-history.ts'
import { registerCacheMetrics, registerMetrics } from './metrics.ts'
import type { RegistrarClient } from './registrar/client.ts'
import { registerDomainRoutes } from './routes/domains.ts'
import { registerHistoryRoutes } from './routes/history.ts'
import { addRateLimitHeaders } from './routes/rate-limit-headers.ts'
import { registerRecordRoutes } from './routes/records.ts'
import { registerRegistrarRoutes } from './routes/registrar.ts'
import type { ZoneWriter } from './zones/zone-writer.ts'

export interface Dependencies {
  config: Config
  auth: Auth
  database: Database
  registrar: RegistrarClient
  domains: DomainList
  journal: ChangeHistory
  zones: ZoneWriter
  metrics: Registry
  log: Logger
}

/** The domain service's app, all its routes in place, not yet listening. */
export function buildApp(parts: Dependencies): Promise<App> {
  const { config, registrar, domains, journal, zones } = parts
  registerMetrics({ ...parts, hashes: parts.auth.hashes })
  return createApp(
    {
      about: {
        title: 'Domain service',
        version: packageJson.version,
        description,
        tags,
      },
      log: parts.log,
      trustProxy: config.trustProxy,
      corsOrigins: config.corsOrigins,
      connections: config.connections,
      metrics: {
        registry: parts.metrics,
        token: config.metricsToken,
        alarming: ['write_not_confirmed', 'registrar_auth'],
      },
      bodyLimit: 4 * 1024 * 1024, // 150 records of 2500 characters, however JSON writes them.
      health: () => ({
        checks: { database: checkDatabase(parts.database), registrar: checkRegistrar(registrar) },
      }),
    },
    async (app) => {
      await app.register(auth, parts.auth)
      addRateLimitHeaders(app, registrar)
      const caches = registerDomainRoutes(app, { registrar, domains, cacheTtlMs: config.cacheTtl })
      registerCacheMetrics(parts.metrics, { ...caches, zones })
      registerRecordRoutes(app, zones)
      registerHistoryRoutes(app, journal, zones)
      registerRegistrarRoutes(app, { registrar, domains })
    },
  )
}

function checkDatabase(database: Database) {
  try {
    database.prepare('select 1').get()
    return { status: 'ok' as const }
  } catch {
    return { status: 'unavailable' as const }
  }
}

// The registrar is not asked: what the last calls told is known.
function checkRegistrar(registrar: RegistrarClient) {
  const { breaker, lastFailure } = registrar.state()
  if (breaker === 'closed' && !lastFailure) return { status: 'ok' as const }
  const failure = lastFailure
    ? { last_failure: lastFailure.code, failed_at: lastFailure.at.toISOString() }
    : {}
  return { status: 'degraded' as const, breaker, ...failure }
}
const description = `Domains and their DNS records, held at a registrar, safe to share.

**Try it here**: log in with \`POST /api/auth/login\`; from then on this page sends the token that was answered.

- Every failure is \`application/problem+json\` (RFC 9457) with a stable \`code\`; the examples of each status are told as they are answered.
- A write reads the zone, changes what was asked, sends all of it, reads it back and compares. \`If-Match\` writes only what you have seen, \`dry_run=true\` only tells, and the history takes anything back.
- Every answer has an \`x-request-id\`, which the log has too; send one of your own to find your requests in it.`

const tags = [
  { name: 'auth', description: 'Log in; who am I?' },
  { name: 'domains', description: 'The domains of the account' },
  { name: 'records', description: 'The DNS records of a domain' },
  { name: 'history', description: 'Who changed what; the zone before and after, and back' },
  { name: 'operations', description: 'For machines and operators' },
]
