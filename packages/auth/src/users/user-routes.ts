import { randomBytes } from 'node:crypto'
import { type App, answers, listPage, listSchema, operations, pageQuery } from '@domains-and-files/http'
import { z } from 'zod'
import { digestOf } from '../api-tokens/token-format.ts'
import * as errors from '../errors.ts'
import { describeLimits, shownLimits } from '../limits.ts'
import { hashPassword, requireStrongPassword } from '../login/password.ts'
import type { Auth } from '../open-auth.ts'
import { type Caller, isLimited, Role } from '../rights.ts'
import { findLogins } from './sql-users.ts'
import {
  addUser,
  changedRights,
  changeRights,
  changeUser,
  expectUser,
  explainToClient,
  isActive,
  NewUser,
  Source,
  sourceOf,
  type User,
  Username,
  type Users,
  withoutAccess,
} from './user.ts'

const UserRecord = z
  .object({
    username: z.string().meta({ examples: ['alice'] }),
    role: Role,
    ...shownLimits,
    source: Source,
    created_at: z.iso.datetime().nullable().describe('null: not known'),
    last_login_at: z.iso.datetime().nullable().describe('null: not yet, in this service'),
  })
  .meta({ id: 'User' })

const CreatedUser = UserRecord.extend({
  invite: z.string().optional().describe('shown only now, valid once and for 72 hours, for `POST /api/auth/password`'),
}).meta({ id: 'CreatedUser' })

const UserChange = z
  .strictObject({
    ...changedRights,
    invite: z.literal(true).optional().describe('a new invitation, such as for a forgotten password: in the response'),
  })
  .refine((change) => Object.keys(change).length > 0, 'must change something')
  .meta({ id: 'UserChange', examples: [{ role: 'viewer' }] })

const path = '/api/users'
const params = z.strictObject({ username: Username.meta({ examples: ['alice'] }) })

const routes = operations({
  shared: { access: 'admin', needsLogin: true, needsNoLimits: true },
  listUsers: {
    needsLogin: false,
    summary: 'List users',
    description: 'In the order in which they were added. Only admins without limits manage users.',
    querystring: z.strictObject(pageQuery(50, 200)),
    ...answers(200, 'The users', listSchema('UserList', 'users', UserRecord)),
  },
  createUser: {
    summary: 'Add a user',
    description: 'With a password, or with an invitation by which the person sets one.',
    body: NewUser,
    errors: [errors.weakPassword(), errors.userExists('alice')],
    ...answers(201, 'The user, and an invitation if there is no password', CreatedUser),
  },
  changeUser: {
    summary: 'Change the rights of a user, or invite it to set another password',
    description:
      'Rights count at once, also for the logins and API tokens of the user. The password stays valid until the invitation is accepted.',
    params,
    body: UserChange,
    errors: [errors.userNotFound('alice'), errors.lastAdmin(), errors.rightsElsewhere('oidc:bob')],
    ...answers(200, 'The changed user, and the invitation if one was wanted', CreatedUser),
  },
  deleteUser: {
    summary: 'Remove a user',
    description:
      'The logins and API tokens of the user end at once. One of single sign-on is barred until `users allow` admits it.',
    params,
    errors: [errors.userNotFound('alice'), errors.lastAdmin()],
    ...answers(204, 'Removed'),
  },
})

/** The users of the service, for admins: the same that `npm run users` edits. */
export function registerUserRoutes(app: App, context: Auth) {
  const { users, database } = context
  app.get(path, routes.listUsers, async (request) => {
    const all = await users.list().catch(explainToClient)
    const page = listPage('users', all.filter(isActive), request.query, (user) => user)
    const logins = await findLogins(database, page.users)
    return { ...page, users: page.users.map((user) => describe(user, logins)) }
  })
  serveChanges(app, context)
  app.delete(`${path}/:username`, routes.deleteUser, async (request) => {
    const { username } = request.params
    await changeOther(users, request.caller, username, (user) => withoutAccess(username, user))
    request.log.info({ username }, 'user removed')
  })
}

function serveChanges(app: App, { users, database, hashes, now }: Auth) {
  const bodyLimit = 65_536 // 100 domains.
  app.post(path, { ...routes.createUser, bodyLimit }, async (request) => {
    const { password, username, ...rights } = request.body
    const { role } = rights
    if (password !== undefined) await requireStrongPassword(password, username)
    const { code, invite } = createInvite(now())
    const isInvited = password === undefined
    const credentials = isInvited ? { invite } : { password: await hashes(() => hashPassword(password)) }
    const user = await addUser(users, { ...changeRights({ username, role }, rights), ...credentials }, now())
    request.log.info({ username, role }, 'user added')
    return { ...describe(user), ...(isInvited && { invite: code }) }
  })
  app.patch(`${path}/:username`, { ...routes.changeUser, bodyLimit }, async ({ body, caller, log, params }) => {
    const { username } = params
    const { invite: isInvited = false, ...change } = body
    const { code, invite } = createInvite(now())
    // Read before the change: a failure after it would report a stored change as failed.
    const logins = await findLogins(database, [{ username }])
    const changed = await changeOther(users, caller, username, (user) => {
      if (user.oidc) throw errors.rightsElsewhere(username)
      return { ...changeRights(user, change), ...(isInvited && { invite }) }
    })
    log.info({ username, role: changed.role, invited: isInvited }, 'user changed')
    return { ...describe(changed, logins), ...(isInvited && { invite: code }) }
  })
}

function createInvite(now: number) {
  const code = randomBytes(15).toString('base64url')
  const expires_at = new Date(now + 72 * 3_600_000).toISOString()
  return { code, invite: { digest: digestOf(code), expires_at } }
}

/**
 * Changes a user who is not barred. The caller must stay an admin without limits, so one is always left: of two
 * admins who remove each other concurrently, the second fails.
 */
const changeOther = <Changed extends User | undefined>(
  users: Users,
  caller: Caller,
  username: string,
  change: (user: User) => Changed,
) =>
  changeUser(users, username, (before, all) => {
    const user = expectUser(before && isActive(before) ? before : undefined, username)
    const changed = change(user)
    const isCaller = (each?: User) =>
      each?.username === caller.username && (each.oidc ? isActive(each) : each.role === 'admin' && !isLimited(each))
    if (!all.some((each) => isCaller(each === user ? changed : each))) throw errors.lastAdmin()
    return changed
  })

function describe(user: User, logins?: Awaited<ReturnType<typeof findLogins>>): z.input<typeof UserRecord> {
  const { username, created_at = null } = user
  const { at, rights } = logins?.get(username) ?? {}
  const { role, ...limits } = { ...user, ...rights }
  return {
    username,
    role,
    ...describeLimits(limits),
    source: sourceOf(username),
    created_at,
    last_login_at: at === undefined ? null : new Date(at).toISOString(),
  }
}
