import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import type { ReadStream } from 'node:tty'
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { describeIssue, HttpError, readDatabaseConfig, toFaults } from '@domains-and-files/http'
import { explainDatabaseFailure, Postgres, type CommandLine as Streams } from '@domains-and-files/persistence'
import type { z } from 'zod'
import { type ServiceName, services } from './api-tokens/token-format.ts'
import { authMigrations, dataDirOf, openAuthFile } from './auth-database.ts'
import { openAccounts } from './open-auth.ts'
import { FileUsers } from './users/file-users.ts'
import { SqlUsers } from './users/sql-users.ts'

/** What a command reads and writes: `process` in a terminal. */
export interface CommandLine extends Streams {
  stdin: NodeJS.ReadableStream & Pick<Partial<ReadStream>, 'isTTY'>
}

export class UsageError extends Error {}

const text = { type: 'string' } as const
const texts = { type: 'string', multiple: true } as const
const flag = { type: 'boolean' } as const

const knownOptions = {
  role: text,
  domains: text,
  folders: text,
  writes: text,
  networks: text,
  record: texts,
  owner: text,
  expires: text,
  for: text,
  url: text,
  replace: flag,
  rebind: flag,
  issuer: text,
  audience: text,
  claim: texts,
  service: text,
} as const satisfies ParseArgsOptionsConfig

type Fields = Partial<ReturnType<typeof fieldsOf>>

interface Command<Opened> {
  words: string[]
  /** @throws {UsageError} naming the first fault of the fields. */
  read: (fields: object) => (opened: Opened, line: CommandLine) => Promise<string>
}

/** `schema` validates the words and options like the API, and refuses others. `run` returns the text to print. */
export const command = <Opened, Request>(
  words: string[],
  schema: z.ZodType<Request>,
  run: (opened: Opened, request: Request, line: CommandLine) => Promise<string>,
): Command<Opened> => ({
  words,
  read(fields) {
    const read = schema.safeParse(fields, { error: describeIssue, reportInput: true })
    if (read.success) return (opened, line) => run(opened, read.data, line)
    const [{ path, message } = { path: '', message: 'is not valid' }] = toFaults(read.error)
    throw new UsageError(`${path.slice(1).replaceAll('/', ' ')} ${message}`)
  },
})

export interface Program<Opened> {
  name: string
  help: string
  commands: Record<string, Command<Opened>>
  open: (fields: Fields, env: NodeJS.ProcessEnv) => Promise<Opened & AsyncDisposable>
}

/**
 * Runs a program, and prints what its command returns, or the reason of its failure.
 * @returns the exit status: 0 success, 1 failure, 2 usage error.
 */
export async function runProgram<Opened>(program: Program<Opened>, args: string[], line: CommandLine) {
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
  const { name, help, commands, open } = program
  if (args.includes('--help') || args.includes('-h')) return help
  const { values: options, positionals } = readArguments(args)
  const [verb = '', ...words] = positionals
  const command = Object.hasOwn(commands, verb) ? commands[verb] : undefined
  if (!command) throw new UsageError(`Missing command: ${Object.keys(commands).join(', ')}`)
  // Surplus words are not quoted: one may be a password.
  if (words.length !== command.words.length) {
    const usage = [name, verb, ...command.words.map((word) => `<${word}>`)].join(' ')
    throw new UsageError(`Usage: ${usage}; a password is never an argument`)
  }
  const named = Object.fromEntries(command.words.map((word, at) => [word, words[at]]))
  if (named.service && options.service) throw new UsageError('The service is an argument here')
  const given = { ...fieldsOf(options), ...named }
  const { service: _, ...fields } = given
  const run = command.read(fields)
  await using opened = await open(given, line.env)
  return await run(opened, line)
}

function readArguments(args: string[]) {
  try {
    return parseArgs({ args, allowPositionals: true, options: knownOptions })
  } catch (error) {
    const [message = ''] = error instanceof Error ? error.message.split(/[.\n]/) : []
    throw new UsageError(message)
  }
}

/** The fields that options name, as the API takes them: null gives up a limit. */
function fieldsOf(options: ReturnType<typeof readArguments>['values']) {
  const { record, claim, expires, ...given } = options
  const { domains, folders, writes, networks } = given
  const fields = {
    ...given,
    domains: domains === '*' ? null : split(domains),
    folders: folders === '/' ? null : split(folders),
    writes: writes === 'direct' ? null : writes,
    networks: split(networks),
    records: record?.map((each) => {
      const [name, types = ''] = each.split(/:(.*)/s)
      return { name, types: types.split(',') }
    }),
    claims: claim && Object.fromEntries(claim.map((each) => [...each.split(/=(.*)/s), ''])),
    expires_in: expires === 'never' ? 0 : expires && Math.round(Number(expires) * 86_400),
  }
  const isGiven = ([, value]: [string, unknown]) => value !== undefined
  return Object.fromEntries(Object.entries(fields).filter(isGiven)) as Partial<typeof fields>
}

