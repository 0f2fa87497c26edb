import {
  type Call,
  type CommandLine,
  dataDirOf,
  limitsIn,
  type Options,
  openStores,
  type Program,
  readRequest,
  readService,
  runProgram,
  type Stores,
  serviceOptions,
  splitAt,
  usesDatabase,
} from '../command-line.ts'
import { describeRecordLimits } from '../limits.ts'
import { NewTrust, type Trust } from './trusts.ts'

const help = `Manages trusts: which workloads may exchange a token of their CI for one of the services.

  trusts add <name> --issuer <url> --audience <text> --claim <name=value> ... --role <viewer|editor|admin>
         [--folders site/] [--domains example.com,*.co.uk] [--record _acme-challenge:TXT ...]
  trusts list
  trusts remove <name|id>

A token must have all claims, exactly; one of them names the workload, such as repository, project_path or sub. With
--folders the trust is for the static service, with --domains or --record for the domain service, else for both:
--service domain or --service static names one. Changes take effect at once, also in a running service.

The trusts are in DATA_DIR/auth.sqlite, with the DATA_DIR of \`npm start\` (default: data) in its folders of the services.
With DATABASE_URL they are there.
Exit status: 0 success, 1 failure, 2 usage error.
`

const commands = { add: addTrust, list: listTrusts, remove: removeTrust }

export const manageTrusts = (args: string[], line: CommandLine) =>
  runProgram({ name: 'trusts', help, options: ['service'], commands, open }, args, line)

const open: Program<Stores[]>['open'] = async ({ options, line: { env } }, run) => {
  await using stack = new AsyncDisposableStack()
  const opened: Stores[] = []
  for (const service of servicesOf(options, env))
    opened.push(stack.use(await openStores(service, env)))
  return await run(opened)
}

function servicesOf(options: Options, env: NodeJS.ProcessEnv): string[] {
  if (options.service !== undefined) return [readService(options.service)]
  if (options.folders !== undefined) return ['static-service']
  if (options.domains !== undefined || options.record) return ['domain-service']
  if (usesDatabase(env)) return [readService(options.service, serviceOptions)]
  const both = ['domain-service', 'static-service']
  // A DATA_DIR without a folder for each service belongs to one service.
  const isOfOne = new Set(both.map((name) => dataDirOf(name, env))).size === 1
  return isOfOne ? both.slice(0, 1) : both
}

async function addTrust(opened: Stores[], { words: [name], options }: Call): Promise<string> {
  const { issuer, audience, claim = [] } = options
  const claims = Object.fromEntries(claim.map((each) => splitAt(each, '=')))
  const trust = readRequest(NewTrust, { name, issuer, audience, claims, ...limitsIn(options) })
  for (const { trusts } of opened) await trusts.add(trust, Date.now())
  return `Added the trust ${trust.name} to ${opened.map(({ service }) => service).join(' and ')}\n`
}

async function listTrusts(opened: Stores[]): Promise<string> {
  const lines: string[] = []
  for (const { service, trusts } of opened)
    for (const trust of await trusts.list()) lines.push(`${describe(service, trust)}\n`)
  return lines.join('') || 'No trusts\n'
}

const describe = (service: string, trust: Trust) =>
  [
    ...[trust.id, service, trust.name, trust.issuer, trust.audience],
    Object.entries(trust.claims)
      .map((claim) => claim.join('='))
      .join(','),
    trust.role,
    ...(trust.domains ?? trust.folders ?? []),
    ...(trust.records ? [describeRecordLimits(trust.records)] : []),
  ].join('  ')

async function removeTrust(opened: Stores[], { words: [argument] }: Call): Promise<string> {
  const isNamed = ({ id, name }: Trust) => id === argument || name === argument
  let removed = 0
  for (const { trusts } of opened)
    for (const { id } of (await trusts.list()).filter(isNamed)) {
      await trusts.remove(id)
      removed += 1
    }
  if (removed === 0) throw new Error(`No trust ${argument}`)
  return `Removed ${argument}; its tokens have ended\n`
}

if (import.meta.main) process.exitCode = await manageTrusts(process.argv.slice(2), process)
