import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describeIssue } from '@domains-and-files/http'
import { createDirectory } from '@domains-and-files/persistence'
import { z } from 'zod'
import {
  type CommandLine,
  dataDirOf,
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
         [--networks 192.0.2.0/24,...] [--writes propose]
         [--for registrar [--url https://dns.example] [--replace]]
  tokens list <domain|static> [--owner <user>]
  tokens remove <domain|static> <id>

A token never has more rights than its owner. It expires after 90 days by default. --record may be repeated; it
limits the token to reading and writing these records (* stands for one or more labels). \`add\` prints the token
once; only its digest is stored. Changes take effect at once, also in a running service.

--for registrar prints the settings of tools that know only the registrar's XML API, which the domain service at --url
speaks. Such a token is an editor unless --role or --record says otherwise; with --replace it may write a zone that it
has not read.

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
  const dataDir = dataDirOf(service, env)
  // `npm start` gives both services one users file.
  const shared = join(root, 'users.json')
  const isShared = dataDir !== root && existsSync(shared)
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
    writes: { type: 'string' },
    record: { type: 'string', multiple: true },
    networks: { type: 'string' },
    for: { type: 'string' },
    url: { type: 'string' },
    replace: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  })

async function addToken(
  { tokens, find }: Pick<Opened, 'tokens' | 'find'>,
  name: string | undefined,
  options: Options,
): Promise<string> {
  const user = await find(options.owner ?? '')
  if (!user) throw new UsageError('--owner must name a user')
  const isForRegistrar = options.for === 'registrar' && tokens.prefix === 'ds_'
  if (options.for !== undefined && !isForRegistrar)
    throw new UsageError('--for must be registrar, and the service domain')
  const { text } = await tokens.create(callerOfUser(user), readRequest(name, options))
  return isForRegistrar ? `${text}\n\n${registrarSettings(text, options.url)}` : `${text}\n`
}

/** What tools need that know only the registrar's XML API. */
function registrarSettings(token: string, url = 'https://dns.example'): string {
  const address = `${url.replace(/\/$/, '')}/integrations/registrar/xml.response`
  const provider = { TYPE: 'NAMECHEAP', apiuser: 'any', apikey: token, BaseURL: address }
  return `DNSControl, creds.json:
  ${JSON.stringify({ shared: provider })}

Caddy with the plug-in namecheap:
  tls {
    dns namecheap {
      user any
      api_key ${token}
      client_ip 127.0.0.1
      endpoint ${address}
    }
  }

Scripts:
  curl --data-urlencode "ApiKey=${token}" --data "ApiUser=any&UserName=any&ClientIp=127.0.0.1" \\
    --data "Command=namecheap.domains.dns.getHosts&SLD=example&TLD=com" ${address}

These have no setting for the address: they need a TLS front for api.namecheap.com that leads to
${address} (see docs/integrations.md).

${settingsBehindFront(token)}`
}

const settingsBehindFront = (token: string) => `Terraform:
  provider "namecheap" {
    user_name = "any"
    api_user  = "any"
    api_key   = "${token}"
    client_ip = "127.0.0.1"
  }

lego:
  NAMECHEAP_API_USER=any NAMECHEAP_API_KEY=${token} lego --dns namecheap ...

acme.sh:
  NAMECHEAP_USERNAME=any NAMECHEAP_API_KEY=${token} NAMECHEAP_SOURCEIP=127.0.0.1 acme.sh --dns dns_namecheap ...

certbot with the plug-in certbot-dns-namecheap, credentials file:
  dns_namecheap_username = any
  dns_namecheap_api_key = ${token}
`

function readRequest(name: string | undefined, options: Options) {
  const request = Request.safeParse(
    {
      name,
      expires_in: options.expires === 'never' ? 0 : days(options.expires),
      role: options.role ?? (options.for && !options.record ? 'editor' : undefined),
      domains: options.domains?.split(','),
      folders: options.folders?.split(','),
      writes: options.writes,
      records: options.record?.map(readRecord),
      networks: options.networks?.split(','),
      replace: options.replace,
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
  const {
    role = 'viewer',
    domains,
    folders,
    writes,
    records,
    networks,
    expires_at,
    last_used_at,
  } = token
  return [
    token.id,
    token.owner,
    `${token.name} (…${token.hint})`,
    records ? describeRecordLimits(records) : role,
    domains?.join(',') ?? 'all domains',
    folders?.join(',') ?? 'all folders',
    ...(writes ? ['proposes'] : []),
    networks?.join(',') ?? 'all networks',
    `expires ${expires_at ?? 'never'}`,
    `last used ${last_used_at ?? 'never'}`,
  ]
}

if (import.meta.main) process.exitCode = await manageTokens(process.argv.slice(2), process)
