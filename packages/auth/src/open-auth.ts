import { randomBytes, randomUUID } from 'node:crypto'
import { type Check, type Logger, StartRefusedError } from '@domains-and-files/http'
import { type Migrations, type Postgres, SqliteSql } from '@domains-and-files/persistence'
import { createAuthenticate } from './access-control.ts'
import { ApiTokens, type ApiTokensOptions } from './api-tokens/api-tokens.ts'
import { type ServiceName, services } from './api-tokens/token-format.ts'
import { loginTables, openAuthFile } from './auth-database.ts'
import { defaultLoginLimits, LoginLimit, type LoginLimits } from './login/login-limit.ts'
import { createHashQueue, hashPassword, requireStrongPassword, verifyPassword } from './login/password.ts'
import { OneTime } from './one-time.ts'
import { type Caller, callerOfUser } from './rights.ts'
import { SessionTokens } from './sessions/session-tokens.ts'
import { type AuthConfig, resolveJwtSecret } from './settings.ts'
import { findWorkload } from './trusts/trusts.ts'
import { FileUsers } from './users/file-users.ts'
import { findLogins, SqlUsers } from './users/sql-users.ts'
import type { Users } from './users/user.ts'

interface AuthDependencies {
  audience: ServiceName
  log: Logger
  /** Stores users, API tokens and failed logins. Absent: files in DATA_DIR, and memory. Its migrations contain `authMigrations`. */
  database?: Postgres | undefined
  /** Other small tables of the service, which are beside the API tokens in DATA_DIR. */
  migrations?: Migrations | undefined
  loginLimits?: LoginLimits | undefined
  /** Milliseconds since 1970. Absent: by the clock of `database`, which replicas have in common, else of this machine. */
  now?: (() => number) | undefined
}

/** Dependencies of the plugin `auth` and its routes, opened before the app is built. */
export type Auth = Awaited<ReturnType<typeof openAuth>>

/**
 * Opens the users, API tokens, sessions and password queue of a service.
 * @throws {StartRefusedError} when the secret is weak, a file is invalid, or production has no users.
 */
export async function openAuth(config: AuthConfig, dependencies: AuthDependencies) {
  const { audience, database: shared, log } = dependencies
  const now = dependencies.now ?? shared?.now ?? Date.now
  const { passwordLogin: isPasswordLoginOn, oidc, tokenTtl, jwtSecretPrevious } = config
  const secret = await resolveJwtSecret(config)
  const users = await openUsers(config, dependencies)
  const database = shared ?? openAuthFile(config.dataDir, dependencies.migrations)
  // For limits: setting the clock back must not extend a lockout.
  const monotonicClock = { now: dependencies.now ?? (() => Math.round(performance.now())) }
  // In memory: logging in must not need space on a disk.
  const attempts = shared ?? new SqliteSql({ file: ':memory:', migrations: loginTables, ...monotonicClock })
  const report = (error: unknown) => log.warn({ err: error }, 'last use not recorded')
  const { prefix } = services[audience]
  const accounts = openAccounts({ users, database, prefix, now, report })
  const oneTime = await OneTime.open(database, now)
  const secrets = jwtSecretPrevious ? [secret, jwtSecretPrevious] : [secret]
  const sessions = new SessionTokens({ ...accounts, audience, secrets, ttl: tokenTtl, now, oneTime })
  const limit = new LoginLimit(attempts, dependencies.loginLimits ?? defaultLoginLimits, log)
  return {
    ...accounts,
    audience,
    now,
    monotonicClock,
    isPasswordLoginOn,
    oidc,
    tokenTtl,
    oneTime,
    sessions,
    limit,
    ...createAuthenticate(prefix, accounts.apiTokens, sessions, now),
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

async function openUsers(config: AuthConfig, { database, log }: AuthDependencies) {
  const users: Users = database
    ? new SqlUsers(database)
    : new FileUsers(config.usersFile, (error) =>
        log.error({ err: error }, 'users file with faults: its faulty entries are disabled'),
      )
  if (config.passwordLogin) await ensureFirstAdmin(users, config)
  // Fill the cache: while a failing disk makes the file unreadable, the users read here stay in force.
  await users.find('')
  return users
}

/**
 * Creates the first admin if there are no users: from the settings or, outside production, with a random printed
 * password. If several services start together on one store, exactly one creates it. `print` gets a generated password,
 * and warnings.
 * @throws {StartRefusedError} in production without settings, or when only one of the two settings is given.
 */
export async function ensureFirstAdmin(
  store: Users,
  config: Pick<AuthConfig, 'adminUsername' | 'adminPassword' | 'production'>,
  print: (message: string) => void = console.error,
): Promise<void> {
  const { adminUsername: username, adminPassword: password, production } = config
  if ((await store.list()).length > 0) return
  if (!username !== !password)
    throw new StartRefusedError('There are no users yet: set both ADMIN_USERNAME and ADMIN_PASSWORD, or neither.')
  if (!username && production)
    throw new StartRefusedError(
      `There are no users in ${store.name}: set ADMIN_USERNAME and ADMIN_PASSWORD, or add one with \`npm run users -- add\`.`,
    )
  const name = username ?? 'admin'
  const secret = password ?? randomBytes(15).toString('base64url')
  const credentials = { id: randomUUID(), password: await hashPassword(secret) }
  let isCreated = false
  await store.update((users) => {
    isCreated = users.length === 0
    return isCreated ? [{ username: name, role: 'admin', ...credentials }] : users
  })
  if (!isCreated) return
  if (!password) print(`Created the user ${name} with the password ${secret} (it is not shown again).`)
  else await requireStrongPassword(password, name).catch(({ message }) => print(`ADMIN_PASSWORD is weak. ${message}`))
}

/** The stores that identify callers of a service: users, API tokens, and trusts for workloads. */
export function openAccounts(options: Omit<ApiTokensOptions, 'find'> & { users: Users }) {
  const { users, database } = options
  /** The user with its present rights: for single sign-on, those of the last login to this service. */
  const find = async (username: string) => {
    const user = await users.find(username)
    if (!user?.oidc) return user
    const { rights } = (await findLogins(database, [user])).get(username) ?? {}
    return rights && { ...user, ...rights }
  }
  const apiTokens = new ApiTokens({ ...options, find })
  /**
   * The caller of a stored `Caller.id`, with its present rights. Undefined if its user or trust was removed, or its API
   * token was revoked or expired.
   */
  const findCaller = async (id: string): Promise<Caller | undefined> => {
    const [, kind, rest = ''] = /^(user|token|trust):(.*)$/s.exec(id) ?? []
    if (kind === 'token') return apiTokens.findCaller(rest)
    const [name = '', ...more] = rest.split(' ')
    if (kind === 'trust') return findWorkload(database, name, more.join(' '))
    const user = await find(name)
    const caller = user && callerOfUser(user)
    return caller?.id === id ? caller : undefined
  }
  return { users, database, find, apiTokens, findCaller }
}
