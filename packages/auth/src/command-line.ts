import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import type { ReadStream } from 'node:tty'
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import {
  databaseConfig,
  databaseSettings,
  describeIssue,
  HttpError,
  readEnv,
} from '@domains-and-files/http'
import { createDirectory, explainDatabaseFailure, Postgres } from '@domains-and-files/persistence'
import { z } from 'zod'
import { serviceOf } from './api-tokens/token-format.ts'
import { openAccounts, openAuthFile } from './open-auth.ts'
import type { Limits } from './rights.ts'
import { authMigrations } from './tables.ts'
import { FileUsers } from './users/file-users.ts'
import { SqlUsers } from './users/sql-users.ts'

/** What a command reads and writes: `process` in a terminal. */
export interface CommandLine {
  env: NodeJS.ProcessEnv
  stdin: Input
  stdout: Writable
  stderr: Writable
}

export class UsageError extends Error {}

const text = { type: 'string' } as const
const texts = { type: 'string', multiple: true } as const
const flag = { type: 'boolean' } as const

const knownOptions = {
  ...{ role: text, domains: text, folders: text, writes: text, networks: text, record: texts },
  ...{ 'all-domains': flag, 'all-folders': flag, force: flag, rebind: flag },
  ...{ owner: text, expires: text, for: text, url: text, replace: flag },
  ...{ issuer: text, audience: text, claim: texts, service: text },
  help: { type: 'boolean', short: 'h' },
} as const satisfies ParseArgsOptionsConfig

export type Options = ReturnType<typeof readArguments>['values']

const readArguments = (args: string[]) =>
  parseArgs({ args, allowPositionals: true, options: knownOptions })

export interface Call {
  words: string[]
  options: Options
  line: CommandLine
}

export interface Program<Opened> {
  name: string
  /** Lines such as `  users add <name> --role <role>` name the words and options of each command. */
  help: string
  /** Options that every command takes. */
  options?: (keyof Options)[]
  /** Implementations by name. Each returns the text to print. */
  commands: Record<string, (opened: Opened, call: Call) => Promise<string>>
  /** Opens the stores for a command, and closes them after `run`. */
  open: (call: Call, run: (opened: Opened) => Promise<string>) => Promise<string>
}

/**
 * Runs a program, and prints what its command returns, or the reason of its failure.
 * @returns the exit status: 0 success, 1 failure, 2 usage error.
 */
export async function runProgram<Opened>(
  program: Program<Opened>,
  args: string[],
  line: CommandLine,
): Promise<0 | 1 | 2> {
  try {
    line.stdout.write(await runCommand(program, args, line))
    return 0
  } catch (thrown) {
    // The cause of an error for clients is for operators.
    const error = thrown instanceof HttpError ? (thrown.cause ?? thrown) : thrown
    const isUsageError = error instanceof UsageError
    const reason = explainDatabaseFailure(error)
    const message = reason instanceof Error ? reason.message : String(reason)
    line.stderr.write(`${message}${isUsageError ? `. See ${program.name} --help` : ''}\n`)
    return isUsageError ? 2 : 1
  }
}

async function runCommand<Opened>(program: Program<Opened>, args: string[], line: CommandLine) {
  const { name, help, commands } = program
  const { values, positionals } = parse(args)
  const { help: isHelp, ...options } = values
  if (isHelp) return help
  const [verb = '', ...words] = positionals
  const command = Object.hasOwn(commands, verb) ? commands[verb] : undefined
  if (!command) throw new UsageError(`Missing command: ${Object.keys(commands).join(', ')}`)
  const synopsis = synopsisOf(`${name} ${verb}`, help)
  const allowed: string[] = [...(program.options ?? []), ...synopsis.options]
  const stray = Object.keys(options).find((option) => !allowed.includes(option))
  if (stray) throw new UsageError(`${name} ${verb} has no option --${stray}`)
  // Surplus words are not quoted: one may be a password.
  if (words.length !== synopsis.words.length)
    throw new UsageError(
      `Usage: ${[name, verb, ...synopsis.words].join(' ')}; a password is never an argument`,
    )
  const call = { words, options, line }
  return program.open(call, (opened) => command(opened, call))
}

/** The words and options of a command: those of its line of the help, and of the continuation lines. */
function synopsisOf(command: string, help: string) {
  const lines = help.split('\n')
  const first = lines.findIndex((line) => `${line} `.startsWith(`  ${command} `))
  const end = lines.findIndex((line, at) => at > first && !line.startsWith(' '.repeat(8)))
  const parts = lines
    .slice(first, end)
    .join(' ')
    .split(/[\s[\]]/)
  const isOption = (part = '') => part.startsWith('--')
  const options = parts.filter(isOption).map((option) => option.slice(2))
  const words = parts.filter((part, at) => part.startsWith('<') && !isOption(parts[at - 1]))
  return { words, options }
}

function parse(args: string[]) {
  try {
    return readArguments(args)
  } catch (error) {
    const [message = ''] = error instanceof Error ? error.message.split(/[.\n]/) : []
    throw new UsageError(message)
  }
}

