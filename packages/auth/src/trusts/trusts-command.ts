import { describeIssue } from '@domains-and-files/http'
import { createDirectory, type Sql } from '@domains-and-files/persistence'
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
import { NewTrust, type Trust, Trusts } from './trusts.ts'

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

/** Runs the command with these arguments, and returns its exit status. */
export const manageTrusts = (args: string[], line: CommandLine) =>
  printResult('trusts', line, runCommand(args, line.env))

const readArguments = (args: string[]) =>
  readOptions(args, {
    issuer: { type: 'string' },
    audience: { type: 'string' },
    claim: { type: 'string', multiple: true },
    role: { type: 'string' },
    folders: { type: 'string' },
    domains: { type: 'string' },
    record: { type: 'string', multiple: true },
    service: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  })

type Options = ReturnType<typeof readArguments>['values']

interface Opened {
  service: string
  trusts: Trusts
  database: Sql & { close: () => Promise<void> }
}

async function runCommand(args: string[], env: NodeJS.ProcessEnv): Promise<string> {
  const { values, positionals } = readArguments(args)
  if (values.help) return help
  const [command = '', argument, ...surplus] = positionals
  const run = commands.get(command)
  if (!run || surplus.length > 0) throw new UsageError('Missing command: add, list or remove')
  const opened: Opened[] = []
  try {
    for (const service of servicesOf(values, env)) opened.push(await open(service, env))
    return await run(opened, argument, values)
  } finally {
    for (const { database } of opened) await database.close()
  }
}

const commands = new Map<
  string,
  (opened: Opened[], argument: string | undefined, options: Options) => Promise<string>
>([
  ['add', addTrust],
  ['list', listTrusts],
  ['remove', removeTrust],
])

function servicesOf({ service, folders, domains, record }: Options, env: NodeJS.ProcessEnv) {
  if (service === 'domain' || service === 'static') return [`${service}-service`]
  if (service !== undefined) throw new UsageError('--service is domain or static')
  if (folders !== undefined) return ['static-service']
  if (domains !== undefined || record) return ['domain-service']
  if (usesDatabase(env))
    throw new UsageError('With DATABASE_URL add --service domain or --service static')
  const both = ['domain-service', 'static-service']
  // A DATA_DIR without folders of the services is that of one service.
  const isOfOne = new Set(both.map((name) => dataDirOf(name, env))).size === 1
  return isOfOne ? both.slice(0, 1) : both
}

async function open(service: string, env: NodeJS.ProcessEnv): Promise<Opened> {
  if (usesDatabase(env)) {
    const database = await openCommandDatabase(service, env)
    return { service, database, trusts: new Trusts(database) }
  }
  const dataDir = dataDirOf(service, env)
  await createDirectory(dataDir)
  const database = openAuthFile(dataDir)
  return { service, database, trusts: new Trusts(database) }
}

async function addTrust(opened: Opened[], name: string | undefined, options: Options) {
  const trust = readTrust(name, options)
  for (const { trusts } of opened) await trusts.add(trust, Date.now())
  return `Added the trust ${trust.name} to ${opened.map(({ service }) => service).join(' and ')}\n`
}

function readTrust(name: string | undefined, options: Options): NewTrust {
  const { issuer, audience, role, claim, folders, domains, record } = options
  const trust = NewTrust.safeParse(
    {
      ...{ name, issuer, audience, role },
      claims: Object.fromEntries((claim ?? []).map((text) => splitAt(text, '='))),
      folders: folders?.split(','),
      domains: domains?.split(','),
      records: record?.map((text) => {
        const [at, types] = splitAt(text, ':')
        return { name: at, types: types.split(',') }
      }),
    },
    { error: describeIssue, reportInput: true },
  )
  if (trust.success) return trust.data
  const { path, message } = trust.error.issues[0] ?? { path: [], message: 'is not valid' }
  throw new UsageError(`${path.join(' ')} ${message}`)
}

function splitAt(text: string, separator: string): [string, string] {
  const [before = '', ...after] = text.split(separator)
  return [before, after.join(separator)]
}

async function listTrusts(opened: Opened[]): Promise<string> {
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

async function removeTrust(opened: Opened[], argument: string | undefined): Promise<string> {
  let removed = 0
  for (const { trusts } of opened) {
    const all = await trusts.list()
    const named = all.find(({ id, name }) => id === argument || name === argument)
    if (!named) continue
    await trusts.remove(named.id)
    removed += 1
  }
  if (removed === 0) throw new Error(`No trust ${argument}`)
  return `Removed ${argument}; its tokens have ended\n`
}

if (import.meta.main) process.exitCode = await manageTrusts(process.argv.slice(2), process)
