import type { Check } from '@domains-and-files/http'
import type { Sql } from '@domains-and-files/persistence'
import type { Authenticate } from './access-control.ts'
import type { ApiTokens } from './api-tokens/api-tokens.ts'
import type { LoginLimit } from './login/login-limit.ts'
import type { HashQueue } from './login/password.ts'
import type { SingleSignOn } from './oidc/single-sign-on.ts'
import type { OneTime } from './one-time.ts'
import type { Caller } from './rights.ts'
import type { SessionTokens } from './sessions/session-tokens.ts'
import type { OidcConfig } from './settings.ts'
import type { Trusts } from './trusts/trusts.ts'
import type { LastLogins } from './users/last-logins.ts'
import type { Users } from './users/user.ts'

/** What the plugin `auth` needs of a service, opened before the app is built. */
export interface Auth {
  secret: string
  /** Signed tokens that are still accepted. */
  previousSecret?: string | undefined
  audience: string
  /** Lifetime of session tokens in seconds. */
  tokenTtl: number
  users: Users
  apiTokens: ApiTokens
  hashes: HashQueue
  /** Holds what `accountTables` describes. */
  database: Sql
  lastLogins: LastLogins
  trusts: Trusts
  /** Whether users log in with passwords, as well as at an OpenID provider. */
  isPasswordLoginOn: boolean
  /** Single sign-on; undefined: none. */
  oidc: OidcConfig | undefined
  /** Counts failed logins. */
  loginDatabase: Sql
  /**
   * The caller of a stored `Caller.id`, with the rights that it has now. Undefined: its user was removed, or its API token
   * revoked or expired.
   */
  findCaller: (id: string) => Promise<Caller | undefined>
  /** For /health: of the users file. */
  checks: () => Record<string, Check>
  close: () => Promise<void>
}

/** What the routes of this package work with. */
export interface AuthContext extends Auth {
  sessions: SessionTokens
  limit: LoginLimit
  oneTime: OneTime
  /** Undefined: not configured. */
  sso: SingleSignOn | undefined
  authenticate: Authenticate
  /** Verifies a password against a PHC string. */
  verify: (phc: string, password: string) => Promise<boolean>
  /** Milliseconds since 1970. */
  now: () => number
}
