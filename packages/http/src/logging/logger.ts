import { fstatSync, write, writeSync } from 'node:fs'
import { type DestinationStream, type Logger as PinoLogger, pino } from 'pino'

/** A pino logger with its output; child loggers inherit `output`. */
export type Logger = PinoLogger & { readonly output: LogOutput }

/** Logs JSON lines to standard output and redacts credentials. Tests pass another destination as `to`. */
export function createLogger(settings: { name: string; level: string }, to?: DestinationStream): Logger {
  const output: LogOutput = to ? { write: (line) => to.write(line), droppedLines: 0 } : standardOutput()
  const options = {
    level: settings.level,
    base: { name: settings.name },
    timestamp: timeField,
    formatters: { level: (level: string) => ({ level }) },
    redact: { paths: secretPaths, censor: '[redacted]' },
  }
  return Object.assign(pino(options, output), { output })
}

const secretNames = ['authorization', 'password', 'access_token', 'token', 'secret', 'ApiKey', 'apiKey']
const secretPaths = secretNames.flatMap((name) => [name, `*.${name}`, `*.*.${name}`])

/** Where log lines go; each line ends in a newline. */
interface LogOutput {
  /**
   * Queues a line until this event-loop iteration ends; if `isBatched`, for up to 100 ms, to write several at once.
   * SIGKILL and power cuts lose queued lines.
   */
  write(line: string, options?: { isBatched: boolean }): void
  /** Lines that could not be written: the disk was full, the reader slow or closed. */
  readonly droppedLines: number
}

/**
 * Writes lines to standard output and never fails: a line that cannot be written is dropped and counted. Never blocks
 * the event loop: libuv's thread pool writes files; pipes and sockets are non-blocking, with up to 4 MiB queued for a
 * slow reader. The queue is flushed when the process exits. docs/adr/0023 says why this is not sonic-boom.
 */
class BatchedOutput implements LogOutput {
  readonly #isFile = fstatSync(stdout).isFile()
  droppedLines = 0
  /** Encoded bytes: garbage collections would copy queued strings. */
  #queue: { bytes: Buffer; length: number }[] = []
  #queuedBytes = 0
  #rest: Buffer | undefined
  #isMidLine = false
  #isWriting = false
  #isFlushDue = false
  #timer: NodeJS.Timeout | undefined

  constructor() {
    process.on('exit', () => this.#flushOnExit())
  }

  write(line: string, { isBatched }: { isBatched: boolean } = { isBatched: false }) {
    if (this.#queuedBytes > maxQueuedBytes) {
      this.droppedLines += 1
      return
    }
    // UTF-8 takes at most three bytes per UTF-16 code unit.
    const maxLength = 3 * line.length
    let last = this.#queue.at(-1)
    if (!last || last.bytes.length - last.length < maxLength) {
      last = { bytes: Buffer.allocUnsafe(Math.max(chunkBytes, maxLength)), length: 0 }
      this.#queue.push(last)
    }
    const written = last.bytes.write(line, last.length)
    last.length += written
    this.#queuedBytes += written
    if (!isBatched) this.#flushSoon()
    else if (this.#queuedBytes < batchBytes) this.#flushIn(batchMs)
    else this.#flush()
  }

  #flushSoon() {
    if (this.#isFlushDue) return
    this.#isFlushDue = true
    setImmediate(() => {
      this.#isFlushDue = false
      this.#flush()
    })
  }

  #flushIn(ms: number) {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#flush()
    }, ms).unref()
  }

  // One write at a time keeps the order.
  #flush() {
    if (this.#isWriting || (this.#timer && this.#rest)) return
    if (!this.#isFile) {
      if (!this.#drain()) this.#flushIn(retryMs)
      return
    }
    const bytes = this.#takeBatch()
    if (!bytes) return
    this.#isWriting = true
    write(stdout, bytes, (error, written) => {
      this.#isWriting = false
      this.#settle(bytes, error ?? written)
      if (this.#rest || this.#queuedBytes >= batchBytes) this.#flush()
      else if (this.#queuedBytes > 0) this.#flushIn(batchMs)
    })
  }

  // Whether all is written; false while the reader is slow.
  #drain(): boolean {
    for (let bytes = this.#takeBatch(); bytes; bytes = this.#takeBatch()) {
      try {
        this.#settle(bytes, writeSync(stdout, bytes))
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') {
          this.#rest = bytes
          return false
        }
        this.#settle(bytes, error)
      }
    }
    return true
  }

  #takeBatch(): Buffer | undefined {
    if (this.#rest) return this.#rest
    const first = this.#queue.shift()
    if (!first) return undefined
    this.#queuedBytes -= first.length
    const bytes = first.bytes.subarray(0, first.length)
    // A failed write may have left half a line: end it, so that it does not swallow the next one.
    return this.#isMidLine ? Buffer.concat([Buffer.of(newline), bytes]) : bytes
  }

  #settle(bytes: Buffer, outcome: unknown) {
    this.#rest = undefined
    if (typeof outcome !== 'number') {
      for (const byte of bytes) if (byte === newline) this.droppedLines += 1
      return
    }
    if (outcome > 0) this.#isMidLine = bytes[outcome - 1] !== newline
    // A partial write is not an error; if there is one, the next write reports it.
    if (outcome < bytes.length) this.#rest = bytes.subarray(outcome)
  }

  // A file write that is still running in the thread pool ends before the process does.
  #flushOnExit() {
    const deadline = performance.now() + exitMs
    while (!this.#drain() && performance.now() <= deadline) Atomics.wait(sleepCell, 0, 0, retryMs)
  }
}

// Cached: formatting a date takes longer than a line.
let second = { at: Number.NaN, text: '' }

// The present time as RFC 3339, in UTC.
export function timeField(): string {
  const now = Date.now()
  const at = now - (now % 1000)
  if (at !== second.at) second = { at, text: new Date(at).toISOString().slice(0, 20) }
  return `,"time":"${second.text}${String(now - at).padStart(3, '0')}Z"`
}

let standard: LogOutput | undefined

// One queue for the process keeps the order of lines.
function standardOutput(): LogOutput {
  void process.stdout // Loading the stream makes a pipe or socket non-blocking.
  standard ??= new BatchedOutput()
  return standard
}

const stdout = 1
const newline = 0x0a
const batchMs = 100
const batchBytes = 65_536
const chunkBytes = 131_072
const maxQueuedBytes = 4_194_304
const retryMs = 10
const exitMs = 1000
const sleepCell = new Int32Array(new SharedArrayBuffer(4))
