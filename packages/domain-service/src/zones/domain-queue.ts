import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { delay } from '../clock.ts'
import type { Domain } from '../dns/domain-name.ts'
import { changeNotQueued, serviceStopping } from '../errors.ts'
import type { RegistrarClient } from '../registrar/client.ts'
import { BatchCalls } from './batch/batch-calls.ts'
import { type BatchParts, WriteBatch } from './batch/write-batch.ts'
import type { BatchEnd } from './write-queue.ts'
import type { QueuedWrite } from './zone-write.ts'

interface Options {
  registrar: RegistrarClient
  batch: BatchParts
  onBatch: (end: BatchEnd) => void
  /** Called when nothing waits any more: the queue is not used again. */
  onIdle: () => void
}

/** The calls of a batch: read, write, read-back. */
const batchCalls = 3

/** How long a batch that nobody waits for holds back one that somebody waits for. */
const patienceMs = 2_000

/** The writes that wait for one domain, carried out in batches, one at a time. */
export class DomainQueue {
  readonly #domain: Domain
  readonly #options: Options
  #writes: QueuedWrite[] = []
  #checks: PromiseWithResolvers<void>[] = []
  #running: Promise<void> | undefined
  #isClosing = false

  constructor(domain: Domain, options: Options) {
    this.#domain = domain
    this.#options = options
  }

  get waiting(): number {
    return this.#writes.length
  }

  add(write: QueuedWrite) {
    this.#writes.push(write)
    this.#start()
  }

  /** Resolves when the zone was read and its open sends were resolved. */
  check(): Promise<void> {
    const check = Promise.withResolvers<void>()
    this.#checks.push(check)
    this.#start()
    return check.promise
  }

  /** Carries out what somebody waits for. */
  async close(): Promise<void> {
    this.#isClosing = true
    await this.#running
  }

  #start() {
    this.#running ??= this.#run()
  }

  async #run() {
    while (this.#writes.length > 0 || this.#checks.length > 0) {
      const isAwaited = this.#writes.some(({ isAsync }) => !isAsync)
      if (this.#isClosing && !isAwaited) this.#rejectAll(serviceStopping())
      else await this.#runBatch(isAwaited).catch((error) => this.#fail(error))
    }
    this.#options.onIdle()
  }

  async #runBatch(isAwaited: boolean) {
    const isReadOnly = this.#writes.length > 0 && this.#writes.every(({ dryRun }) => dryRun)
    const calls = await this.#reserve(isAwaited, isReadOnly ? 1 : batchCalls)
    if (!calls) return
    using _calls = calls
    const batch = new WriteBatch(this.#options.batch, calls, this.#domain.name)
    try {
      await batch.read()
    } catch (error) {
      for (const check of this.#checks.splice(0)) check.reject(error)
      await batch.fail(this.#writes.splice(0), error)
      return
    }
    // Requests that arrived during the read join the batch, and so do those close behind them.
    if (this.#writes.length > 1) await debounce(this.#writes)
    const writes = await this.#take(isReadOnly)
    const checks =
      writes.length > 0 && writes.every(({ dryRun }) => dryRun) ? [] : this.#checks.splice(0)
    await batch.run(writes)
    for (const check of checks) check.resolve()
    this.#options.onBatch(batch)
  }

  async #reserve(isAwaited: boolean, count: number): Promise<BatchCalls | undefined> {
    const { registrar, batch } = this.#options
    const options = { registrar, clock: batch.clock, domain: this.#domain }
    try {
      if (isAwaited) return await BatchCalls.reserve(options, count, {})
      const priority = this.#writes.length > 0 ? 'queued' : 'background'
      return await BatchCalls.reserve(options, count, { priority, maxWaitMs: patienceMs })
    } catch (error) {
      if (!isAwaited) {
        await delay(batch.clock, patienceMs / 4)
        return undefined
      }
      const awaited = this.#writes.filter(({ isAsync }) => !isAsync)
      this.#writes = this.#writes.filter(({ isAsync }) => isAsync)
      for (const write of awaited) write.reject(error)
      return undefined
    }
  }

  // Calls that were reserved for reading alone serve dry runs alone.
  async #take(isReadOnly: boolean): Promise<QueuedWrite[]> {
    const writes = this.#writes.filter(({ dryRun }) => dryRun || !isReadOnly)
    this.#writes = this.#writes.filter((write) => !writes.includes(write))
    const ids = writes.flatMap(({ isAsync, id }) => (isAsync && id !== undefined ? [id] : []))
    try {
      const claimed = new Set(await this.#options.batch.ledger.claim(ids))
      const isLost = ({ isAsync, id }: QueuedWrite) =>
        isAsync && id !== undefined && !claimed.has(id)
      for (const write of writes.filter(isLost)) {
        write.reject(changeNotQueued(write.id ?? 0, 'no longer queued'))
      }
      return writes.filter((write) => !isLost(write))
    } catch (error) {
      for (const write of writes) if (write.isAsync) write.reject(error)
      return writes.filter(({ isAsync }) => !isAsync)
    }
  }

  // A fault of ours must not end the process, nor leave anyone waiting.
  #fail(error: Error) {
    this.#options.batch.log.error({ err: error, domain: this.#domain.name }, 'batch failed')
    this.#rejectAll(error)
  }

  #rejectAll(error: Error) {
    for (const check of this.#checks.splice(0)) check.reject(error)
    for (const write of this.#writes.splice(0)) write.reject(error)
  }
}

// Debounce: registrar quota is scarcer than latency.
async function debounce(queue: QueuedWrite[]) {
  const latest = performance.now() + 250
  for (let seen = 0; queue.length > seen && performance.now() < latest; ) {
    seen = queue.length
    await sleep(20)
    await turn() // After a busy moment, requests that lie ready at the sockets are read first.
  }
}
