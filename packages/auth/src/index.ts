import jwt from '@fastify/jwt'
import type { FastifyInstance } from 'fastify'
import fastifyPlugin from 'fastify-plugin'
import { enforceAccess } from './access-control.ts'
import { createAuthErrors } from './errors.ts'
import { HashQueue } from './login/hash-queue.ts'
import { registerLoginRoutes } from './login/login.ts'
import { LoginLimit } from './login/login-limit.ts'
import { verifyPassword } from './login/password.ts'
import type { CreateHttpError } from './start-refused.ts'
import { jwtOptions, Tokens } from './tokens/tokens.ts'
import type { Users } from './users/users.ts'

export { type Access, allowsDomain, type Caller, Role } from './authorization.ts'
export { callerOf } from './caller.ts'
export { HashQueue } from './login/hash-queue.ts'
export { authSettings } from './settings.ts'
export { type CreateHttpError, StartRefusedError } from './start-refused.ts'
export { exampleSecret, resolveJwtSecret } from './tokens/jwt-secret.ts'
export { ensureFirstAdmin } from './users/first-admin.ts'
export { Users } from './users/users.ts'
export { InvalidUsersFile } from './users/users-file.ts'

export interface AuthOptions {
  /** Signs the tokens; see `resolveSecret`. */
  secret: string
  /** The service's own name: a token of another service is refused even when they share a secret. */
  audience: string
  /** Seconds that a token lives. */
  tokenTtl: number
  users: Users
  refuse: CreateHttpError
  /** Where password hashes wait for their turn; handed in by who watches it. */
  hashes?: HashQueue
  /** Wrong logins for each name and for each address; 10 in 15 minutes unless said otherwise. */
  loginLimit?: { attempts: number; windowMs: number }
  /** Says whether a password is that of a PHC string; handed in by tests that count hashes. */
  verify?: typeof verifyPassword
  /** Milliseconds since 1970; handed in by tests. */
  now?: () => number
}

/**
 * Admits callers to routes by their `config.access`, and serves the login. Must be registered before any route; a
 * route made later without `access` stops the boot.
 */
export const auth = fastifyPlugin(
  async (app: FastifyInstance, options: AuthOptions) => {
    const { secret, audience, tokenTtl, users, refuse } = options
    const { loginLimit = usualLimit, verify = verifyPassword, now } = options
    const { hashes = new HashQueue() } = options
    await app.register(jwt, jwtOptions(secret, audience))
    const find = (username: string) => users.find(username)
    const tokens = new Tokens(app.jwt, { secret, ttl: tokenTtl, now: now ?? Date.now, find })
    // A clock that is set back must lock nobody out for longer.
    const limit = new LoginLimit({ ...loginLimit, now: now ?? (() => performance.now()) })
    const errors = createAuthErrors(refuse, audience)
    enforceAccess(app, tokens, errors)
    registerLoginRoutes(app, { users, tokens, limit, tokenTtl, errors, hashes, verify })
  },
  { name: '@domains-and-files/auth', fastify: '5.x' },
)

const usualLimit = { attempts: 10, windowMs: 15 * 60_000 }
