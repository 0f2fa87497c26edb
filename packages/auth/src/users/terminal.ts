import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import type { ReadStream } from 'node:tty'
import { shortestPassword } from '../login/password.ts'

/** What a password is read from: a terminal, or anything else that holds it in its first line. */
export type Input = NodeJS.ReadableStream & Pick<Partial<ReadStream>, 'isTTY'>

/**
 * Reads a new password: from a terminal twice and without showing it, otherwise from the first line.
 * @throws {PasswordRejected} if it is too short, not repeated, or not given.
 */
export async function readNewPassword(input: Input, prompt: Writable): Promise<string> {
  const password = input.isTTY ? await askTwice(input, prompt) : await readFirstLine(input)
  if (password.length >= shortestPassword) return password
  throw new PasswordRejected(`A password must have at least ${shortestPassword} characters`)
}

export class PasswordRejected extends Error {}

async function askTwice(input: Input, prompt: Writable): Promise<string> {
  // What is typed is shown by the output of readline, so it gets one that shows nothing.
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
  throw new PasswordRejected('The two passwords are not the same')
}

async function readFirstLine(input: Input): Promise<string> {
  const lines = createInterface({ input })
  try {
    return await readLine(lines[Symbol.asyncIterator]())
  } finally {
    lines.close()
  }
}

// Ctrl-C and Ctrl-D end the lines, as the end of a pipe does.
async function readLine(lines: AsyncIterator<string>): Promise<string> {
  const { value, done } = await lines.next()
  if (done) throw new PasswordRejected('No password was given')
  return value
}
