import { randomBytes, randomUUID } from 'node:crypto'
import {
  type App,
  answers,
  HttpError,
  listPage,
  listSchema,
  pageQuery,
} from '@domains-and-files/http'
import { z } from 'zod'
import { callerOf } from '../access-control.ts'
import { digestOf } from '../api-tokens/token-format.ts'
import { shownLimits, wantedLimits } from '../limits.ts'
import {
  hashPassword,
  maxPasswordLength,
  requireStrongPassword,
  weakPassword,
} from '../login/password.ts'
import type { Auth } from '../open-auth.ts'
import { type Caller, describeLimits, findExcess, limitsOf, Role, refuse } from '../rights.ts'
import {
  changeUser,
  expectUser,
  explainToClient,
  isActive,
  LocalUsername,
  Source,
  sourceOf,
  type User,
  userExists,
  userNotFound,
  withoutAccess,
} from './user.ts'

const inviteMs = 72 * 3_600_000
const bodyLimit = 65_536 // 100 domains.

const rightsElsewhere = (username: string) =>
  new HttpError(409, 'rights_elsewhere', `Change the groups of ${username} at the provider`)

const lastAdmin = () =>
  new HttpError(409, 'last_admin', 'Only another admin can remove you, or your role admin')

const example = {
  ...{ username: 'alice', role: 'editor' as const, domains: ['example.com'], folders: null },
  ...{ writes: null, source: 'local' as const },
  created_at: '2027-01-15T09:30:00.000Z',
  last_login_at: null,
}

const UserRecord = z
  .object({
    username: z.string(),
    role: Role,
    ...shownLimits,
    source: Source,
    created_at: z.iso.datetime().nullable().describe('null: not known'),
    last_login_at: z.iso.datetime().nullable().describe('null: not yet, in this service'),
  })
  .meta({ id: 'User', examples: [example] })

/** Request for a new user. */
export const NewUser = z
  .strictObject({
    username: LocalUsername,
    role: Role,
    password: z
      .string()
      .max(maxPasswordLength)
      .optional()
      .describe('without one, the response has an `invite`'),
    ...wantedLimits,
  })
  .meta({
    id: 'NewUser',
    examples: [{ username: 'alice', role: 'editor', domains: ['example.com'] }],
  })

const CreatedUser = UserRecord.extend({
  invite: z
    .string()
    .optional()
    .describe('shown only now, valid once and for 72 hours: `POST /api/auth/password` takes it'),
}).meta({ id: 'CreatedUser', examples: [{ ...example, invite: 'Zk3v8QmT1xY7pLr2Wd5c' }] })

/** Request for a change of a user: null gives up a limit. */
export const UserChange = z
  .strictObject({
    role: Role.optional(),
    domains: wantedLimits.domains.nullable().describe('null: all'),
    folders: wantedLimits.folders.nullable().describe('null: all'),
    writes: wantedLimits.writes.nullable(),
    invite: z
      .literal(true)
      .optional()
      .describe(
        'a new invitation, after a forgotten password or an expired invitation: the response has it',
      ),
  })
  .refine((change) => Object.keys(change).length > 0, 'must change something')
  .meta({ id: 'UserChange', examples: [{ role: 'viewer' }] })

const AtUser = z.strictObject({ username: z.string().meta({ examples: ['alice'] }) })

const listUsersSchema = {
  operationId: 'listUsers',
  summary: 'List users',
  description:
    'In the order in which they were added; an admin with limits sees those within them.',
  querystring: z.strictObject(pageQuery(50, 200)),
  ...answers(200, 'The users', listSchema('UserList', 'users', UserRecord)),
}

const createUserSchema = {
  operationId: 'createUser',
  summary: 'Add a user',
  description: 'With a password, or with an invitation by which the person sets one.',
  body: NewUser,
  errors: [weakPassword('A password must have at least 10 characters'), userExists('alice')],
  ...answers(201, 'The user, and an invitation if there is no password', CreatedUser),
}

const changeUserSchema = {
  operationId: 'changeUser',
  summary: 'Change the rights of a user, or invite it to set another password',
  description:
    'Rights count at once, also for the logins and API tokens of the user. The password stays valid until the invitation is accepted.',
  params: AtUser,
  body: UserChange,
  errors: [userNotFound('alice'), lastAdmin(), rightsElsewhere('oidc:bob')],
  ...answers(200, 'The changed user, and the invitation if one was wanted', CreatedUser),
}

const deleteUserSchema = {
  operationId: 'deleteUser',
  summary: 'Remove a user',
  description:
    'The logins and API tokens of the user end at once. One of single sign-on is barred until `users allow` admits it.',
  params: AtUser,
  errors: [userNotFound('alice'), lastAdmin()],
  ...answers(204, 'Removed'),
}

const path = '/api/users'
const config = { access: 'admin', needsLogin: true } as const

