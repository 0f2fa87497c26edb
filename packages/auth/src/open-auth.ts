import type { Logger } from '@domains-and-files/http'
import { createHashQueue, type HashQueue } from './login/hash-queue.ts'
import { resolveJwtSecret } from './sessions/jwt-secret.ts'
import type { AuthConfig } from './settings.ts'
import { ensureFirstAdmin } from './users/first-admin.ts'
import { Users } from './users/users.ts'

/** What the plugin `auth` needs of a service, opened before the app is built. */
export interface Auth {
  secret: string
  audience: string
  tokenTtl: number
  users: Users
  hashes: HashQueue
}

interface ServiceConfig {
  auth: AuthConfig
  production: boolean
  dataDir: string
}

/**
 * Opens the users, the secret and the password queue of a service.
 * @throws {StartRefusedError} when the secret is weak, the users file is broken, or production has no users.
 */
export async function openAuth(
  { auth, production, dataDir }: ServiceConfig,
  { audience, log }: { audience: string; log: Logger },
): Promise<Auth> {
  const secret = await resolveJwtSecret({ secret: auth.secret, production, dataDir })
  await ensureFirstAdmin(auth.usersFile, {
    username: auth.adminUsername,
    password: auth.adminPassword,
    production,
  })
  const users = new Users(auth.usersFile, (error) =>
    log.error({ err: error }, 'cannot read the users file: its last valid version stays in force'),
  )
  return { secret, audience, tokenTtl: auth.tokenTtl, users, hashes: createHashQueue() }
}
