import { randomBytes, randomUUID } from 'node:crypto'
import { type App, answers, HttpError, listPage, pageQuery } from '@domains-and-files/http'
import { z } from 'zod'
import { callerOf } from '../access-control.ts'
import { digestOf } from '../api-tokens/token-format.ts'
import { hashPassword, requireStrongPassword, weakPassword } from '../login/password.ts'
import type { Auth } from '../open-auth.ts'
import { type Caller, describeLimits, findExcess, limitsOf, refuse } from '../rights.ts'
import type { LastLogins } from './last-logins.ts'
import {
  isActive,
  listUsers,
  replaceUser,
  sourceOf,
  type User,
  updateUsers,
  withoutUser,
  withPassword,
} from './user.ts'
import {
  AtUser,
  CreatedUser,
  changeRights,
  NewUser,
  UserChange,
  UserList,
  type UserRecord,
} from './user-schema.ts'

const inviteMs = 72 * 3_600_000
const bodyLimit = 65_536 // 100 domains.

const userExists = (username: string) =>
  new HttpError(409, 'user_exists', `There is a user ${username} already`)

const userNotFound = (username: string) =>
  new HttpError(404, 'user_not_found', `No user ${username}`)

const rightsElsewhere = (username: string) =>
  new HttpError(
    409,
    'rights_elsewhere',
    `The groups of ${username} at the provider decide its rights: change them there, or OIDC_ROLES`,
  )

const lastAdmin = () =>
  new HttpError(
    409,
    'last_admin',
    'You cannot remove yourself or your role admin: another admin can, while one is left',
  )

const listUsersSchema = {
  operationId: 'listUsers',
  summary: 'List users',
  description:
    'In the order in which they were added; an admin with limits sees those within them.',
  querystring: z.strictObject(pageQuery(50, 200)),
  ...answers(200, 'The users', UserList),
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
    const seen = (await listUsers(users)).filter((user) => maySee(callerOf(request), user))
    const page = listPage('users', seen, request.query, (user) => user)
    const logins = await lastLogins.find(page.users.map(({ username }) => username))
    return { ...page, users: page.users.map((user) => describe(user, logins)) }
  })
  createUser(app, context)
  changeUser(app, context)
  app.delete(`${path}/:username`, { config, schema: deleteUserSchema }, async (request, reply) => {
    const caller = callerOf(request)
    const username = request.params.username.normalize('NFC')
    await updateUsers(users, (all) =>
      keepAdmin(caller, withoutUser(all, expectUser(all, caller, username))),
    )
    request.log.info({ username }, 'user removed')
    return reply.code(204).send(undefined)
  })
}

function createUser(app: App, { users, hashes, now }: Auth) {
  app.post(path, { config, bodyLimit, schema: createUserSchema }, async (request, reply) => {
    const { password, username, role } = request.body
    refuse(findUserExcess(callerOf(request), request.body))
    if (password !== undefined) await requireStrongPassword(password, username)
    const invite = createInvite()
    const at = now()
    const added: User = {
      ...{ username, role, ...limitsOf(request.body), id: randomUUID() },
      created_at: new Date(at).toISOString(),
    }
    const user =
      password === undefined
        ? withInvite(added, invite, at)
        : withPassword(added, await hashes(() => hashPassword(password)))
    await updateUsers(users, (all) => {
      if (all.some((each) => each.username === username)) throw userExists(username)
      return [...all, user]
    })
    request.log.info({ username, role }, 'user added')
    return reply.code(201).send({ ...describe(user), ...(password === undefined && { invite }) })
  })
}

function changeUser(app: App, { users, lastLogins, now }: Auth) {
  const changing = { config, bodyLimit, schema: changeUserSchema }
  app.patch(`${path}/:username`, changing, async (request) => {
    const caller = callerOf(request)
    const username = request.params.username.normalize('NFC')
    const invite = request.body.invite ? createInvite() : undefined
    // Read before the change: a failure after it would report a stored change as failed.
    const logins = await lastLogins.find([username])
    let changed: User | undefined
    await updateUsers(users, (all) => {
      const user = expectUser(all, caller, username)
      if (user.oidc) throw rightsElsewhere(username)
      changed = changeRights(user, request.body)
      refuse(findUserExcess(caller, changed))
      if (invite) changed = withInvite(changed, invite, now())
      return keepAdmin(caller, replaceUser(all, changed))
    })
    if (!changed) throw userNotFound(username)
    request.log.info({ username, role: changed.role, invited: Boolean(invite) }, 'user changed')
    return { ...describe(changed, logins), ...(invite && { invite }) }
  })
}

const createInvite = () => randomBytes(15).toString('base64url')

const withInvite = (user: User, code: string, now: number): User => ({
  ...user,
  invite: { digest: digestOf(code), expires_at: new Date(now + inviteMs).toISOString() },
})

// An admin with limits sees only users within them.
const maySee = (caller: Caller, user: User) =>
  isActive(user) && findUserExcess(caller, user) === undefined

// Limits of single sign-on cover this service only, while local users also have rights in the other one.
const findUserExcess = (caller: Caller, wanted: Parameters<typeof findExcess>[1]) =>
  sourceOf(caller.username) === 'oidc' && (caller.domains || caller.folders)
    ? 'An admin of single sign-on with limits manages no users'
    : findExcess(caller, wanted)

function expectUser(all: User[], caller: Caller, username: string): User {
  const user = all.find((each) => each.username === username && maySee(caller, each))
  if (!user) throw userNotFound(username)
  return user
}

// The caller must stay an admin, so one is always left: of two admins who remove each other concurrently, the second fails.
function keepAdmin(caller: Caller, after: User[]): User[] {
  const isCaller = (user: User) =>
    user.username === caller.username && (user.oidc ? isActive(user) : user.role === 'admin')
  if (!after.some(isCaller)) throw lastAdmin()
  return after
}

function describe(
  user: User,
  logins?: Awaited<ReturnType<LastLogins['find']>>,
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
