import type { ApiTokens } from '@domains-and-files/auth'
import type { App } from '@domains-and-files/http'
import type { DomainList } from '../domain-list/domain-list.ts'
import type { RegistrarClient } from '../registrar/client.ts'
import type { ResponseCache } from '../registrar/response-cache.ts'
import type { DomainInfo, Nameservers } from '../registrar/responses.ts'
import type { Stores, Surroundings } from '../storage.ts'
import type { ZoneWriter } from '../zones/zone-writer.ts'
import { AcmeChallenges } from './acme-challenges.ts'
import { registerAcmeDnsRoutes } from './acme-dns.ts'
import { registerDyndns2Routes } from './dyndns2.ts'
import { registerExternalDnsRoutes } from './external-dns.ts'
import { registerHttpreqRoutes } from './httpreq.ts'
import { takeAnyJson } from './json-protocol.ts'
import { registerRegistrarDoor } from './registrar-door/door.ts'
import { RetryingWriter } from './retrying-writer.ts'

interface Dependencies extends Surroundings, Stores {
  zones: ZoneWriter
  domains: DomainList
  registrar: RegistrarClient
  infos: ResponseCache<DomainInfo>
  nameservers: ResponseCache<Nameservers>
  tokens: ApiTokens
}

/** The routes of other people's protocols: ACME DNS-01, acme-dns, dyndns2, external-dns, the registrar's own. */
export async function registerIntegrations(app: App, dependencies: Dependencies) {
  const { zones, ledger, domains, clock, log, tokens, config } = dependencies
  const writer = new RetryingWriter({ zones, ledger, clock })
  const challenges = new AcmeChallenges({
    zones,
    writer,
    ledger,
    clock,
    log,
    store: dependencies.challenges,
    maxAgeSeconds: config.acmeMaxAge,
  })
  challenges.start()
  app.addHook('onClose', async () => challenges.close())
  await app.register(async (scope: App) => {
    takeAnyJson(scope)
    registerHttpreqRoutes(scope, { challenges, domains, clock })
    registerAcmeDnsRoutes(scope, { challenges, domains, tokens, clock })
    const only = config.externalDnsDomains
    registerExternalDnsRoutes(scope, { zones, writer, domains, clock, only })
  })
  registerDyndns2Routes(app, { ...dependencies, writer })
  await registerRegistrarDoor(app, { ...dependencies, writer })
}