const split = (list: string | undefined) => list?.split(',').map((entry) => entry.trim())

/** Rows as lines of `name=value`, without absent values. */
export const describeRows = (rows: object[]): string =>
  rows.map((row) => `${Object.entries(row).flatMap(describeField).join('  ')}\n`).join('') || 'None\n'

const describeField = ([name, value]: [string, unknown]): string | [] =>
  (value ?? null) === null ? [] : `${name}=${describeValue(value)}`

const describeValue = (value: unknown) =>
  [value].flat().every((each) => typeof each === 'string') ? String(value) : JSON.stringify(value)

export const usesDatabase = (env: NodeJS.ProcessEnv) => Boolean(env.DATABASE_URL || env.DATABASE_URL_FILE)

/** The full name of a service. @throws {UsageError} for any other. */
export function readService(name: string | undefined): ServiceName {
  if (name === 'domain' || name === 'static') return `${name}-service`
  throw new UsageError('Name the service, domain or static')
}

/** @throws {UsageError} for a limit that means nothing in the service: what is granted would be unlimited. */
function refuseOtherLimits(service: string, fields: Fields): void {
  const others =
    service === 'static-service'
      ? { domains: '--domains', records: '--record', writes: '--writes', replace: '--replace' }
      : { folders: '--folders' }
  for (const [field, option] of Object.entries(others))
    if (field in fields) throw new UsageError(`${option} means nothing in the ${service}`)
}

/** Whether a service has stores to open. */
export const hasStores = (service: string, env: NodeJS.ProcessEnv) =>
  usesDatabase(env) || existsSync(dataDirOf(service, env))

/**
 * Opens users, API tokens and trusts of a service: in DATABASE_URL, else in its data directory.
 * @throws {Error} if there is no data directory, or for a limit in `fields` that the service does not have.
 */
export async function openStores(service: ServiceName, env: NodeJS.ProcessEnv, fields: Fields) {
  refuseOtherLimits(service, fields)
  const shared = usesDatabase(env) ? await openDatabase(service, env) : undefined
  const dataDir = dataDirOf(service, env)
  if (!hasStores(service, env)) throw new Error(`There is no directory ${dataDir}: set DATA_DIR`)
  const database = shared ?? openAuthFile(dataDir)
  const users = shared ? new SqlUsers(shared) : openUsersFile(env, dataDir)
  const now = shared?.now ?? Date.now // Replicas have the clock of the database in common.
  const { prefix } = services[service]
  const accounts = openAccounts({ users, database, prefix, now, report: () => undefined })
  return { service, now, ...accounts, [Symbol.asyncDispose]: () => database.close() }
}

export type Stores = Awaited<ReturnType<typeof openStores>>

/** USERS_FILE, or else `users.json` in DATA_DIR; `dataDir` of a service may have its own. */
export function openUsersFile(env: NodeJS.ProcessEnv, dataDir?: string): FileUsers {
  // `npm start` gives both services one users file.
  const shared = join(env.DATA_DIR || 'data', 'users.json')
  const isShared = dataDir === undefined || existsSync(shared)
  const file = env.USERS_FILE || (isShared ? shared : join(dataDir, 'users.json'))
  return new FileUsers(file, (error) => {
    throw error
  })
}

function openDatabase(service: string, env: NodeJS.ProcessEnv): Promise<Postgres> {
  return Postgres.open({
    ...readDatabaseConfig(env),
    schema: service.replace('-', '_'),
    migrations: authMigrations,
    onError: () => undefined, // A failed statement rejects by itself.
  })
}

/**
 * Reads a new password: from a terminal twice, without echo; otherwise from the first line.
 * @throws {Error} if it is missing, or not repeated.
 */
export async function readNewPassword({ stdin: input, stderr }: Omit<CommandLine, 'env' | 'stdout'>) {
  const terminal = input.isTTY === true
  // readline echoes to its output, so it gets one that discards.
  const output = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input, output, terminal, historySize: 0 })
  const typed = lines[Symbol.asyncIterator]()
  const ask = async (question: string) => {
    if (terminal) stderr.write(question)
    // Ctrl-C, Ctrl-D and the end of a pipe all end the lines.
    const { value, done } = await typed.next()
    if (done) throw new Error('No password was given')
    return value
  }
  try {
    const password = await ask('Password: ')
    if (terminal && password !== (await ask('\nAgain: '))) throw new Error('The two passwords differ')
    return password
  } finally {
    if (terminal) stderr.write('\n')
    lines.close()
  }
}
