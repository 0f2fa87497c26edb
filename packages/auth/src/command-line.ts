import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import type { ReadStream } from 'node:tty'
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { databaseConfig, databaseSettings, readEnv } from '@domains-and-files/http'
import { explainDatabaseFailure, Postgres } from '@domains-and-files/persistence'
import { z } from 'zod'
import { authMigrations } from './tables.ts'

/** What a command reads and writes: `process` in a terminal. */
export interface CommandLine {
  env: NodeJS.ProcessEnv
  stdin: Input
  stdout: Writable
  stderr: Writable
}

export class UsageError extends Error {}

/**
 * Prints the text that a command returns, or the reason of its failure.
 * @returns the exit status: 0 success, 1 failure, 2 usage error.
 */
export async function printResult(
  command: string,
  { stdout, stderr }: CommandLine,
  result: Promise<string>,
): Promise<0 | 1 | 2> {
  try {
    stdout.write(await result)
    return 0
  } catch (error) {
    const isUsageError = error instanceof UsageError
    const reason = explainDatabaseFailure(error)
    const message = reason instanceof Error ? reason.message : String(reason)
    stderr.write(`${message}${isUsageError ? `. See ${command} --help` : ''}\n`)
    return isUsageError ? 2 : 1
  }
}

/** The options and words of a command. @throws {UsageError} */
export function readOptions<const Options extends ParseArgsOptionsConfig>(
  args: string[],
  options: Options,
) {
  try {
    return parseArgs({ args, allowPositionals: true, options })
  } catch (error) {
    const [message = ''] = error instanceof Error ? error.message.split(/[.\n]/) : []
    throw new UsageError(message)
  }
}

/** Whether users and API tokens are in PostgreSQL. */
export const usesDatabase = (env: NodeJS.ProcessEnv) =>
  Boolean(env.DATABASE_URL || env.DATABASE_URL_FILE)

/** The data directory of a service: `npm start` gives each a folder in its DATA_DIR. */
export function dataDirOf(service: string, env: NodeJS.ProcessEnv): string {
  const root = env.DATA_DIR || 'data'
  return !env.DATA_DIR || existsSync(join(root, service)) ? join(root, service) : root
}

/** Opens the database of DATABASE_URL for a command, with the tables of this package for one service. */
export async function openCommandDatabase(
  service: string,
  env: NodeJS.ProcessEnv,
): Promise<Postgres & AsyncDisposable> {
  const config = databaseConfig(readEnv(z.object(databaseSettings), env))
  if (!config) throw new Error('DATABASE_URL is not set')
  const database = await Postgres.open({
    ...config,
    schema: service.replace('-', '_'),
    migrations: authMigrations,
    onError: () => undefined, // A statement that fails is reported by itself.
  })
  return Object.assign(database, { [Symbol.asyncDispose]: () => database.close() })
}

/** The source of a password: a terminal, or a stream whose first line it is. */
export type Input = NodeJS.ReadableStream & Pick<Partial<ReadStream>, 'isTTY'>

/**
 * Reads a new password: from a terminal twice, without echo; otherwise from the first line.
 * @throws {Error} if it is missing, or not repeated.
 */
export const readNewPassword = (input: Input, prompt: Writable): Promise<string> =>
  input.isTTY ? askTwice(input, prompt) : readFirstLine(input)

async function askTwice(input: Input, prompt: Writable): Promise<string> {
  // readline echoes to its output, so it gets one that discards.
  const output = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input, output, terminal: true, historySize: 0 })
  const typed = lines[Symbol.asyncIterator]()
  try {
    prompt.write('Password: ')
    const first = await readLine(typed)
    prompt.write('\nAgain: ')
    if (first === (await readLine(typed))) return first
  } finally {
    prompt.write('\n')
    lines.close()
  }
  throw new Error('The two passwords differ')
}

async function readFirstLine(input: Input): Promise<string> {
  const lines = createInterface({ input })
  try {
    return await readLine(lines[Symbol.asyncIterator]())
  } finally {
    lines.close()
  }
}

// Ctrl-C, Ctrl-D and the end of a pipe all end the lines.
async function readLine(lines: AsyncIterator<string>): Promise<string> {
  const { value, done } = await lines.next()
  if (done) throw new Error('No password was given')
  return value
}
