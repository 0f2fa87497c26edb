import { parentPort, Worker } from 'node:worker_threads'
import { HttpError } from '@domains-and-files/http'
import { DatabaseUnavailableError, OutcomeUnknownError, storageFailure } from '@domains-and-files/persistence'

// Commands are committed in groups; in SQLite by worker threads, so that the event loop does not wait for fsync.

/** The value of a command that succeeded, or the error of one that failed alone. */
export type Outcome<Value> = { value: Value } | { error: unknown }

type Queued<Command, Value> = PromiseWithResolvers<Value> & { command: Command }

/**
 * Group commit: commands of one event-loop iteration, and those that arrive during a commit, share the next commit and
 * its fsync. `commit` returns one outcome per command, in order; if it rejects, so do all commands, the queued ones, too:
 * during an outage each group would wait for the time limit. A large command is a group of its
 * own; a group of small commands runs between two large ones.
 */
export class GroupCommit<Command, Value> {
  readonly #commit: (commands: Command[]) => Promise<Outcome<Value>[]>
  readonly #small: Queued<Command, Value>[] = []
  readonly #large: Queued<Command, Value>[] = []
  #isCommitting = false

  constructor(commit: (commands: Command[]) => Promise<Outcome<Value>[]>) {
    this.#commit = commit
  }

