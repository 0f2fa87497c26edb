import { z } from 'zod'
import {
  type CommandLine,
  command,
  describeRows,
  openStores,
  openUsersFile,
  type Program,
  readNewPassword,
  readService,
  runProgram,
  type Stores,
  UsageError,
  usesDatabase,
} from '../command-line.ts'
import { wantedLimits } from '../limits.ts'
import { hashPassword, requireStrongPassword } from '../login/password.ts'
import { Role } from '../rights.ts'
import {
  addUser,
  changedRights,
  changeRights,
  changeUser,
  expectUser,
  LocalUsername,
  NewUser,
  sourceOf,
  type User,
  Username,
  withoutAccess,
  withPassword,
} from './user.ts'

const help = `Manages the users: who may log in, and with which rights.

  users add <name> --role <viewer|editor|admin> [--domains example.com,*.co.uk] [--folders docs/,site/]
        [--writes propose]
  users passwd <name>
  users role <name> <viewer|editor|admin> [--domains example.com,*.co.uk | --domains '*']
        [--folders docs/,site/ | --folders /] [--writes propose|direct]
  users list
  users remove <name>
  users allow <oidc:name> [--rebind]

The password is read from the terminal, or from the first line of standard input, never from an argument, which
other programs could see. \`remove\` bars a user of single sign-on until \`allow\`. With DATABASE_URL each service has
its own users: add --service domain or --service static. More is in docs/users.md.
Exit status: 0 success, 1 failure, 2 usage error.
`

const AddedUser = NewUser.omit({ password: true }).extend(wantedLimits)
const Name = z.strictObject({ username: Username })
const LocalName = z.strictObject({ username: LocalUsername })
const ChangedRole = LocalName.extend({ ...changedRights, role: Role })
const Allowed = Name.extend({ rebind: z.boolean().default(false) })

const commands = {
  add: command(['username'], AddedUser, addWithPassword),
  passwd: command(['username'], LocalName, changePassword),
  role: command(['username', 'role'], ChangedRole, changeRole),
  list: command([], z.strictObject({}), listUsers),
  remove: command(['username'], Name, removeUser),
  allow: command(['username'], Allowed, allowUser),
}

export const manageUsers = (args: string[], line: CommandLine) =>
  runProgram({ name: 'users', help, commands, open }, args, line)

const open: Program<Stored>['open'] = async (given, env) => {
  if (usesDatabase(env)) return openStores(readService(given.service), env, given)
  if (given.service !== undefined) throw new UsageError('--service is only for DATABASE_URL')
  // Both services may share this file, so each of its users may have the limits of both.
  return { users: openUsersFile(env), now: Date.now, [Symbol.asyncDispose]: async () => {} }
}

type Stored = Pick<Stores, 'users' | 'now'>

async function addWithPassword({ users, now }: Stored, added: z.infer<typeof AddedUser>, line: CommandLine) {
  const password = await hashNewPassword(added.username, line)
  await addUser(users, { ...added, password }, now())
  return `Added ${added.username} as ${added.role}\n`
}

async function changePassword({ users }: Stored, { username }: { username: string }, line: CommandLine) {
  const password = await hashNewPassword(username, line)
  await changeUser(users, username, (user) => withPassword(expectUser(user, username), password))
  return `Changed the password of ${username}; they are logged out everywhere, their API tokens stay valid\n`
}

async function changeRole({ users }: Stored, { username, ...change }: z.infer<typeof ChangedRole>) {
  await changeUser(users, username, (before, all) => {
    const user = expectUser(before, username)
    return keepAdmin(all, user, changeRights(user, change))
  })
  return `${username} is ${change.role} now\n`
}

async function listUsers({ users }: Stored) {
  return describeRows((await users.list()).map(describe))
}

function describe({ username, role, domains, folders, writes, oidc }: User) {
  return { username, role, domains, folders, writes, status: oidc?.is_barred ? 'removed' : undefined }
}

async function removeUser({ users }: Stored, { username }: { username: string }) {
  const isLocal = sourceOf(username) !== 'oidc'
  await changeUser(users, username, (user, all) => {
    if (isLocal) expectUser(user, username)
    return keepAdmin(all, user, withoutAccess(username, user))
  })
  const barred = `, and it cannot log in until \`users allow ${username}\``
  return `Removed ${username}; its tokens are revoked${isLocal ? '' : barred}\n`
}

async function allowUser({ users }: Stored, { username, rebind }: z.infer<typeof Allowed>) {
  await changeUser(users, username, (before) => {
    const user = expectUser(before, username)
    if (!user.oidc) throw new UsageError(`${username} is no user of single sign-on`)
    const { is_barred: _, ...account } = user.oidc
    // Without its account, the name goes to the next one that logs in with it.
    return { ...user, oidc: rebind ? {} : account }
  })
  return `${username} may log in again\n`
}

function keepAdmin(all: User[], before: User | undefined, changed: User | undefined) {
  // Local admins only: while the provider is down, no one else can log in.
  const isAdmin = (user?: User) => user?.role === 'admin' && !user.oidc
  const isLast = isAdmin(before) && !all.some((user) => user !== before && isAdmin(user))
  if (isLast && !isAdmin(changed)) throw new Error('This is the last admin: add another one first')
  return changed
}

async function hashNewPassword(username: string, line: CommandLine) {
  const password = await readNewPassword(line)
  await requireStrongPassword(password, username)
  return hashPassword(password)
}

if (import.meta.main) process.exitCode = await manageUsers(process.argv.slice(2), process)
