import { setImmediate as nextIteration, setTimeout as sleep } from 'node:timers/promises'
import { allowsDomain, hasRole } from '@domains-and-files/auth'
import { delay } from '@domains-and-files/http'
import type { Domain } from '../dns/domain-name.ts'
import { changeNotQueued, rightsEnded, serviceStopping } from '../errors.ts'
import type { RegistrarClient } from '../registrar/client.ts'
import { BatchRecorder } from './batch/batch-recorder.ts'
import { BatchCalls } from './batch/current-zone.ts'
import { type BatchDependencies, WriteBatch } from './batch/write-batch.ts'
import type { BatchEnd, QueuedWrite } from './zone-write.ts'

interface Options {
  registrar: RegistrarClient
  batch: BatchDependencies
  onBatch: (end: BatchEnd) => void
  /** Called when nothing waits any more. */
  onIdle: () => void
  /**
   * Adds the writes that the ledger has queued. Returns the order up to which it has added all: later ones wait, so that
   * they overtake none.
   */
  pull: () => Promise<number>
  /** Whether other processes queue writes, too. */
  isShared: boolean
  /** Called right before a zone is sent. @throws {HttpError} where this process may not write the domain any more. */
  checkLease?: () => void
}

/** The calls of a batch: read, write, read-back. */
const batchCalls = 3

/** How long a batch that nobody waits for holds back one that somebody waits for. */
const maxBackgroundWaitMs = 2_000

const maxDebounceMs = 250
// Writes of other processes take longer to arrive. Less than the age of a read that a write may be based on.
const maxSharedDebounceMs = 450

/** The writes that wait for one domain, carried out in batches, one at a time. */
export class DomainQueue {
  readonly #domain: Domain
  readonly #options: Options
  readonly #recorder: BatchRecorder
  /** By their order. */
  #writes: QueuedWrite[] = []
  #checks: PromiseWithResolvers<void>[] = []
  #running: Promise<void> | undefined
  #isClosing = false

  constructor(domain: Domain, options: Options) {
    this.#domain = domain
    this.#options = options
    this.#recorder = new BatchRecorder(options.batch)
  }

  get waiting(): number {
    return this.#writes.length
  }

  add(write: QueuedWrite) {
    const last = this.#writes.at(-1)
    this.#writes.push(write)
    if (last && last.order > write.order) this.#writes.sort((one, other) => one.order - other.order)
    this.#start()
  }

  /** Resolves when the zone was read and its open sends were resolved. */
  check(): Promise<void> {
    const check = Promise.withResolvers<void>()
    this.#checks.push(check)
    this.#start()
    return check.promise
  }

  /** Gives up what no client waits for: asynchronous changes stay queued in the ledger. */
  giveUp(error: unknown) {
    for (const check of this.#checks.splice(0)) check.reject(error)
    const given = this.#writes.filter(({ isAsync }) => isAsync)
    this.#writes = this.#writes.filter(({ isAsync }) => !isAsync)
    for (const write of given) write.reject(error)
  }

  /** Resolves when no batch runs any more. */
  get idle(): Promise<void> {
    return this.#running ?? Promise.resolve()
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
      else await this.#runBatch(isAwaited).catch((error: unknown) => this.#fail(error))
    }
    this.#running = undefined
    this.#options.onIdle()
  }

  async #runBatch(isAwaited: boolean) {
    const calls = await this.#reserve(isAwaited)
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
    const taken = await this.#take(await this.#gather())
    const writes = (await Promise.all(taken.map((write) => this.#recheck(write)))).flat()
    const checks = this.#checks.splice(0)
    await batch.run(writes)
    for (const check of checks) check.resolve()
    this.#options.onBatch(batch)
  }

  // Requests that arrived during the read join the batch, and so do those close behind them: registrar quota is scarcer
  // than latency.
  async #gather(): Promise<number> {
    const { pull, isShared } = this.#options
    let pulledTo = await pull()
    const latest = performance.now() + (isShared ? maxSharedDebounceMs : maxDebounceMs)
    const mayJoin = isShared || this.#writes.length > 1
    for (let seen = 0; mayJoin && this.#writes.length > seen && performance.now() < latest; ) {
      seen = this.#writes.length
      await sleep(isShared ? 50 : 20)
      await nextIteration() // After a busy moment, requests that lie ready at the sockets are read first.
      pulledTo = await pull()
    }
    return pulledTo
  }

  async #reserve(isAwaited: boolean): Promise<BatchCalls | undefined> {
    const { registrar, batch, checkLease } = this.#options
    const options = { registrar, clock: batch.clock, domain: this.#domain, checkLease }
    try {
      if (isAwaited) {
        const awaited = this.#writes.filter(({ isAsync }) => !isAsync)
        const callers = [...new Set(awaited.map(({ request }) => request.callerId ?? request.by))]
        return await BatchCalls.reserve(options, batchCalls, { callers })
      }
      const priority = this.#writes.length > 0 ? 'queued' : 'background'
      return await BatchCalls.reserve(options, batchCalls, {
        priority,
        maxWaitMs: maxBackgroundWaitMs,
      })
    } catch (error) {
      if (!isAwaited) {
        await delay(batch.clock, maxBackgroundWaitMs / 4)
        return undefined
      }
      const awaited = this.#writes.filter(({ isAsync }) => !isAsync)
      this.#writes = this.#writes.filter(({ isAsync }) => isAsync)
      for (const write of awaited) await this.#recorder.fail(write, error)
      return undefined
    }
  }

  async #take(upTo: number): Promise<QueuedWrite[]> {
    const later = this.#writes.findIndex(({ order }) => order > upTo)
    const writes = this.#writes.splice(0, later < 0 ? this.#writes.length : later)
    const ids = writes.flatMap(({ id }) => id ?? [])
    if (ids.length === 0) return writes
    try {
      const claimed = new Set(await this.#options.batch.ledger.claim(ids))
      const isLost = ({ id }: QueuedWrite) => id !== undefined && !claimed.has(id)
      for (const write of writes.filter(isLost)) {
        write.reject(changeNotQueued(write.id ?? 0, 'no longer queued'))
      }
      return writes.filter((write) => !isLost(write))
    } catch (error) {
      for (const write of writes) if (write.id !== undefined) write.reject(error)
      return writes.filter(({ id }) => id === undefined)
    }
  }

  // The rights of the author may have ended since an asynchronous change was accepted.
  async #recheck(write: QueuedWrite): Promise<QueuedWrite[]> {
    const { batch } = this.#options
    const { request, isAsync } = write
    if (!isAsync || request.callerId === undefined) return [write]
    try {
      const caller = await batch.findCaller(request.callerId)
      const mayWrite = caller && hasRole(caller, 'editor') && allowsDomain(caller, request.domain)
      const isApproved = !caller?.writes || request.approved !== undefined
      if (!mayWrite || !isApproved) throw rightsEnded()
      return [{ ...write, request: { ...request, recordLimits: caller.records } }]
    } catch (error) {
      await this.#recorder.fail(write, error)
      return []
    }
  }

  // A fault of ours must not end the process, nor leave anyone waiting.
  async #fail(error: unknown) {
    const { batch } = this.#options
    batch.log.error({ err: error, domain: this.#domain.name }, 'batch failed')
    for (const check of this.#checks.splice(0)) check.reject(error)
    for (const write of this.#writes.splice(0)) await this.#recorder.fail(write, error)
  }

  #rejectAll(error: Error) {
    for (const check of this.#checks.splice(0)) check.reject(error)
    for (const write of this.#writes.splice(0)) write.reject(error)
  }
}
