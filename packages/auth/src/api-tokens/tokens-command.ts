import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describeIssue } from '@domains-and-files/http'
import { createDirectory } from '@domains-and-files/persistence'
import { z } from 'zod'
import {
  type CommandLine,
  openCommandDatabase,
  printResult,
  readOptions,
  UsageError,
  usesDatabase,
} from '../command-line.ts'
import { describeRecordLimits } from '../limits.ts'
import { openAuthFile } from '../open-auth.ts'
import { callerOfUser } from '../rights.ts'
import { FileUsers } from '../users/file-users.ts'
import { LastLogins } from '../users/last-logins.ts'
import { SqlUsers } from '../users/sql-users.ts'
import type { User } from '../users/user.ts'
import { type ApiToken, ApiTokens, TokenName, tokenLimits } from './api-tokens.ts'
import { tokenPrefixOf } from './token-format.ts'

const help = `Manages the API tokens of a service.

  tokens add <domain|static> <name> --owner <user> [--expires <days|never>] [--role <viewer|editor|admin>]
         [--domains example.com,*.co.uk] [--folders docs/,site/] [--record _acme-challenge:TXT ...]
         [--networks 192.0.2.0/24,...]
  tokens list <domain|static> [--owner <user>]
  tokens remove <domain|static> <id>

A token never has more rights than its owner. It expires after 90 days by default. --record may be repeated; it
limits the token to reading and writing these records (* stands for one or more labels). \`add\` prints the token
once; only its digest is stored. Changes take effect at once, also in a running service.

The tokens are in DATA_DIR/auth.sqlite, the users in USERS_FILE (default: DATA_DIR/users.json). With the DATA_DIR of
\`npm start\` (default: data) the tokens are in its folder of the service. With DATABASE_URL both are there.
Exit status: 0 success, 1 failure, 2 usage error.
`

const Request = z.object({
  name: TokenName,
  expires_in: z.number().int().min(0).optional(),
  ...tokenLimits,
})

/** Runs the command with these arguments, and returns its exit status. */
export const manageTokens = (args: string[], line: CommandLine) =>
  printResult('tokens', line, runCommand(args, line.env))

async function runCommand(args: string[], env: NodeJS.ProcessEnv): Promise<string> {
  const { values, positionals } = readArguments(args)
  const [command, service = '', argument] = positionals
  if (values.help) return help
  if (service !== 'domain' && service !== 'static')
    throw new UsageError('Name the service: domain or static')
  await using opened = await open(`${service}-service`, env)
  return await run(opened, command, argument, values)
}

interface Opened extends AsyncDisposable {
  tokens: ApiTokens
  find: (username: string) => Promise<User | undefined>
}

async function run(
  { tokens, find }: Opened,
  command: string | undefined,
  argument: string | undefined,
  values: Options,
): Promise<string> {
  if (command === 'add') return addToken({ tokens, find }, argument, values)
  if (command === 'list') return listTokens(await tokens.list(values.owner))
  if (command === 'remove') {
    await tokens.remove(argument ?? '')
    return `Revoked ${argument}\n`
  }
  throw new UsageError('Missing command: add, list or remove')
}

async function open(service: string, env: NodeJS.ProcessEnv): Promise<Opened> {
  const { users, database } = usesDatabase(env)
    ? await openDatabase(service, env)
    : await openFiles(service, env)
  const logins = new LastLogins(database, Date.now, () => undefined)
  const find = async (username: string) => logins.withRights(await users.find(username))
  const tokens = new ApiTokens({
    database,
    find,
    prefix: tokenPrefixOf(service),
    now: Date.now,
    report: () => undefined, // No token is used here.
  })
  return { tokens, find, [Symbol.asyncDispose]: () => database.close() }
}

async function openDatabase(service: string, env: NodeJS.ProcessEnv) {
  const database = await openCommandDatabase(service, env)
  return { users: new SqlUsers(database), database }
}

async function openFiles(service: string, env: NodeJS.ProcessEnv) {
  const root = env.DATA_DIR || 'data'
  // `npm start` gives each service a folder in its DATA_DIR, and both one users file.
  const isOfBoth = !env.DATA_DIR || existsSync(join(root, service))
  const dataDir = isOfBoth ? join(root, service) : root
  const shared = join(root, 'users.json')
  const isShared = isOfBoth && existsSync(shared)
  const usersFile = env.USERS_FILE || (isShared ? shared : join(dataDir, 'users.json'))
  const users = new FileUsers(usersFile, (error) => {
    throw error
  })
  await createDirectory(dataDir)
  return { users, database: openAuthFile(dataDir) }
}

type Options = ReturnType<typeof readArguments>['values']

const readArguments = (args: string[]) =>
  readOptions(args, {
    owner: { type: 'string' },
    expires: { type: 'string' },
    role: { type: 'string' },
    domains: { type: 'string' },
    folders: { type: 'string' },
    record: { type: 'string', multiple: true },
    networks: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  })

async function addToken(
  { tokens, find }: Pick<Opened, 'tokens' | 'find'>,
  name: string | undefined,
  options: Options,
): Promise<string> {
  const user = await find(options.owner ?? '')
  if (!user) throw new UsageError('--owner must name a user')
  const { text } = await tokens.create(callerOfUser(user), readRequest(name, options))
  return `${text}\n`
}

function readRequest(name: string | undefined, options: Options) {
  const request = Request.safeParse(
    {
      name,
      expires_in: options.expires === 'never' ? 0 : days(options.expires),
      role: options.role,
      domains: options.domains?.split(','),
      folders: options.folders?.split(','),
      records: options.record?.map(readRecord),
      networks: options.networks?.split(','),
    },
    { error: describeIssue, reportInput: true },
  )
  if (request.success) return request.data
  const { path, message } = request.error.issues[0] ?? { path: [], message: 'is not valid' }
  throw new UsageError(`${path.join(' ')} ${message}`)
}

function days(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Math.round(Number(text) * 86_400)
}

function readRecord(text: string) {
  const [name, types = ''] = text.split(':')
  return { name, types: types.split(',') }
}

function listTokens(tokens: ApiToken[]): string {
  if (tokens.length === 0) return 'No tokens\n'
  return tokens.map((token) => `${describe(token).join('  ')}\n`).join('')
}

function describe(token: ApiToken): string[] {
  const { role = 'viewer', domains, folders, records, networks, expires_at, last_used_at } = token
  return [
    token.id,
    token.owner,
    `${token.name} (…${token.hint})`,
    records ? describeRecordLimits(records) : role,
    domains?.join(',') ?? 'all domains',
    folders?.join(',') ?? 'all folders',
    networks?.join(',') ?? 'all networks',
    `expires ${expires_at ?? 'never'}`,
    `last used ${last_used_at ?? 'never'}`,
  ]
}

if (import.meta.main) process.exitCode = await manageTokens(process.argv.slice(2), process)
