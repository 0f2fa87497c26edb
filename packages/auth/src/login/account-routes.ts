import { randomUUID, timingSafeEqual } from 'node:crypto'
import { type App, answers, booleanQuery, operations } from '@domains-and-files/http'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { digestOf } from '../api-tokens/token-format.ts'
import * as errors from '../errors.ts'
import { Writes } from '../limits.ts'
import type { Auth } from '../open-auth.ts'
import { limitsOf, Role } from '../rights.ts'
import { recordLogin } from '../users/sql-users.ts'
import { changeUser, sourceOf, type User, Username, withPassword } from '../users/user.ts'
import { hashPassword, isQueueFull, makeDummyHash, Password, requireStrongPassword } from './password.ts'

const Login = z
  .strictObject({
    username: z
      .string()
      .normalize('NFC')
      .min(1)
      .max(64)
      .meta({ examples: ['admin'] }),
    password: Password.min(1).meta({ examples: ['correct horse battery'] }),
  })
  .meta({ id: 'Login' })

const Account = z
  .object({
    username: z.string().meta({ examples: ['admin'] }),
    role: Role.meta({ examples: ['admin'] }),
    domains: z.array(z.string()).optional().describe('only these; absent: all'),
    folders: z.array(z.string()).optional().describe('only these; absent: all'),
    writes: Writes.optional(),
    source: z.literal('oidc').optional().describe('logged in at the OpenID provider'),
  })
  .meta({ id: 'Account' })

export const LoggedIn = z
  .object({
    user: Account,
    access_token: z.string().meta({
      description: 'for the header Authorization: Bearer …',
      examples: ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.c2lnbmF0dXJl'],
    }),
    token_type: z.literal('Bearer'),
    expires_in: z.int().meta({ description: 'seconds', examples: [3600] }),
  })
  .meta({ id: 'LoggedIn' })

const Me = z
  .object({ user: Account, expires_at: z.iso.datetime().nullable().describe('null: never') })
  .meta({ id: 'Me' })

const NewPassword = z
  .strictObject({
    current: Password.min(1).optional().describe('your password until now; instead of `username` and `invite`'),
    username: Username.optional(),
    invite: z.string().min(1).max(100).optional().describe('the code of an invitation'),
    new: Password.describe('at least 10 characters, not your username, not among the most common passwords'),
  })
  .refine(({ current, username, invite }) => (current === undefined ? username && invite : !username && !invite), {
    path: ['current'],
    error: 'must be given, or else `username` and `invite`',
  })
  .meta({ id: 'NewPassword', examples: [{ current: 'the old password', new: 'the new password' }] })

const refusals = [errors.credentialsInvalid(), errors.passwordLoginOff(), errors.tooManyLogins(900), errors.tooBusy()]

const routes = operations({
  shared: { access: 'public' },
  logIn: {
    summary: 'Log in',
    description:
      'Send the returned token with every other request: `Authorization: Bearer <access_token>`. When it has expired, log in again.',
    body: Login,
    errors: refusals,
    ...answers(200, 'Your account, and a token', LoggedIn),
  },
  getMe: {
    access: 'viewer',
    enforcesRecordLimits: true,
    summary: 'Who am I?',
    description: 'The caller behind the token of this request: user, role and limits.',
    ...answers(200, 'The account of the token, and its expiry', Me),
  },
  // Public, since an invited person has no token yet.
  setPassword: {
    summary: 'Change your password, or accept an invitation',
    description:
      'With `current`: your own, with the token of a login, which goes on while all your other logins end; API tokens stay valid until they are revoked. With `username` and `invite`: the first one, without a token.',
    body: NewPassword,
    errors: [errors.weakPassword(), errors.tokenMissing(), errors.loginRequired(), ...refusals],
    ...answers(204, 'The new password counts from now on'),
  },
  logOut: {
    access: 'viewer',
    needsLogin: true,
    summary: 'Log out',
    description:
      'The token that is sent ends at once, at every replica. Other logins go on, unless `everywhere` is true; API tokens do in any case.',
    querystring: z.strictObject({
      everywhere: booleanQuery(false, 'ends all logins of this user'),
    }),
    ...answers(204, 'The token has ended'),
  },
})

