import jwt from '@fastify/jwt'
import type { FastifyInstance } from 'fastify'
import fastifyPlugin from 'fastify-plugin'
import { enforceAccess } from './access-control.ts'
import { registerTokenRoutes } from './api-tokens/token-routes.ts'
import { createAuthErrors } from './errors.ts'
import { registerLoginRoutes } from './login/login.ts'
import { defaultLoginLimits, LoginLimit, type LoginLimits } from './login/login-limit.ts'
import { verifyPassword } from './login/password.ts'
import type { Auth } from './open-auth.ts'
import { jwtOptions, SessionTokens } from './sessions/session-tokens.ts'

export interface AuthOptions extends Auth {
  loginLimits?: LoginLimits
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
    const { secret, audience, tokenTtl, users, apiTokens, hashes } = options
    const { loginLimits = defaultLoginLimits, verify = verifyPassword, now = Date.now } = options
    await app.register(jwt, jwtOptions(secret, audience))
    const find = (username: string) => users.find(username)
    const sessions = new SessionTokens(app.jwt, { secret, ttl: tokenTtl, now, find })
    const limit = new LoginLimit(
      options.loginDatabase,
      loginLimits,
      ({ username, isUser, address }, lockout) =>
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
    app.addHook('onClose', () => options.close())
  },
  { name: '@domains-and-files/auth', fastify: '5.x' },
)
