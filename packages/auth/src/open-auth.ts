import { join } from 'node:path'
import type { Check, Logger } from '@domains-and-files/http'
import {
  ensurePrivateFile,
  type Migrations,
  type Postgres,
  type Sql,
  SqliteSql,
} from '@domains-and-files/persistence'
import type { Authenticate } from './access-control.ts'
import { openAccounts } from './accounts.ts'
import { tokenPrefixOf } from './api-tokens/token-format.ts'
import type { LoginLimit } from './login/login-limit.ts'
import { createHashQueue } from './login/password.ts'
import type { SingleSignOn } from './oidc/single-sign-on.ts'
import type { OneTime } from './one-time.ts'
import { resolveJwtSecret } from './sessions/jwt-secret.ts'
import type { SessionTokens } from './sessions/session-tokens.ts'
import type { AuthConfig } from './settings.ts'
import { accountTables, loginTables } from './tables.ts'
import { FileUsers } from './users/file-users.ts'
import { ensureFirstAdmin } from './users/first-admin.ts'
import { SqlUsers } from './users/sql-users.ts'
import type { Users } from './users/user.ts'

interface ServiceConfig {
  auth: AuthConfig
  production: boolean
  dataDir: string
}

interface AuthDependencies {
  audience: string
  log: Logger
  /** Stores users, API tokens and failed logins. Absent: files in DATA_DIR, and memory. Its migrations contain `authMigrations`. */
  database?: Postgres | undefined
  /** Other small tables of the service, which are beside the API tokens in DATA_DIR. */
  migrations?: Migrations | undefined
}

/** Stores API tokens in DATA_DIR, unless PostgreSQL does. */
export const authFileName = 'auth.sqlite'

/**
 * Opens the users, API tokens, secret and password queue of a service.
 * @throws {StartRefusedError} when the secret is weak, a file is invalid, or production has no users.
 */
export async function openAuth(
  { auth, production, dataDir }: ServiceConfig,
  { audience, log, database, migrations }: AuthDependencies,
) {
  const { previousSecret, tokenTtl, isPasswordLoginOn, oidc } = auth
  const secret = await resolveJwtSecret({ secret: auth.secret, production, dataDir })
  const users: Users = database
    ? new SqlUsers(database)
    : new FileUsers(auth.usersFile, (error) =>
        log.error({ err: error }, 'users file with faults: its faulty entries are disabled'),
      )
  if (isPasswordLoginOn) {
    await ensureFirstAdmin(users, {
      username: auth.adminUsername,
      password: auth.adminPassword,
      production,
    })
  }
  // Fill the cache: while a failing disk makes the file unreadable, the users read here stay in force.
  if (!database) await users.find('')
  const file = database ?? openAuthFile(dataDir, migrations)
  const memory = database ?? openLoginMemory(() => Math.round(performance.now()))
  const accounts = openAccounts({
    ...{ users, database: file, prefix: tokenPrefixOf(audience) },
    report: (error) => log.warn({ err: error }, 'last use not recorded'),
  })
  return {
    ...accounts,
    ...{ secret, previousSecret, audience, tokenTtl, isPasswordLoginOn, oidc },
    hashes: createHashQueue(),
    /** Counts failed logins. */
    loginDatabase: memory as Sql,
    /** State of the users file for /health; PostgreSQL has its own check. */
    checks: (): Record<string, Check> =>
      database ? {} : { users: { status: users.fault === undefined ? 'ok' : 'degraded' } },
    close: async () => {
      await accounts.apiTokens.close()
      if (database) return // Its owner closes it.
      await file.close()
      await memory.close()
    },
  }
}

/** Dependencies of the plugin `auth`, opened before the app is built. */
export type Auth = Awaited<ReturnType<typeof openAuth>>

/** Dependencies of the routes of this package. */
export interface AuthContext extends Auth {
  sessions: SessionTokens
  limit: LoginLimit
  oneTime: OneTime
  /** Loads single sign-on. Undefined: not configured. */
  sso: (() => Promise<SingleSignOn>) | undefined
  authenticate: Authenticate
  /** Verifies a password against a PHC string. */
  verify: (phc: string, password: string) => Promise<boolean>
  /** Milliseconds since 1970. */
  now: () => number
}

/** Opens the API tokens of a data directory, which commands and a running service share. */
export function openAuthFile(dataDir: string, migrations: Migrations = {}): SqliteSql {
  const file = join(dataDir, authFileName)
  ensurePrivateFile(file)
  return new SqliteSql({ file, migrations: { ...accountTables, ...migrations } })
}

/**
 * Counts failed logins in the memory of this process: logging in must not need space on a disk. `clock` is in
 * milliseconds, and monotonic, since setting the clock back must not extend a lockout.
 */
export const openLoginMemory = (clock: () => number) =>
  new SqliteSql({ file: ':memory:', migrations: loginTables, now: clock })
