import { z } from 'zod'
import type { ServiceName } from '../api-tokens/token-format.ts'
import { dataDirOf } from '../auth-database.ts'
import {
  type CommandLine,
  command,
  describeRows,
  hasStores,
  openStores,
  type Program,
  readService,
  runProgram,
  type Stores,
  usesDatabase,
} from '../command-line.ts'
import { trustExists } from '../errors.ts'
import { addTrust, listTrusts, NewTrust, removeTrust } from './trusts.ts'

const help = `Manages trusts: which workloads may exchange a token of their CI for one of the services.

  trusts add <name> --issuer <url> --audience <text> --claim <name=value> ... --role <viewer|editor|admin>
         [--folders site/] [--domains example.com,*.co.uk] [--record _acme-challenge:TXT ...]
  trusts list
  trusts remove <name|id>

A token must have all claims, exactly; one of them names the workload, such as repository, project_path or sub. With
--folders the trust is for the static service, with --domains or --record for the domain service, else for both:
--service domain or --service static names one. More is in docs/users.md.
Exit status: 0 success, 1 failure, 2 usage error.
`

const commands = {
  add: command(['name'], NewTrust, add),
  list: command([], z.strictObject({}), list),
  remove: command(['name'], z.strictObject({ name: z.string() }), remove),
}

export const manageTrusts = (args: string[], line: CommandLine) =>
  runProgram({ name: 'trusts', help, commands, open }, args, line)

interface Opened {
  opened: Stores[]
}

const open: Program<Opened>['open'] = async (given, env) => {
  await using stack = new AsyncDisposableStack()
  const opened: Stores[] = []
  const services = servicesOf(given, env)
  const found = services.filter((service) => hasStores(service, env))
  for (const service of found.length === 0 ? services : found)
    opened.push(stack.use(await openStores(service, env, given)))
  const stores = stack.move()
  return { opened, [Symbol.asyncDispose]: () => stores.disposeAsync() }
}

function servicesOf(given: Parameters<typeof open>[0], env: NodeJS.ProcessEnv): ServiceName[] {
  const { service, folders, domains, records } = given
  const named = service ?? (folders ? 'static' : domains || records ? 'domain' : undefined)
  if (named !== undefined || usesDatabase(env)) return [readService(named)]
  const both = ['domain-service', 'static-service'] as const
  // A DATA_DIR without a folder for each service belongs to one service.
  const isOfOne = new Set(both.map((name) => dataDirOf(name, env))).size === 1
  return isOfOne ? both.slice(0, 1) : [...both]
}

async function add({ opened }: Opened, trust: NewTrust) {
  // Before one of them has it.
  for (const { database } of opened)
    if ((await listTrusts(database)).some(({ name }) => name === trust.name)) throw trustExists(trust.name)
  for (const { database, now } of opened) await addTrust(database, trust, now())
  return `Added the trust ${trust.name} to ${opened.map(({ service }) => service).join(' and ')}\n`
}

async function list({ opened }: Opened) {
  const rows: object[] = []
  for (const { service, database } of opened)
    for (const trust of await listTrusts(database)) rows.push({ service, ...trust })
  return describeRows(rows)
}

async function remove({ opened }: Opened, { name: wanted }: { name: string }) {
  let removed = 0
  for (const { database } of opened) removed += await removeTrust(database, wanted)
  if (removed === 0) throw new Error(`No trust ${wanted}`)
  return `Removed ${wanted}; its tokens have ended\n`
}

if (import.meta.main) process.exitCode = await manageTrusts(process.argv.slice(2), process)
