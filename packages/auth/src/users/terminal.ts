import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import type { ReadStream } from 'node:tty'
import { minPasswordLength } from '../login/password.ts'

/** The source of a password: a terminal, or a stream whose first line it is. */
export type Input = NodeJS.ReadableStream & Pick<Partial<ReadStream>, 'isTTY'>

/**
 * Reads a new password: from a terminal twice, without echo; otherwise from the first line.
 * @throws {PasswordRejected} if it is too short, missing, or not repeated.
 */
export async function readNewPassword(input: Input, prompt: Writable): Promise<string> {
  const password = input.isTTY ? await askTwice(input, prompt) : await readFirstLine(input)
  if (password.length >= minPasswordLength) return password
  throw new PasswordRejected(`A password must have at least ${minPasswordLength} characters`)
}

export class PasswordRejected extends Error {}

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
  throw new PasswordRejected('The two passwords differ')
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
  if (done) throw new PasswordRejected('No password was given')
  return value
}
