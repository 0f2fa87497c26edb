import type { Writable } from 'node:stream'
import {
  codeOf,
  DatabaseFullError,
  DatabaseUnavailableError,
  DataDirError,
  explainDatabaseFailure,
  storageFailure,
} from './errors.ts'

/** Environment and streams of a command: `process` in a terminal. */
export interface CommandLine {
  env: NodeJS.ProcessEnv
  stdout: Writable
  stderr: Writable
}

/**
 * Runs a command on stored data, and prints what it returns, or the sentence of a failure that an operator can repair.
 * Prints the usage for `--help`, and if `read` returns no options, or throws, as `parseArgs` does, with the reason.
 * @returns the exit status: by default 0, 1 after such a failure, 2 for wrong arguments.
 * @throws other failures.
 */
export async function runMaintenance<Options>(
  { stdout, stderr }: CommandLine,
  { usage, args, read }: { usage: string; args: string[]; read: (args: string[]) => Options | undefined },
  work: (options: Options, progress: Progress) => Promise<{ summary: string; status?: number }>,
): Promise<number> {
  const isHelp = args.includes('--help') || args.includes('-h')
  let options: Options | undefined
  let fault = ''
  try {
    options = read(args)
  } catch (error) {
    if (error instanceof Error) fault = `\n${error.message}\n`
  }
  if (isHelp || !options) {
    if (isHelp) stdout.write(usage)
    else stderr.write(usage + fault)
    return isHelp ? 0 : 2
  }
  const progress = new Progress(stderr)
  try {
    const { summary, status = 0 } = await work(options, progress).finally(() => progress.end())
    stdout.write(`${summary}\n`)
    return status
  } catch (error) {
    const reason = explainDatabaseFailure(error)
    const sentence = explain(error) ?? (reason instanceof DataDirError ? reason.message : undefined)
    if (sentence === undefined) throw error
    stderr.write(`${sentence}\n`)
    return 1
  }
}

export const isDiskFull = (error: unknown): boolean => storageFailure(causeOf(error)) instanceof DatabaseFullError

function explain(error: unknown): string | undefined {
  const failure = causeOf(error)
  const [, words] = reasons.find(([codes]) => codes.test(codeOf(failure))) ?? []
  return words && failure instanceof Error ? `${words} (${failure.message}).` : undefined
}

// A snapshot of SQLite wraps errors, also of what copies its rows.
const causeOf = (error: unknown) =>
  error instanceof DatabaseUnavailableError || error instanceof DatabaseFullError ? error.cause : error

// SQLite takes EIO of a read for damage.
const reasons: [codes: RegExp, words: string][] = [
  [/^(?:ENOSPC|EDQUOT|SQLITE_FULL)/, 'The disk is full: free space and try again'],
  [/^(?:EACCES|EPERM|SQLITE_(?:READONLY|CANTOPEN))/, 'Permission denied: run this as the user that runs the service'],
  [/^(?:EROFS|ENOTDIR|EEXIST)$/, 'Cannot use this directory'],
  [/^SQLITE_(?:CORRUPT|NOTADB)/, 'The database is damaged, or the disk fails'],
]

const intervalMs = { terminal: 100, file: 5000 }

type Stream = Writable & { isTTY?: boolean }

/** Shows progress: on a terminal in one overwritten line, otherwise in a new line every five seconds. */
export class Progress {
  readonly #stream: Stream
  #phase = ''
  #rows = 0
  #of = { count: 0, bytes: 0 }
  #done = { count: 0, bytes: 0 }
  #shownAt = Date.now()

  constructor(stream: Stream) {
    this.#stream = stream
  }

  /** Begins to count blobs. */
  begin(phase: string, of: { count: number; bytes: number }) {
    this.#phase = phase
    this.#of = of
    this.#done = { count: 0, bytes: 0 }
  }

  readonly rows = (count: number) => {
    this.#rows += count
    this.#show(() => `${this.#rows} rows`)
  }

  readonly blob = ({ size }: { size: number }) => {
    this.#done.count += 1
    this.#done.bytes += size
    this.#show(() => {
      const blobs = `${this.#done.count} of ${this.#of.count} blobs`
      const bytes = `${inMegabytes(this.#done.bytes)} of ${inMegabytes(this.#of.bytes)} MB`
      return `${this.#phase} ${blobs}, ${bytes}`
    })
  }

  /** Clears the line of a terminal. */
  end() {
    if (this.#stream.isTTY) this.#stream.write('\r\x1b[K')
  }

  #show(line: () => string) {
    const now = Date.now()
    if (now - this.#shownAt < (this.#stream.isTTY ? intervalMs.terminal : intervalMs.file)) return
    this.#shownAt = now
    this.#stream.write(this.#stream.isTTY ? `\r\x1b[K${line()}` : `${line()}\n`)
  }
}

const inMegabytes = (bytes: number) => Math.round(bytes / 1_000_000)
