import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { manageTokens } from '../../src/api-tokens/tokens-command.ts'
import { manageTrusts } from '../../src/trusts/trusts-command.ts'
import { manageUsers } from '../../src/users/users-command.ts'

const commands = { users: manageUsers, tokens: manageTokens, trusts: manageTrusts }
const files = {
  users: 'users/users-command.ts',
  tokens: 'api-tokens/tokens-command.ts',
  trusts: 'trusts/trusts-command.ts',
}

export interface Result {
  status: number
  stdout: string
  stderr: string
}

interface Surroundings {
  stdin?: string
  env?: Record<string, string>
  cwd?: string
}

/** Runs a command in this process: a process of its own takes a quarter of a second to load its modules. */
export async function runCommand(
  command: keyof typeof commands,
  args: string[],
  { stdin = '', env = {} }: Omit<Surroundings, 'cwd'> = {},
): Promise<Result> {
  const input = new PassThrough().end(stdin)
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const status = await commands[command](args, { env, stdin: input, stdout, stderr })
  return { status, stdout: await text(stdout.end()), stderr: await text(stderr.end()) }
}

/** Runs a command as a user does. */
export async function spawnCommand(
  command: keyof typeof commands,
  args: string[],
  { stdin = '', env = {}, cwd }: Surroundings = {},
): Promise<Result> {
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../src', files[command]), ...args], {
    cwd,
    env: { PATH, NODE_COMPILE_CACHE, ...env },
  })
  child.stdin.on('error', () => {}) // A command that reads no password may end before it gets one.
  child.stdin.end(stdin)
  const [stdout, stderr, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { status, stdout, stderr }
}