/** Logs users in and out, and sets their passwords. */
export function registerAccountRoutes(app: App, context: Auth) {
  const { users, sessions, database, now } = context
  app.post('/api/auth/login', routes.logIn, async (request) => {
    const user = await verifyLogin(context, { ...request.body, address: request.ip })
    // A full disk keeps nobody from logging in.
    recordLogin(database, { username: user.username, at: now() }).catch((err: unknown) =>
      request.log.warn({ err }, 'last use not recorded'),
    )
    return answerLogin(request, user, context)
  })
  app.get('/api/auth/me', routes.getMe, async ({ caller }) => ({
    user: describe(caller),
    expires_at: caller.expiresAt?.toISOString() ?? null,
  }))
  app.post('/api/auth/password', routes.setPassword, async (request) => {
    await setPassword(context, request, request.body)
  })
  app.post('/api/auth/logout', routes.logOut, async ({ caller, query }) => {
    if (query.everywhere) await changeUser(users, caller.username, (user) => user && { ...user, logins: randomUUID() })
    await sessions.end(caller)
  })
}

export function answerLogin(request: FastifyRequest, user: User, { sessions, tokenTtl }: Auth) {
  request.log.info({ username: user.username }, 'logged in')
  const access_token = sessions.issue(user)
  return { user: describe(user), access_token, token_type: 'Bearer' as const, expires_in: tokenTtl }
}

function describe({ username, role, ...limits }: Omit<z.infer<typeof Account>, 'source'>) {
  const source = sourceOf(username) === 'oidc' && { source: 'oidc' as const }
  return { username, role, ...limitsOf(limits), ...source }
}

/**
 * Verifies a username and password. A wrong one counts against the limits of failed logins.
 * @throws {HttpError} 401, 403 where passwords are switched off, 429, or 503 while too many hashes wait.
 */
async function verifyLogin(
  { users, limit, hashes, verify, isPasswordLoginOn }: Auth,
  { username, password, address }: Record<'username' | 'password' | 'address', string>,
): Promise<User> {
  if (!isPasswordLoginOn) throw errors.passwordLoginOff()
  // Always both: response time must not reveal whether the user exists.
  const [user, first] = await Promise.all([users.find(username), users.first()])
  const hash = user?.password ?? makeDummyHash(first?.password)
  const attempt = { username, isUser: user !== undefined, address }
  await limit.check(attempt)
  if (isQueueFull(hashes)) throw errors.tooBusy()
  // Earlier attempts may reach the limit while this one is queued, so `limit.run` checks again.
  const isRight = await hashes(() => limit.run(attempt, () => verify(hash, password)))
  if (!user || !isRight) throw errors.credentialsInvalid()
  return user
}

async function setPassword(
  context: Auth,
  request: FastifyRequest,
  { current, username: invited = '', invite = '', new: password }: z.infer<typeof NewPassword>,
) {
  const isInvited = current === undefined
  if (isInvited && !context.isPasswordLoginOn) throw errors.passwordLoginOff()
  const owner = isInvited ? undefined : await context.authenticate(request)
  if (owner?.token) throw errors.loginRequired()
  const username = owner?.username ?? invited
  await requireStrongPassword(password, username)
  const attempt = { username, address: request.ip }
  const isRight = isInvited
    ? await verifyInvite(context, { ...attempt, invite })
    : await verifyCurrent(context, { ...attempt, password: current })
  const hash = await context.hashes(() => hashPassword(password))
  await changeUser(context.users, username, (user) => {
    // Again under the lock: a concurrent request may have used the invitation, or changed the password.
    if (!user || !isRight(user)) throw errors.credentialsInvalid()
    return withPassword(user, hash, owner?.session)
  })
  request.log.info({ username }, 'password changed')
}

async function verifyCurrent(context: Auth, attempt: Parameters<typeof verifyLogin>[1]) {
  const verified = await verifyLogin(context, attempt)
  return (user: User) => user.password === verified.password
}

// An unknown user, an expired invitation and a wrong code get the same response, and count as failed logins.
async function verifyInvite(
  { users, limit, now }: Auth,
  { username, invite, address }: Record<'username' | 'invite' | 'address', string>,
) {
  const invited = await users.find(username)
  const digest = Buffer.from(digestOf(invite))
  const isRight = (user: User | undefined) =>
    user?.invite !== undefined &&
    Date.parse(user.invite.expires_at) > now() &&
    timingSafeEqual(Buffer.from(user.invite.digest), digest)
  const attempt = { username, isUser: invited !== undefined, address }
  if (!(await limit.run(attempt, async () => isRight(invited)))) throw errors.credentialsInvalid()
  return isRight
}
