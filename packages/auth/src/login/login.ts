import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { Role } from '../authorization.ts'
import { callerOf } from '../caller.ts'
import type { AuthErrors } from '../errors.ts'
import type { Tokens } from '../tokens/tokens.ts'
import type { Users } from '../users/users.ts'
import type { HashQueue } from './hash-queue.ts'
import type { Attempt, LoginLimit } from './login-limit.ts'
import { longestPassword } from './password.ts'

declare module 'fastify' {
  // As @fastify/swagger has them, which the app around brings.
  interface FastifySchema {
    operationId?: string
    summary?: string
    description?: string
    tags?: readonly string[]
  }
}

const Login = z
  .strictObject({
    username: z.string().normalize('NFC').min(1).max(64),
    password: z.string().min(1).max(longestPassword),
  })
  .meta({ id: 'Login', examples: [{ username: 'admin', password: 'the password of admin' }] })
type Login = z.infer<typeof Login>

const account = { username: 'admin', role: 'admin' as const }

const Account = z
  .object({
    username: z.string(),
    role: Role,
    domains: z.array(z.string()).optional().meta({ description: 'only these; absent: all' }),
  })
  .meta({ id: 'Account', examples: [account] })

const LoggedIn = z
  .object({
    user: Account,
    access_token: z.string().meta({ description: 'for the header Authorization: Bearer …' }),
    token_type: z.literal('Bearer'),
    expires_in: z.int().meta({ description: 'seconds' }),
  })
  .meta({
    id: 'LoggedIn',
    examples: [
      {
        user: account,
        access_token: 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.c2lnbmF0dXJl',
        token_type: 'Bearer',
        expires_in: 3600,
      },
    ],
  })

const Me = z
  .object({
    user: Account,
    expires_at: z.iso.datetime().meta({ description: 'log in again before' }),
  })
  .meta({ id: 'Me', examples: [{ user: account, expires_at: '2027-01-15T10:30:00.000Z' }] })

export interface LoginDependencies {
  users: Users
  tokens: Tokens
  limit: LoginLimit
  tokenTtl: number
  errors: AuthErrors
  hashes: HashQueue
  /** Says whether a password is that of a PHC string. */
  verify: (phc: string, password: string) => Promise<boolean>
}

/** POST /api/auth/login and GET /api/auth/me. */
export function registerLoginRoutes(app: FastifyInstance, parts: LoginDependencies) {
  const { users, tokens, limit, errors, hashes, verify } = parts

  const refuseTooMany = (attempt: Attempt) => {
    const seconds = limit.secondsToWait(attempt)
    if (seconds > 0) throw errors.tooManyLogins(seconds)
  }

  app.post<{ Body: Login }>(
    '/api/auth/login',
    {
      config: { access: 'public' },
      schema: {
        operationId: 'logIn',
        summary: 'Log in',
        description:
          'Send the token that it answers with every other request: `Authorization: Bearer <access_token>`. When it has expired, log in again.',
        tags: ['auth'],
        body: Login,
        errors: [errors.credentialsInvalid(), errors.tooManyLogins(900), errors.tooBusy()],
        responses: { 200: { description: 'Who you are, and a token' } },
        response: { 200: LoggedIn },
      },
    },
    async (request, reply) => {
      reply.header('cache-control', 'no-store')
      const { username, password } = request.body
      const user = users.find(username)
      const attempt = { username, isUser: user !== undefined, address: request.ip }

      // Asked twice: who is over the limit takes no place in the queue, and who waited there may be over it by now.
      refuseTooMany(attempt)
      if (hashes.isFull) throw errors.tooBusy()
      const isRight = await hashes.run(async () => {
        refuseTooMany(attempt)
        return limit.count(attempt, () => verify(user?.password ?? users.decoy, password))
      })
      if (!user || !isRight) throw errors.credentialsInvalid()

      request.log.info({ username }, 'logged in')
      return {
        user: describe(user),
        access_token: tokens.issue(user),
        token_type: 'Bearer',
        expires_in: parts.tokenTtl,
      }
    },
  )

  app.get(
    '/api/auth/me',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getMe',
        summary: 'Who am I?',
        tags: ['auth'],
        responses: { 200: { description: 'Whose the token is, and until when' } },
        response: { 200: Me },
      },
    },
    async (request, reply) => {
      reply.header('cache-control', 'no-store')
      const caller = callerOf(request)
      return { user: describe(caller), expires_at: caller.expiresAt.toISOString() }
    },
  )
}

const describe = ({ username, role, domains }: z.infer<typeof Account>) => ({
  username,
  role,
  ...(domains && { domains }),
})
