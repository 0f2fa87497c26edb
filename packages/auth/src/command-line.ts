import type { Writable } from 'node:stream'
import { explainDatabaseFailure } from '@domains-and-files/persistence'
import type { Input } from './users/terminal.ts'

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
