import jwt from '@fastify/jwt'
import type { FastifyInstance } from 'fastify'
import fastifyPlugin from 'fastify-plugin'
import { enforceAccess } from './access-control.ts'
import type { ApiTokens } from './api-tokens/api-tokens.ts'
import { registerTokenRoutes } from './api-tokens/token-routes.ts'
import { createAuthErrors } from './errors.ts'
import { createHashQueue, type HashQueue } from './login/hash-queue.ts'
import { registerLoginRoutes } from './login/login.ts'
import {
  defaultLoginLimits,
  type LoginLimit,
  type LoginLimits,
  type OnLockout,
} from './login/login-limit.ts'
import { MemoryLoginLimit } from './login/memory-login-limit.ts'
import { verifyPassword } from './login/password.ts'
import { jwtOptions, SessionTokens } from './sessions/session-tokens.ts'
import type { Users } from './users/users.ts'

export interface AuthOptions {
  /** Signs session tokens; see `resolveJwtSecret`. */
  secret: string
  /** The service's name: tokens of another service are rejected even with the same secret. */
  audience: string
  /** Lifetime of session tokens in seconds. */
  tokenTtl: number
  users: Users
  apiTokens: ApiTokens
  /** Shared with the metrics. */
  hashes?: HashQueue
  loginLimits?: LoginLimits
  /** Where failed logins are counted. Default: in this process. */
  createLoginLimit?: ((limits: LoginLimits, onLockout: OnLockout) => LoginLimit) | undefined
  /** Verifies a password against a PHC string. Injected by tests that count hashes. */
  verify?: typeof verifyPassword
  /** Milliseconds since 1970. Injected by tests. */
  now?: () => number
}

/**
 * Authenticates callers, admits them to routes by `config.access`, and serves login and API tokens. Register it before any route:
 * a later route without `access` stops the boot.
 */
export const auth = fastifyPlugin(
  async (app: FastifyInstance, options: AuthOptions) => {
    const { secret, audience, tokenTtl, users, apiTokens, hashes = createHashQueue() } = options
    const { loginLimits = defaultLoginLimits, verify = verifyPassword, now } = options
    await app.register(jwt, jwtOptions(secret, audience))
    const find = (username: string) => users.find(username)
    const sessions = new SessionTokens(app.jwt, {
      secret,
      ttl: tokenTtl,
      now: now ?? Date.now,
      find,
    })
    const inMemory = (limits: LoginLimits, onLockout: OnLockout) =>
      // Monotonic: setting the clock back must not extend a lockout.
      new MemoryLoginLimit(limits, now ?? (() => performance.now()), onLockout)
    const { createLoginLimit = inMemory } = options
    const limit = createLoginLimit(loginLimits, ({ username, isUser, address }, lockout) =>
      // An unknown username may be a password typed into the wrong field.
      app.log.warn(
        { client: address, limit: lockout, ...(isUser && { username }) },
        'login locked',
      ),
    )
    const errors = createAuthErrors(audience)
    enforceAccess(app, { sessions, apiTokens, audience, errors })
    registerLoginRoutes(app, { users, sessions, limit, tokenTtl, errors, hashes, verify })
    registerTokenRoutes(app, apiTokens)
    app.addHook('onClose', () => apiTokens.close())
  },
  { name: '@domains-and-files/auth', fastify: '5.x' },
)