/** The limits that options name, as the API takes them. */
export const limitsIn = ({ role, domains, folders, writes, networks, record }: Options) => ({
  ...{ role, writes },
  domains: split(domains),
  folders: split(folders),
  networks: split(networks),
  records: record?.map((each) => {
    const [name, types] = splitAt(each, ':')
    return { name, types: types.split(',') }
  }),
})

export const limitsText = ({ domains, folders, writes }: Limits) => [
  domains?.join(',') ?? 'all domains',
  folders?.join(',') ?? 'all folders',
  ...(writes ? ['proposes'] : []),
]

const split = (list: string | undefined) => list?.split(',').map((entry) => entry.trim())

/** Splits at the first `sign`; without one, the second part is empty. */
export function splitAt(word: string, sign: string): [string, string] {
  const [before = '', ...after] = word.split(sign)
  return [before, after.join(sign)]
}

/** Builds a request from options, and validates it like the API. @throws {UsageError} naming the first fault. */
export function readRequest<Request>(
  schema: z.ZodType<Request>,
  request: Record<string, unknown>,
): Request {
  const given = Object.fromEntries(
    Object.entries(request).filter(([, value]) => value !== undefined),
  )
  const read = schema.safeParse(given, { error: describeIssue, reportInput: true })
  if (read.success) return read.data
  const { path, message } = read.error.issues[0] ?? { path: [], message: 'is not valid' }
  throw new UsageError(`${path.join(' ')} ${message}`)
}

export const usesDatabase = (env: NodeJS.ProcessEnv) =>
  Boolean(env.DATABASE_URL || env.DATABASE_URL_FILE)

/** How an option names the service: with DATABASE_URL each has its own users and trusts. */
export const serviceOptions = '--service domain or --service static'

/** The full name of a service. @throws {UsageError} naming the ways to give it. */
export function readService(name: string | undefined, ways = 'domain or static'): string {
  if (name === 'domain' || name === 'static') return `${name}-service`
  throw new UsageError(`Name the service: ${ways}`)
}

/** The data directory of a service: `npm start` gives each a folder in its DATA_DIR. */
export function dataDirOf(service: string, env: NodeJS.ProcessEnv): string {
  const root = env.DATA_DIR || 'data'
  return !env.DATA_DIR || existsSync(join(root, service)) ? join(root, service) : root
}

/** Opens users, API tokens and trusts of a service: in DATABASE_URL, else in its data directory. */
export async function openStores(service: string, env: NodeJS.ProcessEnv) {
  const { users, database } = await (usesDatabase(env) ? openDatabase : openFiles)(service, env)
  const { prefix } = serviceOf(service)
  const report = () => undefined // No caller uses a token.
  const accounts = openAccounts({ users, database, prefix, now: Date.now, report })
  return { service, ...accounts, [Symbol.asyncDispose]: () => database.close() }
}

export type Stores = Awaited<ReturnType<typeof openStores>>

async function openFiles(service: string, env: NodeJS.ProcessEnv) {
  const dataDir = dataDirOf(service, env)
  // `npm start` gives both services one users file.
  const shared = join(env.DATA_DIR || 'data', 'users.json')
  const usersFile = existsSync(shared) ? shared : join(dataDir, 'users.json')
  const users = new FileUsers(env.USERS_FILE || usersFile, (error) => {
    throw error
  })
  await createDirectory(dataDir)
  return { users, database: openAuthFile(dataDir) }
}

async function openDatabase(service: string, env: NodeJS.ProcessEnv) {
  const config = databaseConfig(readEnv(z.object(databaseSettings), env))
  if (!config) throw new Error('DATABASE_URL is not set')
  const database = await Postgres.open({
    ...config,
    schema: service.replace('-', '_'),
    migrations: authMigrations,
    onError: () => undefined, // A failed statement rejects by itself.
  })
  return { users: new SqlUsers(database), database }
}

/** The source of a password: a terminal, or a stream whose first line it is. */
export type Input = NodeJS.ReadableStream & Pick<Partial<ReadStream>, 'isTTY'>

/**
 * Reads a new password: from a terminal twice, without echo; otherwise from the first line.
 * @throws {Error} if it is missing, or not repeated.
 */
export async function readNewPassword(input: Input, prompt: Writable): Promise<string> {
  const terminal = input.isTTY === true
  // readline echoes to its output, so it gets one that discards.
  const output = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input, output, terminal, historySize: 0 })
  const typed = lines[Symbol.asyncIterator]()
  const ask = async (question: string) => {
    if (terminal) prompt.write(question)
    // Ctrl-C, Ctrl-D and the end of a pipe all end the lines.
    const { value, done } = await typed.next()
    if (done) throw new Error('No password was given')
    return value
  }
  try {
    const password = await ask('Password: ')
    if (terminal && password !== (await ask('\nAgain: ')))
      throw new Error('The two passwords differ')
    return password
  } finally {
    if (terminal) prompt.write('\n')
    lines.close()
  }
}
