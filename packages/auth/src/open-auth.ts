import { join } from 'node:path'
import type { Check, Logger } from '@domains-and-files/http'
import {
  ensurePrivateFile,
  type Migrations,
  type Postgres,
  type Sql,
  SqliteSql,
} from '@domains-and-files/persistence'
import { ApiTokens } from './api-tokens/api-tokens.ts'
import { tokenPrefixOf } from './api-tokens/token-format.ts'
import { createHashQueue } from './login/password.ts'
import { type Caller, callerOfUser } from './rights.ts'
import { resolveJwtSecret } from './sessions/jwt-secret.ts'
import type { AuthConfig } from './settings.ts'
import { accountTables, loginTables } from './tables.ts'
import { Trusts } from './trusts/trusts.ts'
import { FileUsers } from './users/file-users.ts'
import { ensureFirstAdmin } from './users/first-admin.ts'
import { LastLogins } from './users/last-logins.ts'
import { SqlUsers } from './users/sql-users.ts'
import type { User, Users } from './users/user.ts'

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
  const file = database ?? openAuthFile(dataDir, migrations)
  const memory = database ?? openLoginMemory(() => Math.round(performance.now()))
  const lastLogins = new LastLogins(file, Date.now, (error) =>
    log.warn({ err: error }, 'last login not recorded'),
  )
  const find = async (username: string) => lastLogins.withRights(await users.find(username))
  const trusts = new Trusts(file)
  const apiTokens = new ApiTokens({
    database: file as Sql,
    find,
    prefix: tokenPrefixOf(audience),
    now: Date.now,
    report: (error) => log.warn({ err: error }, 'use of an API token not recorded'),
  })
  return {
    ...{ secret, previousSecret, audience, tokenTtl, users, apiTokens, lastLogins, trusts },
    ...{ isPasswordLoginOn, oidc },
    hashes: createHashQueue(),
    /** Holds what `accountTables` describes. */
    database: file as Sql,
    /** Counts failed logins. */
    loginDatabase: memory as Sql,
    /**
     * The caller of a stored `Caller.id`, with the rights that it has now. Undefined: its user was removed, or its API token
     * revoked or expired.
     */
    findCaller: (id: string) => findCaller(id, { find, apiTokens, trusts }),
    /** For /health: of the users file. */
    checks: (): Record<string, Check> =>
      database ? {} : { users: { status: users.fault === undefined ? 'ok' : 'degraded' } },
    close: async () => {
      await apiTokens.close()
      if (database) return // Its owner closes it.
      await file.close()
      await memory.close()
    },
  }
}

/** What the plugin `auth` needs of a service, opened before the app is built. */
export type Auth = Awaited<ReturnType<typeof openAuth>>

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

interface Accounts {
  find: (username: string) => Promise<User | undefined>
  apiTokens: ApiTokens
  trusts: Trusts
}

/** As `Auth.findCaller`. */
export async function findCaller(
  id: string,
  { find, apiTokens, trusts }: Accounts,
): Promise<Caller | undefined> {
  const [, kind, rest = ''] = /^(user|token|trust):(.*)$/s.exec(id) ?? []
  if (kind === 'token') return apiTokens.findCaller(rest)
  const [username = '', ...more] = rest.split(' ')
  if (kind === 'trust') return trusts.findCaller(username, more.join(' '))
  const user = await find(username)
  const caller = user && callerOfUser(user)
  return caller?.id === id ? caller : undefined
}
