import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { z } from 'zod'
import {
  type Call,
  type CommandLine,
  limitsIn,
  limitsText,
  type Options,
  openStores,
  type Program,
  readNewPassword,
  readRequest,
  readService,
  runProgram,
  serviceOptions,
  UsageError,
  usesDatabase,
} from '../command-line.ts'
import { hashPassword, requireStrongPassword } from '../login/password.ts'
import { FileUsers } from './file-users.ts'
import {
  changeUser,
  expectUser,
  LocalUsername,
  sourceOf,
  type User,
  Username,
  type Users,
  userExists,
  withoutAccess,
  withPassword,
} from './user.ts'
import { changeRights, NewUser, UserChange } from './user-routes.ts'

const help = `Manages the users: who may log in, and with which rights.

  users add <name> --role <viewer|editor|admin> [--domains example.com,*.co.uk] [--folders docs/,site/]
        [--writes propose]
  users passwd <name>
  users role <name> <viewer|editor|admin> [--domains example.com,*.co.uk | --all-domains]
        [--folders docs/,site/ | --all-folders] [--writes propose|direct] [--force]
  users list
  users remove <name> [--force]
  users allow <oidc:name> [--rebind]

With --writes propose, the writes of zones by that user wait for the approval of another person.

The password is read from the terminal, or from the first line of standard input. It is never an argument,
which other programs could see. It has at least 10 characters, and is not among the most common ones. A new
password ends the logins of that user at once, but not the API tokens; a removal ends both. The last admin is
kept, unless --force is given.

Users of single sign-on are there from their first login, as oidc:name; the groups at the provider give them their
roles. \`remove\` bars one until \`allow\`. With --rebind the name goes to the next account that logs in with it.

The file is USERS_FILE, else DATA_DIR/users.json, else data/users.json. With DATABASE_URL the users are there, for
each service apart: add --service domain or --service static.
Exit status: 0 success, 1 failure, 2 usage error.
`

const commands = {
  add: addUser,
  passwd: changePassword,
  role: changeRole,
  list: listUsers,
  remove: removeUser,
  allow: allowUser,
}

export const manageUsers = (args: string[], line: CommandLine) =>
  runProgram({ name: 'users', help, options: ['service'], commands, open }, args, line)

const open: Program<Users>['open'] = async ({ options, line: { env } }, run) => {
  if (usesDatabase(env)) {
    await using stores = await openStores(readService(options.service, serviceOptions), env)
    return await run(stores.users)
  }
  if (options.service !== undefined) throw new UsageError('--service is only for DATABASE_URL')
  const file = env.USERS_FILE || join(env.DATA_DIR || 'data', 'users.json')
  return run(new FileUsers(file, () => undefined))
}

const AddedUser = NewUser.omit({ password: true })

async function addUser(store: Users, { words: [name], options, line }: Call): Promise<string> {
  const added = readRequest(AddedUser, { username: name, ...limitsIn(options) })
  const { username, role } = added
  const password = await hashNewPassword(username, line)
  const created_at = new Date().toISOString()
  await changeUser(store, username, (before) => {
    if (before) throw userExists(username)
    return { ...added, password, id: randomUUID(), created_at }
  })
  return `Added ${username} as ${role}\n`
}

async function changePassword(store: Users, { words: [name], line }: Call): Promise<string> {
  const username = readName(LocalUsername, name)
  const password = await hashNewPassword(username, line)
  await changeUser(store, username, (user) => withPassword(expectUser(user, username), password))
  return `Changed the password of ${username}; they are logged out everywhere, their API tokens stay valid\n`
}

async function changeRole(store: Users, { words: [name, role], options }: Call): Promise<string> {
  const username = readName(LocalUsername, name)
  const wanted: Record<string, unknown> = limitsIn(options)
  if (options.writes === 'direct') wanted.writes = null
  for (const limit of ['domains', 'folders'] as const) {
    if (!options[`all-${limit}`]) continue
    if (options[limit] !== undefined)
      throw new UsageError(`Give either --${limit} or --all-${limit}`)
    wanted[limit] = null
  }
  const change = readRequest(UserChange, { ...wanted, role })
  await changeUser(store, username, (before, all) => {
    const user = expectUser(before, username)
    return keepAdmin(all, user, changeRights(user, change), options)
  })
  return `${username} is ${change.role} now\n`
}

async function listUsers(store: Users): Promise<string> {
  const users = await store.list()
  if (users.length === 0) return `No users in ${store.name}\n`
  return users.map((user) => `${describe(user).join('  ')}\n`).join('')
}

function describe(user: User): string[] {
  const { username, role, oidc, password } = user
  if (oidc) return [username, role, oidc.is_barred ? '(removed)' : 'by single sign-on']
  return [username, role, ...limitsText(user), ...(password === undefined ? ['(invited)'] : [])]
}

async function removeUser(store: Users, { words: [name], options }: Call): Promise<string> {
  const username = readName(Username, name)
  const isLocal = sourceOf(username) !== 'oidc'
  await changeUser(store, username, (user, all) => {
    if (isLocal) expectUser(user, username)
    return keepAdmin(all, user, withoutAccess(username, user), options)
  })
  const barred = `, and it cannot log in until \`users allow ${username}\``
  return `Removed ${username}; its tokens are revoked${isLocal ? '' : barred}\n`
}

async function allowUser(store: Users, { words: [name], options }: Call): Promise<string> {
  const username = readName(Username, name)
  await changeUser(store, username, (before) => {
    const user = expectUser(before, username)
    if (!user.oidc) throw new UsageError(`${username} is no user of single sign-on`)
    const { is_barred: _, ...account } = user.oidc
    // Without its account, the name goes to the next one that logs in with it.
    return { ...user, oidc: options.rebind ? {} : account }
  })
  return `${username} may log in again\n`
}

function keepAdmin<Changed extends User | undefined>(
  all: User[],
  before: User | undefined,
  changed: Changed,
  { force }: Options,
): Changed {
  // Local admins only: while the provider is down, no one else can log in.
  const isAdmin = (user?: User) => user?.role === 'admin' && !user.oidc
  const isLast = isAdmin(before) && !all.some((user) => user !== before && isAdmin(user))
  if (force || !isLast || isAdmin(changed)) return changed
  throw new Error('This is the last admin: add another one first, or use --force')
}

async function hashNewPassword(username: string, { stdin, stderr }: CommandLine) {
  const password = await readNewPassword(stdin, stderr)
  await requireStrongPassword(password, username)
  return hashPassword(password)
}

const readName = (schema: z.ZodType<string>, username: string | undefined) =>
  readRequest(z.object({ username: schema }), { username }).username

if (import.meta.main) process.exitCode = await manageUsers(process.argv.slice(2), process)
