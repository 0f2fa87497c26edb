import type { Writable } from 'node:stream'
import { Progress } from './backup/progress.ts'
import { DatabaseFullError, DatabaseUnavailableError, DataDirError, explainDatabaseFailure } from './errors.ts'

/** Environment and streams of a command: `process` in a terminal. */
export interface CommandLine {
  env: NodeJS.ProcessEnv
  stdout: Writable
  stderr: Writable
}

/**
 * Runs a command on stored data, and prints what it returns, or the sentence of a failure that an operator can repair.
 * @returns the exit status: by default 0, and 1 after such a failure.
 * @throws other failures.
 */
export async function runMaintenance(
  { stdout, stderr }: Pick<CommandLine, 'stdout' | 'stderr'>,
  work: (progress: Progress) => Promise<{ summary: string; status?: number }>,
): Promise<number> {
  const progress = new Progress(stderr)
  try {
    const { summary, status = 0 } = await work(progress)
    progress.end()
    stdout.write(`${summary}\n`)
    return status
  } catch (error) {
    progress.end()
    const reason = explainFailure(error)
    if (!(reason instanceof DataDirError)) throw error
    stderr.write(`${reason.message}\n`)
    return 1
  }
}

/** The sentence for an error of a full disk; undefined for others. */
export const explainFullDisk = (error: unknown) =>
  ['ENOSPC', 'EDQUOT', 'SQLITE_FULL'].includes(codeOf(causeOf(error))) ? explain(error) : undefined

/**
 * Translates errors of the system, SQLite and PostgreSQL that an operator can fix into a `DataDirError`. Returns others
 * unchanged.
 */
function explainFailure(error: unknown): unknown {
  const sentence = explain(error)
  return sentence === undefined ? explainDatabaseFailure(error) : new DataDirError(sentence)
}

function explain(error: unknown): string | undefined {
  const failure = causeOf(error)
  const words = reasons[codeOf(failure)]
  return words && failure instanceof Error ? `${words} (${failure.message}).` : undefined
}

// A snapshot of SQLite wraps errors, also of what copies its rows.
const causeOf = (error: unknown) =>
  error instanceof DatabaseUnavailableError || error instanceof DatabaseFullError ? error.cause : error

// SQLite may name an extended code.
function codeOf(failure: unknown): string {
  const code = failure instanceof Error && 'code' in failure ? String(failure.code) : ''
  return /^SQLITE_[A-Z]+/.exec(code)?.[0] ?? code
}

const full = 'The disk is full: free space and try again'
const notAllowed = 'Permission denied: run this as the user that runs the service'

const reasons: Record<string, string> = {
  ENOSPC: full,
  EDQUOT: 'The disk quota is exceeded: free space and try again',
  SQLITE_FULL: full,
  SQLITE_CANTOPEN: 'Cannot open the database: run this as the user that runs the service',
  SQLITE_CORRUPT: 'The database is damaged, or the disk fails', // SQLite takes EIO of a read for damage.
  SQLITE_NOTADB: 'The database is damaged',
  SQLITE_READONLY: notAllowed,
  EACCES: notAllowed,
  EPERM: notAllowed,
  EROFS: 'The file system is read-only',
  ENOTDIR: 'A file is where a directory is expected',
}
