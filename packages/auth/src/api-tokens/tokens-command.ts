import {
  type Call,
  type CommandLine,
  limitsIn,
  limitsText,
  openStores,
  type Program,
  readRequest,
  readService,
  runProgram,
  type Stores,
  UsageError,
} from '../command-line.ts'
import { describeRecordLimits } from '../limits.ts'
import { callerOfUser } from '../rights.ts'
import { type ApiToken, NewToken } from './api-tokens.ts'

const help = `Manages the API tokens of a service.

  tokens add <domain|static> <name> --owner <user> [--expires <days|never>] [--role <viewer|editor|admin>]
         [--domains example.com,*.co.uk] [--folders docs/,site/] [--record _acme-challenge:TXT ...]
         [--networks 192.0.2.0/24,...] [--writes propose] [--replace]
  tokens list <domain|static> [--owner <user>]
  tokens remove <domain|static> <id>

A token never has more rights than its owner. It expires after 90 days by default. --record may be repeated; it
limits the token to reading and writing these records (* stands for one or more labels). \`add\` prints the token
once; only its digest is stored. Changes take effect at once, also in a running service.

With --replace, a tool that knows only the registrar's XML API may write a zone that it has not read.

The tokens are in DATA_DIR/auth.sqlite, the users in USERS_FILE (default: DATA_DIR/users.json). With the DATA_DIR of
\`npm start\` (default: data) the tokens are in its folder of the service. With DATABASE_URL both are there.
Exit status: 0 success, 1 failure, 2 usage error.
`

const commands = { add: addToken, list: listTokens, remove: removeToken }

export const manageTokens = (args: string[], line: CommandLine) =>
  runProgram({ name: 'tokens', help, commands, open }, args, line)

const open: Program<Stores>['open'] = async ({ words: [service], line: { env } }, run) => {
  await using stores = await openStores(readService(service), env)
  return await run(stores)
}

async function addToken({ apiTokens, find }: Stores, { words: [, name], options }: Call) {
  const { owner = '', expires, replace } = options
  const user = await find(owner)
  if (!user) throw new UsageError('--owner must name a user')
  const request = readRequest(NewToken, {
    ...limitsIn(options),
    ...{ name, replace },
    expires_in: expires === 'never' ? 0 : expires && Math.round(Number(expires) * 86_400),
  })
  const { text } = await apiTokens.create(callerOfUser(user), request)
  return `${text}\n`
}

async function removeToken({ apiTokens }: Stores, { words: [, id = ''] }: Call) {
  await apiTokens.remove(id)
  return `Revoked ${id}\n`
}

async function listTokens({ apiTokens }: Stores, { options }: Call): Promise<string> {
  const listed = await apiTokens.list(options.owner)
  return listed.map((token) => `${describe(token).join('  ')}\n`).join('') || 'No tokens\n'
}

const describe = (token: ApiToken): string[] => [
  ...[token.id, token.owner, `${token.name} (…${token.hint})`],
  token.records ? describeRecordLimits(token.records) : (token.role ?? 'viewer'),
  ...limitsText(token),
  token.networks?.join(',') ?? 'all networks',
  `expires ${token.expires_at ?? 'never'}`,
  `last used ${token.last_used_at ?? 'never'}`,
]

if (import.meta.main) process.exitCode = await manageTokens(process.argv.slice(2), process)
