import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { z } from 'zod'
import {
  type CommandLine,
  openCommandDatabase,
  printResult,
  readNewPassword,
  readOptions,
  UsageError,
  usesDatabase,
} from '../command-line.ts'
import { Domains, Folders, Writes } from '../limits.ts'
import { hashPassword, needsRehash, requireStrongPassword } from '../login/password.ts'
import { allowName, barName } from '../oidc/oidc-users.ts'
import { limitsOf, Role } from '../rights.ts'
import { FileUsers } from './file-users.ts'
import { SqlUsers } from './sql-users.ts'
import { sourceOf, type User, Username, type Users } from './user.ts'

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

interface Command {
  parameters: string[]
  options: string[]
  run: (store: Users, words: string[], options: Options, line: CommandLine) => Promise<string>
}

const commands = new Map<string, Command>([
  [
    'add',
    { parameters: ['<name>'], options: ['role', 'domains', 'folders', 'writes'], run: addUser },
  ],
  ['passwd', { parameters: ['<name>'], options: [], run: changePassword }],
  [
    'role',
    {
      parameters: ['<name>', '<role>'],
      options: ['domains', 'all-domains', 'folders', 'all-folders', 'writes', 'force'],
      run: changeRole,
    },
  ],
  ['list', { parameters: [], options: [], run: listUsers }],
  ['remove', { parameters: ['<name>'], options: ['force'], run: removeUser }],
  ['allow', { parameters: ['<oidc:name>'], options: ['rebind'], run: allowUser }],
])

type Options = ReturnType<typeof readArguments>['values']

/** Runs the command with these arguments, and returns its exit status. */
export const manageUsers = (args: string[], line: CommandLine) =>
  printResult('users', line, runCommand(args, line))

async function runCommand(args: string[], line: CommandLine): Promise<string> {
  const { values, positionals } = readArguments(args)
  const [name = '', ...words] = positionals
  if (values.help) return help
  const command = commands.get(name)
  if (!command) throw new UsageError('Missing command: add, passwd, role, list, remove or allow')
  const { service, ...options } = values
  const stray = Object.keys(options).find((option) => !command.options.includes(option))
  if (stray) throw new UsageError(`users ${name} has no option --${stray}`)
  if (words.length !== command.parameters.length) {
    // The surplus arguments are not quoted: one may be a password.
    throw new UsageError(
      `Usage: users ${[name, ...command.parameters].join(' ')}; a password is never an argument`,
    )
  }
  if (!usesDatabase(line.env)) return command.run(openFile(service, line), words, values, line)
  await using database = await openCommandDatabase(readService(service), line.env)
  return await command.run(new SqlUsers(database), words, values, line)
}

function openFile(service: string | undefined, { env }: CommandLine): Users {
  if (service !== undefined) throw new UsageError('--service is only for DATABASE_URL')
  return new FileUsers(
    env.USERS_FILE || join(env.DATA_DIR || 'data', 'users.json'),
    () => undefined,
  )
}

function readService(service: string | undefined): string {
  if (service === 'domain' || service === 'static') return `${service}-service`
  throw new UsageError('With DATABASE_URL add --service domain or --service static')
}

const readArguments = (args: string[]) =>
  readOptions(args, {
    role: { type: 'string' },
    domains: { type: 'string' },
    'all-domains': { type: 'boolean' },
    folders: { type: 'string' },
    'all-folders': { type: 'boolean' },
    writes: { type: 'string' },
    force: { type: 'boolean' },
    rebind: { type: 'boolean' },
    service: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  })

async function addUser(
  store: Users,
  [name]: string[],
  options: Options,
  line: CommandLine,
): Promise<string> {
  const username = readLocalName(name)
  const role = readRole(options.role)
  const limits = readLimits(options)
  const refuseDuplicate = (users: User[]) => {
    if (users.some((user) => user.username === username))
      throw new Error(`The user ${username} exists already`)
  }
  refuseDuplicate(await store.list()) // Before the password prompt; the check under the lock decides.
  const password = await hashNewPassword(username, line)
  const created_at = new Date().toISOString()
  await store.update((users) => {
    refuseDuplicate(users)
    return [...users, { username, role, password, ...limits, id: randomUUID(), created_at }]
  })
  return `Added ${username} as ${role}\n`
}

async function changePassword(
  store: Users,
  [name]: string[],
  _options: Options,
  line: CommandLine,
): Promise<string> {
  const username = readLocalName(name)
  expectUser(await store.list(), username, store)
  const password = await hashNewPassword(username, line)
  await store.update((users) => {
    const { invite: _, ...user } = expectUser(users, username, store)
    return replaceUser(users, { ...user, password })
  })
  return `Changed the password of ${username}; they are logged out everywhere, their API tokens stay valid\n`
}

