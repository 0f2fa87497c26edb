import { type App, takeBodies } from '@domains-and-files/http'
import { BackgroundTask } from '@domains-and-files/persistence'
import type { Dependencies } from '../storage.ts'
import { AcmeChallenges } from './acme-challenges.ts'
import { registerAcmeDnsRoutes } from './acme-dns.ts'
import { registerDyndns2Routes } from './dyndns2.ts'
import { registerExternalDnsRoutes } from './external-dns.ts'
import { registerHttpreqRoutes } from './httpreq.ts'
import { registerRegistrarDoor } from './registrar-door/door.ts'
import { RetryingWriter } from './retrying-writer.ts'

/** The routes of other people's protocols: ACME DNS-01, acme-dns, dyndns2, external-dns, the registrar's own. */
export async function registerIntegrations(app: App, parts: Dependencies) {
  const writer = new RetryingWriter(parts)
  const challenges = new AcmeChallenges({ ...parts, writer })
  const sweeping = new BackgroundTask({
    run: () => challenges.sweep(),
    intervalMs: 3_600_000, // Most are removed before, together with another write.
    clock: parts.clock,
    onError: (error) => parts.log.warn({ err: error }, 'old ACME challenges not removed'),
  })
  app.addHook('onClose', () => sweeping.close())
  await app.register(async (scope: App) => {
    // JSON under any content type, also a malformed one: curl sends `application/x-www-form-urlencoded` by default.
    scope.addHook('onRequest', async ({ headers }) => void delete headers['content-type'])
    takeBodies(scope, '*', (body) => body.toString())
    registerHttpreqRoutes(scope, challenges, parts)
    registerAcmeDnsRoutes(scope, challenges, parts)
    registerExternalDnsRoutes(scope, { ...parts, writer })
  })
  registerDyndns2Routes(app, { ...parts, writer })
  await registerRegistrarDoor(app, { ...parts, writer })
}
