import type { App } from '@domains-and-files/http'
import type { Dependencies } from '../storage.ts'
import { AcmeChallenges } from './acme-challenges.ts'
import { registerAcmeDnsRoutes } from './acme-dns.ts'
import { registerDyndns2Routes } from './dyndns2.ts'
import { registerExternalDnsRoutes } from './external-dns.ts'
import { registerHttpreqRoutes } from './httpreq.ts'
import { takeAnyJson } from './json-protocol.ts'
import { registerRegistrarDoor } from './registrar-door/door.ts'
import { RetryingWriter } from './retrying-writer.ts'

/** The routes of other people's protocols: ACME DNS-01, acme-dns, dyndns2, external-dns, the registrar's own. */
export async function registerIntegrations(app: App, parts: Dependencies) {
  const writer = new RetryingWriter(parts)
  const challenges = new AcmeChallenges({ ...parts, writer })
  challenges.start()
  app.addHook('onClose', async () => challenges.close())
  await app.register(async (scope: App) => {
    takeAnyJson(scope)
    registerHttpreqRoutes(scope, challenges, parts)
    registerAcmeDnsRoutes(scope, challenges, parts)
    registerExternalDnsRoutes(scope, { ...parts, writer })
  })
  registerDyndns2Routes(app, { ...parts, writer })
  await registerRegistrarDoor(app, { ...parts, writer })
}
