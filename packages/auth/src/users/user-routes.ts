import { randomBytes, randomUUID } from 'node:crypto'
import {
  type App,
  defineRoute,
  HttpError,
  Pagination,
  pageQuery,
  paginate,
} from '@domains-and-files/http'
import { z } from 'zod'
import { loggedInCallerOf } from '../access-control.ts'
import { loginRequired } from '../errors.ts'
import { Domains, Folders } from '../limits.ts'
import { inviteDigestOf } from '../login/account-routes.ts'
import {
  type HashQueue,
  hashPassword,
  maxPasswordLength,
  requireStrongPassword,
  weakPassword,
} from '../login/password.ts'
import { type Caller, findExcess, limitsOf, Role } from '../rights.ts'
import type { LastLogins } from './last-logins.ts'
import { listUsers as listAll, type User, Username, type Users, updateUsers } from './user.ts'

interface Dependencies {
  users: Users
  lastLogins: LastLogins
  hashes: HashQueue
  now: () => number
}

const inviteMs = 72 * 3_600_000
const bodyLimit = 65_536 // 100 domains.

const example = {
  username: 'alice',
  role: 'editor' as const,
  domains: ['example.com'],
  folders: null,
  source: 'local' as const,
  created_at: '2027-01-15T09:30:00.000Z',
  last_login_at: null,
}

const UserRecord = z
  .object({
    username: z.string(),
    role: Role,
    domains: z.array(z.string()).nullable().meta({ description: 'null: all' }),
    folders: z
      .array(z.string())
      .nullable()
      .meta({ description: 'of the static service; null: all' }),
    source: z.enum(['local']).meta({ description: 'where the user logs in' }),
    created_at: z.iso.datetime().nullable().meta({ description: 'null: not known' }),
    last_login_at: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'null: not yet, in this service' }),
  })
  .meta({ id: 'User', examples: [example] })

const UserList = z.object({ users: z.array(UserRecord), pagination: Pagination }).meta({
  id: 'UserList',
  examples: [
    {
      users: [example],
      pagination: { page: 1, page_size: 50, total_items: 1, total_pages: 1 },
    },
  ],
})

const NewUser = z
  .strictObject({
    username: Username,
    role: Role,
    password: z
      .string()
      .max(maxPasswordLength)
      .optional()
      .meta({ description: 'without one, the response has an `invite`' }),
    domains: Domains.max(100).optional().meta({ description: 'only these; absent: all' }),
    folders: Folders.optional().meta({ description: 'only these; absent: all' }),
  })
  .meta({
    id: 'NewUser',
    examples: [{ username: 'alice', role: 'editor', domains: ['example.com'] }],
  })

const CreatedUser = UserRecord.extend({
  invite: z.string().optional().meta({
    description: 'shown only now, valid once and for 72 hours: `POST /api/auth/password` takes it',
  }),
}).meta({ id: 'CreatedUser', examples: [{ ...example, invite: 'Zk3v8QmT1xY7pLr2Wd5c' }] })

const UserChange = z
  .strictObject({
    role: Role.optional(),
    domains: Domains.max(100).nullable().optional().meta({ description: 'null: all' }),
    folders: Folders.nullable().optional().meta({ description: 'null: all' }),
  })
  .refine((change) => Object.keys(change).length > 0, 'must change something')
  .meta({ id: 'UserChange', examples: [{ role: 'viewer' }] })

const AtUser = z.strictObject({ username: z.string().meta({ examples: ['alice'] }) })

/** The users of the service, for admins: the same that `npm run users` edits. */
export function registerUserRoutes(app: App, dependencies: Dependencies) {
  app.route(listUsers(dependencies))
  app.route(createUser(dependencies))
  app.route(changeUser(dependencies))
  app.route(deleteUser(dependencies))
}

/** GET /api/users */
const listUsers = ({ users, lastLogins }: Dependencies) =>
  defineRoute({
    method: 'GET',
    url: '/api/users',
    config: { access: 'admin' },
    schema: {
      operationId: 'listUsers',
      summary: 'List users',
      description: 'In the order in which they were added.',
      tags: ['auth'],
      querystring: z.strictObject(pageQuery(50, 200)),
      responses: { 200: { description: 'The users' } },
      response: { 200: UserList },
    },
    handler: async ({ query }, reply) => {
      reply.header('cache-control', 'no-store')
      const { page, page_size: size } = query
      const all = await listAll(users)
      const shown = all.slice((page - 1) * size, page * size)
      const logins = await lastLogins.find(shown.map(({ username }) => username))
      return {
        users: shown.map((user) => describe(user, logins)),
        pagination: paginate(query, all.length),
      }
    },
  })

