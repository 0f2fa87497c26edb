import type { App } from '@domains-and-files/http'
import jwt from '@fastify/jwt'
import type { FastifyInstance } from 'fastify'
import fastifyPlugin from 'fastify-plugin'
import { enforceAccess } from './access-control.ts'
import { registerTokenRoutes } from './api-tokens/token-routes.ts'
import { registerAccountRoutes } from './login/account-routes.ts'
import { registerOidcRoutes } from './oidc/oidc-routes.ts'
import type { Auth } from './open-auth.ts'
import { registerTokenExchange } from './trusts/token-exchange.ts'
import { registerTrustRoutes } from './trusts/trusts.ts'
import { registerUserRoutes } from './users/user-routes.ts'

/**
 * Authenticates callers, admits them to routes by `config.access`, and serves login and API tokens. Register it before
 * any route: a later route without `access` stops the boot.
 */
export const auth = fastifyPlugin(
  async (app: FastifyInstance, opened: Auth) => {
    await app.register(jwt, opened.sessions.jwtOptions)
    opened.sessions.use(app.jwt)
    enforceAccess(app, opened)
    await app.register(async (scope: App) => {
      scope.addHook('onRoute', ({ schema }) => {
        if (schema) schema.tags = ['auth']
      })
      scope.addHook('preHandler', (_request, reply, done) => {
        reply.header('cache-control', 'no-store')
        done()
      })
      registerAccountRoutes(scope, opened)
      registerOidcRoutes(scope, opened)
      await registerTokenExchange(scope, opened)
      registerTrustRoutes(scope, opened)
      registerTokenRoutes(scope, opened)
      registerUserRoutes(scope, opened)
    })
    app.addHook('onClose', () => opened.close())
  },
  { name: '@domains-and-files/auth', fastify: '5.x' },
)