  submit(command: Command, size: 'small' | 'large' = 'small'): Promise<Value> {
    const outcome = Promise.withResolvers<Value>()
    const queue = size === 'large' ? this.#large : this.#small
    queue.push({ command, ...outcome })
    // Deferred: otherwise the first command would be committed alone, and the others would wait for it.
    if (!this.#isCommitting) setImmediate(() => void this.#run())
    this.#isCommitting = true
    return outcome.promise
  }

  get queued(): number {
    return this.#small.length + this.#large.length
  }

  async #run() {
    for (let isLarge = false; this.#small.length + this.#large.length > 0; isLarge = !isLarge) {
      const group = isLarge ? this.#large.splice(0, 1) : this.#small.splice(0, maxGroup)
      if (group.length === 0) continue
      try {
        const outcomes = await this.#commit(group.map(({ command }) => command))
        for (const [at, { resolve, reject }] of group.entries()) {
          const outcome = outcomes[at] ?? { error: new Error('a command has no outcome') }
          if ('error' in outcome) reject(fromPlain(outcome.error))
          else resolve(outcome.value)
        }
      } catch (error) {
        for (const { reject } of [...group, ...this.#small.splice(0), ...this.#large.splice(0)]) reject(error)
      }
    }
    this.#isCommitting = false
  }
}

const maxGroup = 64

/**
 * One outcome per command, in order. If the group fails, retries each command alone: on a full disk removals may work
 * although stores fail. Rejects if the database is unavailable: each retry would wait for it. `onFailure` makes the
 * outcome of a command that fails alone.
 */
export async function commitEach<Command, Value>(
  commands: Command[],
  commit: (commands: Command[]) => Promise<Outcome<Value>[]>,
  onFailure: (command: Command, error: unknown) => Promise<Outcome<Value>> = async (_command, error) => ({ error }),
): Promise<Outcome<Value>[]> {
  try {
    return await commit(commands)
  } catch (error) {
    if (error instanceof DatabaseUnavailableError || error instanceof OutcomeUnknownError) throw error
    const [command, ...others] = commands
    if (command !== undefined && others.length === 0) return [await onFailure(command, error)]
  }
  const outcomes = []
  for (const each of commands)
    outcomes.push(...(await commitEach([each], commit, onFailure).catch((error) => [{ error }])))
  return outcomes
}

// Three times the 1 MiB that the young generation begins with: it would grow with that of the event loop, to no effect.
const resourceLimits = { maxYoungGenerationSizeMb: 3 }

/** The methods of a worker thread: one structured-cloneable value in, one out. */
type Methods = Record<string, (input: never) => unknown>

interface Call {
  id: number
  method: string
  input: unknown
}

type Reply = { id: number; value: unknown } | { id: number; error: PlainError }

/**
 * Calls methods of a worker thread, which runs them in order. The first call starts the thread, which costs 12 MiB and 40 ms
 * of CPU time. If the thread exits (such as when the disk fails at its start), its calls reject; the next starts another.
 */
export class WorkerRpc<Known extends Methods> {
  readonly #start: () => Worker
  readonly #pending = new Map<number, Pick<PromiseWithResolvers<never>, 'resolve' | 'reject'>>()
  #worker: Worker | undefined
  #calls = 0
  #isClosed = false

  constructor(script: URL, workerData: unknown) {
    this.#start = () => {
      let failure: unknown = new Error('a worker thread has ended')
      return new Worker(script, { workerData, resourceLimits })
        .on('message', (reply: Reply) => {
          const call = this.#pending.get(reply.id)
          this.#pending.delete(reply.id)
          if ('error' in reply) call?.reject(fromPlain(reply.error))
          else call?.resolve(reply.value as never) // The thread replies with the type of the called method.
        })
        .on('error', (error) => {
          failure = error
        })
        .on('exit', () => {
          const error = storageFailure(failure)
          this.#worker = undefined
          for (const { reject } of this.#pending.values()) reject(error)
          this.#pending.clear()
        })
    }
  }

  ask<Method extends keyof Known & string>(
    method: Method,
    input: Parameters<Known[Method]>[0],
  ): Promise<Awaited<ReturnType<Known[Method]>>> {
    if (this.#isClosed) return Promise.reject(new Error('a worker thread was closed'))
    this.#worker ??= this.#start()
    this.#calls += 1
    const call: Call = { id: this.#calls, method, input }
    const reply = Promise.withResolvers<Awaited<ReturnType<Known[Method]>>>()
    this.#pending.set(call.id, reply)
    this.#worker.postMessage(call)
    return reply.promise
  }

  get waiting(): number {
    return this.#pending.size
  }

  /** Stops the thread after the pending calls. */
  async close(): Promise<void> {
    const worker = this.#worker
    this.#isClosed = true
    if (!worker) return
    const ended = new Promise((resolve) => worker.once('exit', resolve))
    worker.postMessage(undefined)
    await ended
  }
}

/** The code of an error; of a failing database, that of its cause. Errors lose their class between threads. */
function codeOf(error: unknown): unknown {
  if (!(error instanceof Error)) return undefined
  if ('code' in error) return error.code
  return codeOf(error.cause) ?? (error instanceof DatabaseUnavailableError ? 'EIO' : undefined)
}

/** Runs in the worker thread: replies to each call, and closes when `WorkerRpc` is closed. */
export function serveCalls(methods: Methods, close: () => void | Promise<void>): void {
  const port = parentPort
  if (!port) throw new Error('serveCalls runs in worker threads only')
  port.on('message', async (call: Call | undefined) => {
    if (!call) {
      await close()
      port.close()
      return
    }
    const { id, method, input } = call
    try {
      port.postMessage({ id, value: await methods[method]?.(input as never) } satisfies Reply) // Typed by `ask`.
    } catch (error) {
      port.postMessage({ id, error: toPlain(error) } satisfies Reply)
    }
  })
}

interface PlainError {
  error: Error
  fields: object
}

/** An error for another thread, with its fields and code: structured cloning keeps only its text and stack. */
export const toPlain = (error: unknown): PlainError => ({
  error: error instanceof Error ? error : new Error(String(error)),
  fields: { ...Object(error), code: codeOf(error) },
})

/** Reverses `toPlain`; restores the class of storage errors and of `HttpError` only. What is thrown in this thread stays. */
export function fromPlain(plain: unknown): unknown {
  if (!isPlainError(plain)) return plain
  const whole = Object.assign(plain.error, plain.fields)
  if (!('status' in whole)) return storageFailure(whole)
  const { status, code, message } = whole as HttpError // No other error has a status.
  return new HttpError(status, code, message, whole)
}

const isPlainError = (value: unknown): value is PlainError =>
  typeof value === 'object' && value !== null && 'fields' in value && 'error' in value