/** POST /api/users */
const createUser = ({ users, hashes, now }: Dependencies) =>
  defineRoute({
    method: 'POST',
    url: '/api/users',
    config: { access: 'admin' },
    bodyLimit,
    schema: {
      operationId: 'createUser',
      summary: 'Add a user',
      description: 'With a password, or with an invitation by which the person sets one.',
      tags: ['auth'],
      body: NewUser,
      errors: [
        weakPassword('A password must have at least 10 characters'),
        loginRequired(),
        userExists('alice'),
      ],
      responses: { 201: { description: 'The user, and an invitation if there is no password' } },
      response: { 201: CreatedUser },
    },
    handler: async (request, reply) => {
      const caller = loggedInCallerOf(request)
      const { password, username, role } = request.body
      refuseExcess(caller, request.body)
      if (password !== undefined) await requireStrongPassword(password, username)
      const invite = password === undefined ? randomBytes(15).toString('base64url') : undefined
      const at = now()
      const user: User = {
        ...{ username, role, ...limitsOf(request.body), id: randomUUID() },
        created_at: new Date(at).toISOString(),
        ...(password !== undefined && { password: await hashes(() => hashPassword(password)) }),
        ...(invite !== undefined && {
          invite: {
            digest: inviteDigestOf(invite),
            expires_at: new Date(at + inviteMs).toISOString(),
          },
        }),
      }
      await updateUsers(users, (all) => {
        if (all.some((each) => each.username === username)) throw userExists(username)
        return [...all, user]
      })
      request.log.info({ username, role }, 'user added')
      reply.header('cache-control', 'no-store')
      return reply.code(201).send({ ...describe(user), ...(invite !== undefined && { invite }) })
    },
  })

/** PATCH /api/users/{username} */
const changeUser = ({ users, lastLogins }: Dependencies) =>
  defineRoute({
    method: 'PATCH',
    url: '/api/users/:username',
    config: { access: 'admin' },
    bodyLimit,
    schema: {
      operationId: 'changeUser',
      summary: 'Change the rights of a user',
      description: 'Counts at once, also for the logins and API tokens of the user.',
      tags: ['auth'],
      params: AtUser,
      body: UserChange,
      errors: [loginRequired(), userNotFound('alice'), lastAdmin()],
      responses: { 200: { description: 'The changed user' } },
      response: { 200: UserRecord },
    },
    handler: async (request) => {
      const caller = loggedInCallerOf(request)
      const username = request.params.username.normalize('NFC')
      const { body } = request
      let changed: User | undefined
      await updateUsers(users, (all) => {
        const { domains, folders, ...user } = expectUser(all, caller, username)
        const limits = limitsOf({
          domains: changeLimit(domains, body.domains),
          folders: changeLimit(folders, body.folders),
        })
        changed = { ...user, role: body.role ?? user.role, ...limits }
        refuseExcess(caller, changed)
        return keepAdmin(caller, replaceUser(all, changed))
      })
      if (!changed) throw userNotFound(username)
      request.log.info({ username, role: changed.role }, 'user changed')
      return describe(changed, await lastLogins.find([username]))
    },
  })

/** DELETE /api/users/{username} */
const deleteUser = ({ users }: Dependencies) =>
  defineRoute({
    method: 'DELETE',
    url: '/api/users/:username',
    config: { access: 'admin' },
    schema: {
      operationId: 'deleteUser',
      summary: 'Remove a user',
      description: 'The logins and API tokens of the user end at once.',
      tags: ['auth'],
      params: AtUser,
      errors: [loginRequired(), userNotFound('alice'), lastAdmin()],
      responses: { 204: { description: 'Removed' } },
      response: { 204: z.undefined() },
    },
    handler: async (request, reply) => {
      const caller = loggedInCallerOf(request)
      const username = request.params.username.normalize('NFC')
      await updateUsers(users, (all) => {
        const removed = expectUser(all, caller, username)
        return keepAdmin(
          caller,
          all.filter((user) => user !== removed),
        )
      })
      request.log.info({ username }, 'user removed')
      return reply.code(204).send(undefined)
    },
  })

const changeLimit = (before: string[] | undefined, wanted: string[] | null | undefined) =>
  wanted === undefined ? before : (wanted ?? undefined)

function refuseExcess(caller: Caller, wanted: Pick<User, 'role' | 'domains' | 'folders'>) {
  const excess = findExcess(caller, wanted)
  if (excess) throw new HttpError(403, 'forbidden', excess)
}

/** A user that the caller may change: one with at most its own rights. */
function expectUser(all: User[], caller: Caller, username: string): User {
  const user = all.find((each) => each.username === username)
  if (!user) throw userNotFound(username)
  refuseExcess(caller, user)
  return user
}

const replaceUser = (all: User[], changed: User) =>
  all.map((user) => (user.username === changed.username ? changed : user))

// The caller stays an admin, so one is left. Of two admins who remove each other at once, the second is none any more.
function keepAdmin(caller: Caller, after: User[]): User[] {
  const isCaller = ({ username, role }: User) => username === caller.username && role === 'admin'
  if (!after.some(isCaller)) throw lastAdmin()
  return after
}

function describe(
  { username, role, domains, folders, created_at }: User,
  logins?: Map<string, Date>,
): z.input<typeof UserRecord> {
  return {
    ...{ username, role, domains: domains ?? null, folders: folders ?? null, source: 'local' },
    created_at: created_at ?? null,
    last_login_at: logins?.get(username)?.toISOString() ?? null,
  }
}

const userExists = (username: string) =>
  new HttpError(409, 'user_exists', `There is a user ${username} already`)

const userNotFound = (username: string) =>
  new HttpError(404, 'user_not_found', `No user ${username}`)

const lastAdmin = () =>
  new HttpError(
    409,
    'last_admin',
    'You cannot remove yourself or your role admin: another admin can, while one is left',
  )
