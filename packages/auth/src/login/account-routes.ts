import { randomUUID, timingSafeEqual } from 'node:crypto'
import { type App, answers } from '@domains-and-files/http'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { callerOf, requireLogin } from '../access-control.ts'
import { digestOf } from '../api-tokens/token-format.ts'
import {
  credentialsInvalid,
  loginRequired,
  passwordLoginOff,
  tokenMissing,
  tooBusy,
  tooManyLogins,
} from '../errors.ts'
import type { Auth } from '../open-auth.ts'
import { changeUser, type User, Username, withPassword } from '../users/user.ts'
import { verifyLogin } from './login.ts'
import { hashPassword, maxPasswordLength, requireStrongPassword, weakPassword } from './password.ts'

const NewPassword = z
  .strictObject({
    current: z
      .string()
      .min(1)
      .max(maxPasswordLength)
      .optional()
      .describe('your password until now; instead of `username` and `invite`'),
    username: Username.optional(),
    invite: z.string().min(1).max(100).optional().describe('the code of an invitation'),
    new: z
      .string()
      .max(maxPasswordLength)
      .describe('at least 10 characters, not your username, not among the most common passwords'),
  })
  .superRefine(({ current, username, invite }, context) => {
    const isInvited = username !== undefined && invite !== undefined
    if (current === undefined ? isInvited : !username && !invite) return
    const message = 'must be given, or else `username` and `invite`'
    context.addIssue({ code: 'custom', path: ['current'], message })
  })
  .meta({ id: 'NewPassword', examples: [{ current: 'the old password', new: 'the new password' }] })

const setPasswordSchema = {
  operationId: 'setPassword',
  summary: 'Change your password, or accept an invitation',
  description:
    'With `current`: your own, with the token of a login, which goes on while all your other logins end; API tokens stay valid until they are revoked. With `username` and `invite`: the first one, without a token.',
  body: NewPassword,
  errors: [
    weakPassword('A password must have at least 10 characters'),
    ...[credentialsInvalid(), tokenMissing(), loginRequired()],
    ...[passwordLoginOff(), tooManyLogins(900), tooBusy()],
  ],
  ...answers(204, 'The new password counts from now on'),
}

const logOutSchema = {
  operationId: 'logOut',
  summary: 'Log out',
  description:
    'The token that is sent ends at once, at every replica. Other logins go on, unless `everywhere` is true; API tokens do in any case.',
  querystring: z.strictObject({
    everywhere: z
      .stringbool({ error: 'must be true or false' })
      .default(false)
      .describe('ends all logins of this user'),
  }),
  ...answers(204, 'The token has ended'),
}

export function registerAccountRoutes(app: App, context: Auth) {
  const { users, sessions } = context
  // Public: an invited person has no token yet.
  const setting = { config: { access: 'public' } as const, schema: setPasswordSchema }
  app.post('/api/auth/password', setting, async (request, reply) => {
    const { current, username = '', invite = '', new: password } = request.body
    if (current === undefined)
      await acceptInvite(context, { username, invite, password, address: request.ip })
    else await changePassword(context, request, { current, password })
    return reply.code(204).send(undefined)
  })
  const ending = { access: 'viewer', needsLogin: true } as const
  const out = { config: ending, schema: logOutSchema }
  app.post('/api/auth/logout', out, async (request, reply) => {
    const caller = callerOf(request)
    if (request.query.everywhere)
      await changeUser(users, caller.username, (user) => user && { ...user, logins: randomUUID() })
    await sessions.end(caller)
    return reply.code(204).send(undefined)
  })
}

async function changePassword(
  context: Auth,
  request: FastifyRequest,
  { current, password }: { current: string; password: string },
) {
  const { username, session } = requireLogin(await context.authenticate(request))
  await requireStrongPassword(password, username)
  const verified = await verifyLogin(context, { username, password: current, address: request.ip })
  // Compare-and-set: a concurrent change of the password makes the verified one outdated.
  const isRight = (user: User) => user.password === verified.password
  await storePassword(context, { username, password, session }, isRight)
  request.log.info({ username }, 'password changed')
}

// An unknown user, an expired invitation and a wrong code get the same response, and count as failed logins.
async function acceptInvite(
  context: Auth,
  { invite, address, ...wanted }: Record<'username' | 'invite' | 'password' | 'address', string>,
) {
  const { users, limit, now, isPasswordLoginOn } = context
  if (!isPasswordLoginOn) throw passwordLoginOff()
  const { username, password } = wanted
  await requireStrongPassword(password, username)
  const invited = await users.find(username)
  const digest = Buffer.from(digestOf(invite))
  const isRight = (user: User | undefined) =>
    user?.invite !== undefined &&
    Date.parse(user.invite.expires_at) > now() &&
    timingSafeEqual(Buffer.from(user.invite.digest), digest)
  const attempt = { username, isUser: invited !== undefined, address }
  if (!(await limit.run(attempt, async () => isRight(invited)))) throw credentialsInvalid()
  // `isRight` is evaluated again under the lock: of two concurrent requests with one code, the second gets 401.
  await storePassword(context, wanted, isRight)
}

/** Stores the password, if `isRight` holds for the user under the lock. @throws {HttpError} 401 otherwise. */
async function storePassword(
  { users, hashes }: Auth,
  wanted: { username: string; password: string; session?: string | undefined },
  isRight: (user: User) => boolean,
) {
  const hash = await hashes(() => hashPassword(wanted.password))
  await changeUser(users, wanted.username, (user) => {
    if (!user || !isRight(user)) throw credentialsInvalid()
    return withPassword(user, hash, wanted.session)
  })
}
