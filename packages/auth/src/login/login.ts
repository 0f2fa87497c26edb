import { type App, answers } from '@domains-and-files/http'
import { z } from 'zod'
import { callerOf } from '../access-control.ts'
import { credentialsInvalid, passwordLoginOff, tooBusy, tooManyLogins } from '../errors.ts'
import { RecordLimit, Writes } from '../limits.ts'
import type { Auth } from '../open-auth.ts'
import { limitsOf, Role } from '../rights.ts'
import { Source, sourceOf, type User } from '../users/user.ts'
import { isQueueFull, maxPasswordLength } from './password.ts'

const Login = z
  .strictObject({
    username: z.string().normalize('NFC').min(1).max(64),
    password: z.string().min(1).max(maxPasswordLength),
  })
  .meta({ id: 'Login', examples: [{ username: 'admin', password: 'the password of admin' }] })

const account = { username: 'admin', role: 'admin' as const }

const Account = z
  .object({
    username: z.string(),
    role: Role,
    domains: z.array(z.string()).optional().describe('only these; absent: all'),
    folders: z.array(z.string()).optional().describe('only these; absent: all'),
    writes: Writes.optional(),
    source: Source.exclude(['local'])
      .optional()
      .describe('where the caller logs in; absent: here, with a password'),
  })
  .meta({ id: 'Account', examples: [account] })

const exampleLogin = {
  user: account,
  access_token: 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.c2lnbmF0dXJl',
  ...{ token_type: 'Bearer', expires_in: 3600 },
}

export const LoggedIn = z
  .object({
    user: Account,
    access_token: z.string().describe('for the header Authorization: Bearer …'),
    token_type: z.literal('Bearer'),
    expires_in: z.int().describe('seconds'),
  })
  .meta({ id: 'LoggedIn', examples: [exampleLogin] })

const Me = z
  .object({
    user: Account,
    expires_at: z.iso.datetime().nullable().describe('null: never'),
    token: z
      .object({ id: z.string(), name: z.string(), records: z.array(RecordLimit).optional() })
      .optional()
      .describe('the API token, if one was sent'),
  })
  .meta({ id: 'Me', examples: [{ user: account, expires_at: '2027-01-15T10:30:00.000Z' }] })

/**
 * Verifies a username and password. A wrong one counts against the limits of failed logins.
 * @throws {HttpError} 401, 403 where passwords are switched off, 429, or 503 while too many hashes wait.
 */
export async function verifyLogin(
  { users, limit, hashes, verify, isPasswordLoginOn }: Auth,
  { username, password, address }: { username: string; password: string; address: string },
): Promise<User> {
  if (!isPasswordLoginOn) throw passwordLoginOff()
  const { user, hash } = await users.findLogin(username)
  const attempt = { username, isUser: user !== undefined, address }
  await limit.check(attempt)
  if (isQueueFull(hashes)) throw tooBusy()
  // Earlier attempts may reach the limit while this one is queued, so `limit.run` checks again.
  const isRight = await hashes(() => limit.run(attempt, () => verify(hash, password)))
  if (!user || !isRight) throw credentialsInvalid()
  return user
}

const logInSchema = {
  operationId: 'logIn',
  summary: 'Log in',
  description:
    'Send the returned token with every other request: `Authorization: Bearer <access_token>`. When it has expired, log in again.',
  body: Login,
  errors: [credentialsInvalid(), passwordLoginOff(), tooManyLogins(900), tooBusy()],
  ...answers(200, 'Your account, and a token', LoggedIn),
}

const getMeSchema = {
  operationId: 'getMe',
  summary: 'Who am I?',
  description: 'The caller behind the token of this request: user, role and limits.',
  ...answers(200, 'The account of the token, and its expiry', Me),
}

export function registerLoginRoutes(app: App, context: Auth) {
  const config = { access: 'public' } as const
  app.post('/api/auth/login', { config, schema: logInSchema }, async (request) => {
    const user = await verifyLogin(context, { ...request.body, address: request.ip })
    context.lastLogins.record(user.username)
    request.log.info({ username: user.username }, 'logged in')
    return describeLogin(user, context)
  })
  const own = { access: 'viewer', enforcesRecordLimits: true } as const
  app.get('/api/auth/me', { config: own, schema: getMeSchema }, async (request) => {
    const caller = callerOf(request)
    const { token, records, expiresAt } = caller
    return {
      user: describe(caller),
      expires_at: expiresAt?.toISOString() ?? null,
      ...(token && { token: { ...token, records } }),
    }
  })
}

/** The response to a login, with a new session token. */
export const describeLogin = (
  user: User,
  { sessions, tokenTtl }: Auth,
): z.infer<typeof LoggedIn> => ({
  user: describe(user),
  access_token: sessions.issue(user),
  token_type: 'Bearer',
  expires_in: tokenTtl,
})

function describe({ username, role, ...limits }: Omit<z.infer<typeof Account>, 'source'>) {
  const source = sourceOf(username)
  return { username, role, ...limitsOf(limits), ...(source !== 'local' && { source }) }
}
