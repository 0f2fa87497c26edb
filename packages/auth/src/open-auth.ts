import { join } from 'node:path'
import type { Check, Logger } from '@domains-and-files/http'
import {
  ensurePrivateFile,
  type Migrations,
  type Postgres,
  SqliteSql,
} from '@domains-and-files/persistence'
import { createAuthenticate } from './access-control.ts'
import { ApiTokens, type ApiTokensOptions } from './api-tokens/api-tokens.ts'
import { serviceOf } from './api-tokens/token-format.ts'
import { defaultLoginLimits, LoginLimit, type LoginLimits } from './login/login-limit.ts'
import { createHashQueue, verifyPassword } from './login/password.ts'
import { OneTime } from './one-time.ts'
import { type Caller, callerOfUser } from './rights.ts'
import { resolveJwtSecret } from './sessions/jwt-secret.ts'
import { SessionTokens } from './sessions/session-tokens.ts'
import type { AuthConfig } from './settings.ts'
import { accountTables, loginTables } from './tables.ts'
import { Trusts } from './trusts/trusts.ts'
import { FileUsers } from './users/file-users.ts'
import { ensureFirstAdmin } from './users/first-admin.ts'
import { LastLogins } from './users/last-logins.ts'
import { SqlUsers } from './users/sql-users.ts'
import type { Users } from './users/user.ts'

interface ServiceConfig {
  auth: AuthConfig
  production: boolean
  dataDir: string
}

interface AuthDependencies {
  /** The name of the service. */
  audience: string
  log: Logger
  /** Stores users, API tokens and failed logins. Absent: files in DATA_DIR, and memory. Its migrations contain `authMigrations`. */
  database?: Postgres | undefined
  /** Other small tables of the service, which are beside the API tokens in DATA_DIR. */
  migrations?: Migrations | undefined
  loginLimits?: LoginLimits | undefined
  /** Milliseconds since 1970. */
  now?: (() => number) | undefined
}

/** Stores API tokens in DATA_DIR, unless PostgreSQL does. */
export const authFileName = 'auth.sqlite'

/** Dependencies of the plugin `auth` and its routes, opened before the app is built. */
export type Auth = Awaited<ReturnType<typeof openAuth>>

/**
 * Opens the users, API tokens, sessions and password queue of a service.
 * @throws {StartRefusedError} when the secret is weak, a file is invalid, or production has no users.
 */
export async function openAuth(config: ServiceConfig, dependencies: AuthDependencies) {
  const { audience, database: shared, log, now = Date.now } = dependencies
  const { isPasswordLoginOn, oidc, tokenTtl, previousSecret } = config.auth
  const secret = await resolveJwtSecret({ ...config, secret: config.auth.secret })
  const users = await openUsers(config, dependencies)
  const database = shared ?? openAuthFile(config.dataDir, dependencies.migrations)
  const attempts = shared ?? openLoginMemory(dependencies.now)
  const report = (error: unknown) => log.warn({ err: error }, 'last use not recorded')
  const { prefix } = serviceOf(audience)
  const accounts = openAccounts({ users, database, prefix, now, report })
  const oneTime = await OneTime.open(database, now)
  const secrets = previousSecret ? [secret, previousSecret] : [secret]
  const issuing = { audience, secrets, ttl: tokenTtl, now }
  const sessions = new SessionTokens({ ...accounts, ...issuing, oneTime })
  const limit = new LoginLimit(attempts, dependencies.loginLimits ?? defaultLoginLimits, log)
  return {
    ...accounts,
    ...{ audience, now, isPasswordLoginOn, oidc, tokenTtl, oneTime, sessions, limit },
    ...createAuthenticate(sessions, accounts.apiTokens),
    hashes: createHashQueue(),
    /** Verifies a password against a PHC string. */
    verify: verifyPassword,
    /** State of the users file for /health; PostgreSQL has its own check. */
    checks: (): Record<string, Check> =>
      shared ? {} : { users: { status: users.fault === undefined ? 'ok' : 'degraded' } },
    /** PostgreSQL is closed by its owner. */
    close: async () => {
      for (const opened of [database, attempts]) if (opened !== shared) await opened.close()
    },
  }
}

async function openUsers(config: ServiceConfig, { database, log }: AuthDependencies) {
  const { usersFile, isPasswordLoginOn, adminUsername, adminPassword } = config.auth
  const users: Users = database
    ? new SqlUsers(database)
    : new FileUsers(usersFile, (error) =>
        log.error({ err: error }, 'users file with faults: its faulty entries are disabled'),
      )
  const admin = { username: adminUsername, password: adminPassword }
  if (isPasswordLoginOn) await ensureFirstAdmin(users, { ...config, ...admin })
  // Fill the cache: while a failing disk makes the file unreadable, the users read here stay in force.
  await users.find('')
  return users
}

/** The stores that identify callers of a service: users, API tokens, and trusts for workloads. */
export function openAccounts(options: Omit<ApiTokensOptions, 'find'> & { users: Users }) {
  const { users, database } = options
  const lastLogins = new LastLogins(options)
  /** The user with the rights that it has now. */
  const find = async (username: string) => lastLogins.withRights(await users.find(username))
  const trusts = new Trusts(database)
  const apiTokens = new ApiTokens({ ...options, find })
  /**
   * The caller of a stored `Caller.id`, with its present rights. Undefined if its user or trust was removed, or its API
   * token was revoked or expired.
   */
  const findCaller = async (id: string): Promise<Caller | undefined> => {
    const [, kind, rest = ''] = /^(user|token|trust):(.*)$/s.exec(id) ?? []
    if (kind === 'token') return apiTokens.findCaller(rest)
    const [name = '', ...more] = rest.split(' ')
    if (kind === 'trust') return trusts.findCaller(name, more.join(' '))
    const user = await find(name)
    const caller = user && callerOfUser(user)
    return caller?.id === id ? caller : undefined
  }
  return { users, database, lastLogins, find, trusts, apiTokens, findCaller }
}

/** Opens the API tokens of a data directory, which commands and a running service share. */
export function openAuthFile(dataDir: string, migrations: Migrations = {}): SqliteSql {
  const file = join(dataDir, authFileName)
  ensurePrivateFile(file)
  return new SqliteSql({ file, migrations: { ...accountTables, ...migrations } })
}

/**
 * Counts failed logins in the memory of this process: logging in must not need space on a disk. The clock, in
 * milliseconds, is monotonic, since setting the clock back must not extend a lockout.
 */
const openLoginMemory = (now = () => Math.round(performance.now())) =>
  new SqliteSql({ file: ':memory:', migrations: loginTables, now })
