import type { App } from '@domains-and-files/http'
import jwt from '@fastify/jwt'
import type { FastifyInstance } from 'fastify'
import fastifyPlugin from 'fastify-plugin'
import { enforceAccess } from './access-control.ts'
import { registerTokenRoutes } from './api-tokens/token-routes.ts'

import { registerAccountRoutes } from './login/account-routes.ts'
import { registerLoginRoutes } from './login/login.ts'
import { defaultLoginLimits, LoginLimit, type LoginLimits } from './login/login-limit.ts'
import { verifyPassword } from './login/password.ts'
import { registerOidcRoutes } from './oidc/oidc-routes.ts'
import type { SingleSignOn } from './oidc/single-sign-on.ts'
import { OneTime } from './one-time.ts'
import type { Auth, AuthContext } from './open-auth.ts'
import { jwtOptions, SessionTokens } from './sessions/session-tokens.ts'
import type { OidcConfig } from './settings.ts'
import { registerTokenExchange } from './trusts/token-exchange.ts'
import { registerTrustRoutes } from './trusts/trust-routes.ts'
import { registerUserRoutes } from './users/user-routes.ts'

export interface AuthOptions extends Auth {
  loginLimits?: LoginLimits
  /** Verifies a password against a PHC string. Injected by tests that count hashes. */
  verify?: typeof verifyPassword
  /** Milliseconds since 1970. Injected by tests. */
  now?: () => number
}

/**
 * Authenticates callers, admits them to routes by `config.access`, and serves login and API tokens. Register it before
 * any route: a later route without `access` stops the boot.
 */
export const auth = fastifyPlugin(
  async (app: FastifyInstance, options: AuthOptions) => {
    const { secret, audience, tokenTtl, database, oidc } = options
    const { loginLimits = defaultLoginLimits, verify = verifyPassword, now = Date.now } = options
    await app.register(jwt, jwtOptions(secret, audience))
    const oneTime = await OneTime.open(database, now)
    const sessions = new SessionTokens(app.jwt, { ...options, ttl: tokenTtl, now, oneTime })
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
    const authenticate = enforceAccess(app, { ...options, sessions })
    const openSingleSignOn = async (config: OidcConfig) => {
      const { SingleSignOn } = await import('./oidc/single-sign-on.ts')
      return new SingleSignOn({ ...options, jwt: app.jwt, config, now, log: app.log, oneTime })
    }
    // Loaded at the first login: the library takes 20 MB.
    let opened: Promise<SingleSignOn> | undefined
    const sso = oidc && (() => (opened ??= openSingleSignOn(oidc)))
    const context: AuthContext = {
      ...options,
      ...{ sessions, limit, oneTime, sso, authenticate, verify, now },
    }
    await app.register(async (scope: App) => {
      scope.addHook('onRoute', ({ schema }) => {
        if (schema) schema.tags = ['auth']
      })
      scope.addHook('preHandler', (_request, reply, done) => {
        reply.header('cache-control', 'no-store')
        done()
      })
      registerLoginRoutes(scope, context)
      registerAccountRoutes(scope, context)
      registerOidcRoutes(scope, context)
      await registerTokenExchange(scope, context)
      registerTrustRoutes(scope, context)
      registerTokenRoutes(scope, context)
      registerUserRoutes(scope, context)
    })
    app.addHook('onClose', () => options.close())
  },
  { name: '@domains-and-files/auth', fastify: '5.x' },
)
