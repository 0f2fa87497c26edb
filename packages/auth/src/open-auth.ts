import { join } from 'node:path'
import type { Logger } from '@domains-and-files/http'
import type { Postgres } from '@domains-and-files/persistence'
import { ApiTokens } from './api-tokens/api-tokens.ts'
import type { TokenStore } from './api-tokens/stored-token.ts'
import { TokenFile, tokensFileName } from './api-tokens/token-file.ts'
import { createHashQueue, type HashQueue } from './login/hash-queue.ts'
import type { LoginLimit, LoginLimits, OnLockout } from './login/login-limit.ts'
import { PostgresLoginLimit } from './postgres/postgres-login-limit.ts'
import { PostgresTokens } from './postgres/postgres-tokens.ts'
import { PostgresUsers } from './postgres/postgres-users.ts'
import { tokenPrefixOf } from './services.ts'
import { resolveJwtSecret } from './sessions/jwt-secret.ts'
import type { AuthConfig } from './settings.ts'
import { FileUsers } from './users/file-users.ts'
import { ensureFirstAdmin } from './users/first-admin.ts'
import type { UserStore, Users } from './users/users.ts'
import { UserFile } from './users/users-file.ts'

/** What the plugin `auth` needs of a service, opened before the app is built. */
export interface Auth {
  secret: string
  audience: string
  tokenTtl: number
  users: Users
  apiTokens: ApiTokens
  hashes: HashQueue
  /** Counts failed logins of all replicas; absent: of this process. */
  createLoginLimit?: ((limits: LoginLimits, onLockout: OnLockout) => LoginLimit) | undefined
}

interface ServiceConfig {
  auth: AuthConfig
  production: boolean
  dataDir: string
}

interface AuthDependencies {
  audience: string
  log: Logger
  /** Stores users, API tokens and failed logins; absent: files and memory. Its migrations contain `authMigrations`. */
  database?: Postgres | undefined
}

/**
 * Opens the users, API tokens, secret and password queue of a service.
 * @throws {StartRefusedError} when the secret is weak, a file is invalid, or production has no users.
 */
export async function openAuth(
  { auth, production, dataDir }: ServiceConfig,
  { audience, log, database }: AuthDependencies,
): Promise<Auth> {
  const secret = await resolveJwtSecret({ secret: auth.secret, production, dataDir })
  const stores = database ? databaseStores(database, log) : fileStores(auth, dataDir, log)
  await ensureFirstAdmin(stores.userStore, {
    username: auth.adminUsername,
    password: auth.adminPassword,
    production,
  })
  const users = stores.openUsers()
  const { tokenTtl } = auth
  const apiTokens = new ApiTokens({
    store: stores.tokens,
    find: (username) => users.find(username),
    prefix: tokenPrefixOf(audience),
    now: Date.now,
  })
  const { createLoginLimit } = stores
  return {
    secret,
    audience,
    tokenTtl,
    users,
    apiTokens,
    hashes: createHashQueue(),
    createLoginLimit,
  }
}

interface Stores {
  userStore: UserStore
  /** Called when there is a user. */
  openUsers: () => Users
  tokens: TokenStore
  createLoginLimit?: Auth['createLoginLimit']
}

const fileStores = (auth: AuthConfig, dataDir: string, log: Logger): Stores => ({
  userStore: new UserFile(auth.usersFile),
  openUsers: () =>
    new FileUsers(auth.usersFile, (error) =>
      log.error(
        { err: error },
        'cannot read the users file: its last valid version stays in force',
      ),
    ),
  tokens: new TokenFile(join(dataDir, tokensFileName), (error) =>
    log.error({ err: error }, 'cannot read or write the tokens file'),
  ),
})

function databaseStores(database: Postgres, log: Logger): Stores {
  const users = new PostgresUsers(database)
  return {
    userStore: users,
    openUsers: () => users,
    tokens: new PostgresTokens(database, (error) =>
      log.warn({ err: error }, 'use of an API token not recorded'),
    ),
    createLoginLimit: (limits, onLockout) => new PostgresLoginLimit(database, limits, onLockout),
  }
}
