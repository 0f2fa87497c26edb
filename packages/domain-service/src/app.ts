import { auth } from '@domains-and-files/auth'
import { serveEvents } from '@domains-and-files/events'
import { type App, createApp } from '@domains-and-files/http'
import packageJson from '../package.json' with { type: 'json' }
import { registerIntegrations } from './integrations/integrations.ts'
import { registerMetrics } from './metrics.ts'
import type { RegistrarClient } from './registrar/client.ts'
import { eventSource, registerChangeRoutes } from './routes/changes.ts'
import { registerDomainRoutes } from './routes/domains.ts'
import { registerHistoryRoutes } from './routes/history.ts'
import { registerRegistrarRoutes } from './routes/registrar.ts'
import { registerRecordRoutes } from './routes/zone/records.ts'
import { registerRrsetRoutes } from './routes/zone/rrsets.ts'
import { registerRecordSearch } from './routes/zone/search-records.ts'
import { registerZoneFileRoutes, registerZoneRoutes } from './routes/zone/zone.ts'
import { addRateLimitHeaders, limitToDomains } from './routes/zone/zone-request.ts'
import type { Dependencies } from './storage.ts'

/** The domain service's app with all routes, not listening yet. */
export function buildApp(parts: Dependencies): Promise<App> {
  const { config, log, metrics, registrar, storage } = parts
  registerMetrics(parts)
  return createApp(
    {
      about: { title: 'Domain service', version: packageJson.version, description, tags },
      ...config,
      log,
      metrics,
      alarmingCodes: ['write_not_confirmed', 'registrar_auth'],
      health: () => ({
        checks: {
          // Without it writes are refused and calls are counted in memory only, while reads go on.
          database: { status: storage.database.isAvailable ? ('ok' as const) : ('unavailable' as const) },
          registrar: checkRegistrar(registrar, config.account.registrar),
          ...parts.auth.checks(),
        },
      }),
    },
    async (app) => {
      await app.register(auth, parts.auth)
      limitToDomains(app)
      addRateLimitHeaders(app, registrar)
      registerDomainRoutes(app, parts)
      registerZoneRoutes(app, parts)
      registerRecordRoutes(app, parts)
      registerRrsetRoutes(app, parts)
      registerRecordSearch(app, parts)
      await registerZoneFileRoutes(app, parts)
      registerHistoryRoutes(app, parts)
      registerChangeRoutes(app, parts)
      serveEvents(app, { ...parts, source: eventSource })
      registerRegistrarRoutes(app, parts)
      await registerIntegrations(app, parts)
    },
  )
}

// From the last calls: the registrar is not called.
function checkRegistrar(registrar: RegistrarClient, name: string) {
  const { breaker, last_failure: last } = registrar.state()
  if (breaker === 'closed' && !last) return { status: 'ok' as const, registrar: name }
  return { status: 'degraded' as const, registrar: name, breaker, last_failure: last?.code, failed_at: last?.at }
}

const description = `Domains and their DNS records at a registrar, safe to share.

**Try it here**: log in with \`POST /api/auth/login\`; this page then sends the token.

- Every error is \`application/problem+json\` (RFC 9457) with a stable \`code\`.
- A write reads the zone, applies the edit, sends the whole zone, reads it back and compares. \`If-Match\` writes only what you have seen, \`dry_run=true\` previews, \`Prefer: respond-async\` does not wait, and the history undoes.
- Every response has an \`x-request-id\`, which is in the log too; send your own to find your requests there.`

const tags = [
  { name: 'auth', description: 'Log in; who am I?' },
  { name: 'domains', description: 'The domains of the account' },
  { name: 'records', description: 'The DNS records of a domain' },
  { name: 'history', description: 'Who changed what, the zone before and after, restore and revert' },
  { name: 'events', description: 'What happens, for those who want to know' },
  { name: 'operations', description: 'For machines and operators' },
]
