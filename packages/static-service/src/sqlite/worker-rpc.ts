import { parentPort, Worker } from 'node:worker_threads'
import { HttpError } from '@domains-and-files/http'
import { DatabaseUnavailableError, storageFailure } from '@domains-and-files/persistence'

/** The methods of a worker thread: one structured-cloneable value in, one out. */
type Methods = Record<string, (input: never) => unknown>

interface Call {
  id: number
  method: string
  input: unknown
}

type Reply = { id: number; value: unknown } | { id: number; error: PlainError }

interface PendingCall {
  resolve: (value: never) => void
  reject: (error: unknown) => void
}

/**
 * Calls methods of a worker thread, which runs them in order. The thread starts with the first call: each takes 12 MiB and
 * 50 ms of CPU time. One that ends, such as when the disk fails at its start, fails its calls; the next call starts another.
 */
export class WorkerRpc<Known extends Methods> {
  readonly #start: () => Worker
  readonly #pending = new Map<number, PendingCall>()
  #worker: Worker | undefined
  #calls = 0
  #isClosed = false

  constructor(script: URL, workerData: unknown) {
    this.#start = () => {
      let failure: unknown = new Error('a worker thread has ended')
      return new Worker(script, { workerData })
        .on('message', (reply: Reply) => this.#settle(reply))
        .on('error', (error) => {
          failure = error
        })
        .on('exit', () => this.#fail(storageFailure(failure)))
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
    const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<Known[Method]>>>()
    this.#pending.set(call.id, { resolve, reject })
    this.#worker.postMessage(call)
    return promise
  }

  /** Calls without a reply yet. */
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

  #settle(reply: Reply) {
    const call = this.#pending.get(reply.id)
    this.#pending.delete(reply.id)
    if ('value' in reply) {
      call?.resolve(reply.value as never) // The thread replies with the type of the called method.
      return
    }
    call?.reject(fromPlain(reply.error))
  }

  #fail(error: unknown) {
    this.#worker = undefined
    for (const { reject } of this.#pending.values()) reject(error)
    this.#pending.clear()
  }
}

/** An error that crosses threads keeps its code, not its class; that of a failing database is the code of its cause. */
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

/** An error for another thread, with its own fields and code: structured cloning keeps its text and stack alone. */
export const toPlain = (error: unknown): PlainError => ({
  error: error instanceof Error ? error : new Error(String(error)),
  fields: { ...Object(error), code: codeOf(error) },
})

/** What a command ended with, for another thread. */
export const plainOutcome = <Of extends object>(outcome: Of | { error: unknown }) =>
  'error' in outcome ? { error: toPlain(outcome.error) } : outcome

/** What `plainOutcome` was given. */
export const fromPlainOutcome = <Of extends object>(outcome: Of | { error: unknown }) =>
  'error' in outcome ? { error: fromPlain(outcome.error) } : outcome

/** The error that `toPlain` was given; only those of storage and of requests have their class. */
export function fromPlain(plain: unknown): unknown {
  const { error, fields } = plain as PlainError // As `toPlain` returned it.
  const whole = Object.assign(error, fields)
  if (!('status' in whole)) return storageFailure(whole)
  const { status, code, message } = whole as HttpError // No other error has a status.
  return new HttpError(status, code, message, whole)
}