async function changeRole(
  store: Users,
  [name, wanted]: string[],
  options: Options,
): Promise<string> {
  for (const limit of ['domains', 'folders'] as const)
    if (options[limit] !== undefined && options[`all-${limit}`])
      throw new UsageError(`Give either --${limit} or --all-${limit}`)
  const username = readLocalName(name)
  const role = readRole(wanted)
  const limits = readLimits(options)
  await store.update((users) => {
    const { domains, folders, writes, ...user } = expectUser(users, username, store)
    const kept = limitsOf({
      domains: options['all-domains'] ? undefined : domains,
      folders: options['all-folders'] ? undefined : folders,
      writes: options.writes === undefined ? writes : undefined,
    })
    const after = replaceUser(users, { ...user, role, ...kept, ...limits })
    return keepAdmin(users, after, options)
  })
  return `${username} is ${role} now\n`
}

async function listUsers(store: Users): Promise<string> {
  const users = await store.list()
  if (users.length === 0) return `No users in ${store.name}\n`
  const width = Math.max(...users.map(({ username }) => username.length))
  const lines = users.map((user) =>
    [user.username.padEnd(width), user.role.padEnd('editor'.length), ...describe(user)].join('  '),
  )
  return `${lines.join('\n')}\n`
}

function describe({ oidc, domains, folders, writes, password }: User): string[] {
  if (oidc) return [oidc.is_barred ? '(removed)' : 'by single sign-on']
  return [
    domains?.join(',') ?? 'all domains',
    folders?.join(',') ?? 'all folders',
    ...(writes ? ['proposes'] : []),
    ...(password === undefined ? ['(invited)'] : []),
    ...(password && needsRehash(password) ? ['(weak hash: change the password)'] : []),
  ]
}

async function removeUser(store: Users, [name]: string[], options: Options): Promise<string> {
  const username = readName(name)
  if (sourceOf(username) === 'oidc') {
    await store.update((users) => barName(users, username))
    return `Removed ${username}; its tokens are revoked, and it cannot log in until \`users allow ${username}\`\n`
  }
  await store.update((users) => {
    const user = expectUser(users, username, store)
    return keepAdmin(
      users,
      users.filter((other) => other !== user),
      options,
    )
  })
  return `Removed ${username}; their tokens are revoked\n`
}

async function allowUser(store: Users, [name]: string[], { rebind }: Options): Promise<string> {
  const username = readName(name)
  await store.update((users) => {
    const { oidc } = expectUser(users, username, store)
    if (!oidc) throw new UsageError(`${username} is no user of single sign-on`)
    return allowName(users, username, rebind ?? false)
  })
  return `${username} may log in again\n`
}

function keepAdmin(before: User[], after: User[], { force }: Options): User[] {
  // While the provider is away only local users log in.
  const hasAdmin = (users: User[]) => users.some(({ role, oidc }) => role === 'admin' && !oidc)
  if (force || hasAdmin(after) || !hasAdmin(before)) return after
  throw new Error('This is the last admin: add another one first, or use --force')
}

function replaceUser(users: User[], changed: User): User[] {
  return users.map((user) => (user.username === changed.username ? changed : user))
}

function expectUser(users: User[], username: string, store: Users): User {
  const user = users.find((each) => each.username === username)
  if (!user) throw new Error(`No user ${username} in ${store.name}`)
  return user
}

async function hashNewPassword(username: string, { stdin, stderr }: CommandLine) {
  const password = await readNewPassword(stdin, stderr)
  await requireStrongPassword(password, username)
  return hashPassword(password)
}

function readName(text: string | undefined): string {
  const name = Username.safeParse(text)
  if (name.success) return name.data
  throw new UsageError('A username has 1 to 64 characters, without spaces and control characters')
}

function readLocalName(text: string | undefined): string {
  const name = readName(text)
  if (sourceOf(name) === 'local') return name
  throw new UsageError('Names that begin with oidc: or trust: are not for local users')
}

function readRole(text: string | undefined): Role {
  const role = Role.safeParse(text)
  if (role.success) return role.data
  throw new UsageError('The role must be viewer, editor or admin')
}

function readLimits(options: Options) {
  const { domains, folders, writes } = options
  const proposes =
    writes === undefined || writes === 'direct' ? undefined : Writes.safeParse(writes)
  if (proposes?.error) throw new UsageError('--writes must be propose or direct')
  return limitsOf({
    writes: proposes?.data,
    domains: readList(Domains, domains, '--domains must be a list such as example.com,*.co.uk'),
    folders: readList(
      Folders,
      folders,
      '--folders must be a list of at most 10, such as docs/,a/b/',
    ),
  })
}

function readList(schema: z.ZodType<string[]>, text: string | undefined, fault: string) {
  if (text === undefined) return undefined
  const list = schema.safeParse(text.split(',').map((entry) => entry.trim()))
  if (list.success) return list.data
  throw new UsageError(fault)
}

if (import.meta.main) process.exitCode = await manageUsers(process.argv.slice(2), process)
