import type { Authenticate } from './access-control.ts'
import type { LoginLimit } from './login/login-limit.ts'
import type { SingleSignOn } from './oidc/single-sign-on.ts'
import type { OneTime } from './one-time.ts'
import type { Auth } from './open-auth.ts'
import type { SessionTokens } from './sessions/session-tokens.ts'

/** What the routes of this package work with. */
export interface AuthContext extends Auth {
  sessions: SessionTokens
  limit: LoginLimit
  oneTime: OneTime
  /** Loads it. Undefined: not configured. */
  sso: (() => Promise<SingleSignOn>) | undefined
  authenticate: Authenticate
  /** Verifies a password against a PHC string. */
  verify: (phc: string, password: string) => Promise<boolean>
  /** Milliseconds since 1970. */
  now: () => number
}
