import { join } from 'node:path'
import type { Logger } from '@domains-and-files/http'
import { ApiTokens } from './api-tokens/api-tokens.ts'
import { TokenFile, tokensFileName } from './api-tokens/token-file.ts'
import { createHashQueue, type HashQueue } from './login/hash-queue.ts'
import { tokenPrefixOf } from './services.ts'
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
  apiTokens: ApiTokens
  hashes: HashQueue
}

interface ServiceConfig {
  auth: AuthConfig
  production: boolean
  dataDir: string
}

/**
 * Opens the users, API tokens, secret and password queue of a service.
 * @throws {StartRefusedError} when the secret is weak, a file is invalid, or production has no users.
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
  const store = new TokenFile(join(dataDir, tokensFileName), (error) =>
    log.error({ err: error }, 'cannot read or write the tokens file'),
  )
  const find = (username: string) => users.find(username)
  const apiTokens = new ApiTokens({ store, find, prefix: tokenPrefixOf(audience), now: Date.now })
  const { tokenTtl } = auth
  return { secret, audience, tokenTtl, users, apiTokens, hashes: createHashQueue() }
}
