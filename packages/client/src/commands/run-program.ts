import { getSystemErrorMap, type ParseArgsConfig, parseArgs } from 'node:util'
import { ProblemError } from '../responses.ts'
import { type Credentials, trimSlashes } from '../session.ts'
import { logIn, readCredentials } from './credentials.ts'
import { CommandError, UsageError } from './terminal.ts'

type Options = NonNullable<ParseArgsConfig['options']>

interface Program<Client, Named extends Options> {
  /** One line for each command: `  domains show <domain> [--flag]`; angle brackets mark required arguments, square brackets optional ones. */
  usage: string
  /** Default port of the service on this machine. */
  port: number
  options: Named
  open: (options: { baseUrl: string; credentials: Credentials }) => Client
  commands: Record<string, Command<Client, Named>>
}

/** A command, with the words after its name and its options. */
export type Command<Client, Named extends Options> = (
  client: Client,
  words: string[],
  flags: Flags<Named>,
) => Promise<void>

type Flags<Named extends Options> = ReturnType<typeof parseArgs<{ options: Named; allowPositionals: true }>>['values']

/** Runs the command that is named. Exit status: 0 done, 1 failed or wrong arguments; 2 is left to `domains plan`. */
export async function runProgram<Client, Named extends Options>(
  program: 'domains' | 'files',
  { usage, port, options, open, commands }: Program<Client, Named>,
) {
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    // EPIPE: the reader of a pipe, such as `head`, has left.
    if (code !== 'EPIPE') process.stderr.write(`${message}\n`)
    process.exit(1)
  })
  if (process.argv.includes('--help') || process.argv.includes('-h')) {
    process.stdout.write(usage)
    return
  }
  const prefix = program.toUpperCase()
  const baseUrl = trimSlashes(process.env[`${prefix}_URL`] || `http://127.0.0.1:${port}`)
  try {
    const { values, positionals } = parseArgs({ allowPositionals: true, options })
    const [name = '', ...args] = positionals
    const service = { prefix, baseUrl }
    if (name === 'login') return await logIn(service, 'sso' in values && values.sso === true)
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined
    if (!command) throw new UsageError(name ? `Unknown command: ${name}` : 'Name a command.')
    const start = `  ${program} ${name} `
    const synopsis = usage.split('\n').find((line) => line.startsWith(start)) ?? ''
    const places = [...synopsis.matchAll(/<([^<>]+)>|\[\w[^[\]]*\]/g)].map(([, needed]) => needed)
    const missing = places.find((needed, at) => needed && !args[at])
    if (missing) throw new UsageError(`Name ${/^[aeiou]/.test(missing) ? 'an' : 'a'} ${missing}.`)
    if (args.length > places.length) throw new UsageError(`Too many arguments for ${name}.`)
    const isForeign = ([option, value]: [string, unknown]) => value !== false && !synopsis.includes(`[--${option}`)
    const [foreign] = Object.entries(values).find(isForeign) ?? []
    if (foreign) throw new UsageError(`There is no --${foreign} with ${name}.`)
    await command(open({ baseUrl, credentials: await readCredentials(service) }), args, values)
  } catch (error) {
    const isUsageError = error instanceof UsageError || isParseError(error)
    const reason = isUsageError ? `${usage}\n${error.message}` : reasonOf(error, `${baseUrl} (${prefix}_URL)`)
    if (reason === undefined) throw error
    process.stderr.write(`${reason}\n`)
    process.exitCode = 1
  }
}

const isParseError = (error: unknown): error is Error =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS')

function reasonOf(error: unknown, service: string): string | undefined {
  // Without the pointer of a fault in the query: the option has that name.
  if (error instanceof ProblemError) return `${error.message.replaceAll(/^( *)\/query\//gm, '$1')} (${error.code})`
  if (error instanceof TypeError && error.cause instanceof Error)
    return `The service cannot be reached at ${service}: ${error.cause.message}`
  if (error instanceof CommandError) return error.message
  if (!(error instanceof Error && 'syscall' in error)) return undefined
  const { path, errno = 0, message } = error as NodeJS.ErrnoException // Such as of a missing or unreadable file.
  return path === undefined ? message : `${path}: ${getSystemErrorMap().get(errno)?.[1] ?? message}`
}

/** The whole number of an option or an argument. */
export function readInteger(what: string, text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new UsageError(`${what} takes a whole number.`)
  return Number(text)
}