/** The users of the service, for admins: the same that `npm run users` edits. */
export function registerUserRoutes(app: App, context: Auth) {
  const { users, lastLogins } = context
  const listed = { config: { access: 'admin' } as const, schema: listUsersSchema }
  app.get(path, listed, async (request) => {
    const all = await users.list().catch(explainToClient)
    const seen = all.filter((user) => maySee(callerOf(request), user))
    const page = listPage('users', seen, request.query, (user) => user)
    const logins = await lastLogins.find(page.users.map(({ username }) => username))
    return { ...page, users: page.users.map((user) => describe(user, logins)) }
  })
  serveCreation(app, context)
  serveChanges(app, context)
  app.delete(`${path}/:username`, { config, schema: deleteUserSchema }, async (request, reply) => {
    const caller = callerOf(request)
    const username = request.params.username.normalize('NFC')
    await changeUser(users, username, (before, all) => {
      const user = expectVisible(caller, username, before)
      return keepAdmin(caller, all, user, withoutAccess(username, user))
    })
    request.log.info({ username }, 'user removed')
    return reply.code(204).send(undefined)
  })
}

function serveCreation(app: App, { users, hashes, now }: Auth) {
  app.post(path, { config, bodyLimit, schema: createUserSchema }, async (request, reply) => {
    const { password, ...wanted } = request.body
    const { username, role } = wanted
    refuse(findUserExcess(callerOf(request), wanted))
    if (password !== undefined) await requireStrongPassword(password, username)
    const code = createCode()
    const credentials =
      password === undefined
        ? { invite: inviteOf(code, now()) }
        : { password: await hashes(() => hashPassword(password)) }
    const created_at = new Date(now()).toISOString()
    const user = { ...wanted, ...credentials, id: randomUUID(), created_at }
    await changeUser(users, username, (before) => {
      if (before) throw userExists(username)
      return user
    })
    request.log.info({ username, role }, 'user added')
    const invite = password === undefined && { invite: code }
    return reply.code(201).send({ ...describe(user), ...invite })
  })
}

function serveChanges(app: App, { users, lastLogins, now }: Auth) {
  const changing = { config, bodyLimit, schema: changeUserSchema }
  app.patch(`${path}/:username`, changing, async (request) => {
    const caller = callerOf(request)
    const username = request.params.username.normalize('NFC')
    const code = request.body.invite && createCode()
    // Read before the change: a failure after it would report a stored change as failed.
    const logins = await lastLogins.find([username])
    const changed = await changeUser(users, username, (before, all) => {
      const user = expectVisible(caller, username, before)
      if (user.oidc) throw rightsElsewhere(username)
      const changed = changeRights(user, request.body)
      refuse(findUserExcess(caller, changed))
      const invite = code && { invite: inviteOf(code, now()) }
      return keepAdmin(caller, all, user, { ...changed, ...invite })
    })
    request.log.info({ username, role: changed.role, invited: Boolean(code) }, 'user changed')
    return { ...describe(changed, logins), ...(code && { invite: code }) }
  })
}

/** The user with other rights: null gives up a limit, undefined keeps it. */
export function changeRights(
  { role, domains, folders, writes, ...user }: User,
  change: z.infer<typeof UserChange>,
): User {
  const limits = limitsOf({ ...limitsOf({ domains, folders, writes }), ...change })
  return { ...user, role: change.role ?? role, ...limits }
}

const createCode = () => randomBytes(15).toString('base64url')

const inviteOf = (code: string, now: number) => ({
  digest: digestOf(code),
  expires_at: new Date(now + inviteMs).toISOString(),
})

// An admin with limits sees only users within them.
const maySee = (caller: Caller, user: User) =>
  isActive(user) && findUserExcess(caller, user) === undefined

// Limits of single sign-on cover this service only, while local users also have rights in the other one.
const findUserExcess = (caller: Caller, wanted: Parameters<typeof findExcess>[1]) =>
  sourceOf(caller.username) === 'oidc' && (caller.domains || caller.folders)
    ? 'An admin of single sign-on with limits manages no users'
    : findExcess(caller, wanted)

const expectVisible = (caller: Caller, username: string, user?: User) =>
  expectUser(user && maySee(caller, user) ? user : undefined, username)

// The caller must stay an admin, so one is always left: of two admins who remove each other concurrently, the second fails.
function keepAdmin<Changed extends User | undefined>(
  caller: Caller,
  all: User[],
  before: User,
  changed: Changed,
): Changed {
  const isCaller = (user?: User) =>
    user?.username === caller.username && (user.oidc ? isActive(user) : user.role === 'admin')
  if (!all.some((user) => isCaller(user === before ? changed : user))) throw lastAdmin()
  return changed
}

function describe(
  user: User,
  logins?: Awaited<ReturnType<Auth['lastLogins']['find']>>,
): z.input<typeof UserRecord> {
  const { username, created_at } = user
  const login = logins?.get(username)
  const { role, ...limits } = { ...user, ...login?.rights }
  return {
    ...{ username, role, ...describeLimits(limits), source: sourceOf(username) },
    created_at: created_at ?? null,
    last_login_at: login?.at.toISOString() ?? null,
  }
}
