import { setImmediate as nextIteration, setTimeout as sleep } from 'node:timers/promises'
import { allowsDomain, hasRole } from '@domains-and-files/auth'
import { delay, HttpError } from '@domains-and-files/http'
import type { Domain } from '../dns/domain-name.ts'
import { changeNotQueued, rightsEnded } from '../errors.ts'
import type { RegistrarClient } from '../registrar/client.ts'
import { BatchRecorder } from './batch/batch-recorder.ts'
import { BatchCalls } from './batch/current-zone.ts'
import { type BatchDependencies, WriteBatch } from './batch/write-batch.ts'
import { type BatchEnd, isDatabaseAway, type QueuedWrite } from './zone-write.ts'

interface Options {
  registrar: RegistrarClient
  batch: BatchDependencies
  onBatch: (end: BatchEnd) => void
  /**
   * Adds the writes that the ledger has queued. Returns the id up to which it has added all: later ones wait, so that they
   * overtake none.
   */
  pull: () => Promise<number>
  /** Whether other processes queue writes, too. */
  isShared: boolean
  /** Called right before a zone is sent. @throws {HttpError} where this process may not write the domain any more. */
  checkLease: () => void
}

/** The calls of a batch: read, write, read-back. */
const batchCalls = 3

/** How long a batch that nobody waits for holds back one that somebody waits for. */
const maxBackgroundWaitMs = 2_000

const maxDebounceMs = 250
// Writes of other processes take longer to arrive. Less than the age of a read that a write may be based on.
const maxSharedDebounceMs = 450

/** The writes that the next batch of a domain carries out. They take effect in the order in which they were accepted. */
export class DomainQueue {
  readonly #domain: Domain
  readonly #options: Options
  readonly #recorder: BatchRecorder
  /** By their ids. */
  #writes: QueuedWrite[] = []

  constructor(domain: Domain, options: Options) {
    this.#domain = domain
    this.#options = options
    this.#recorder = new BatchRecorder(options.batch)
  }

  get isEmpty(): boolean {
    return this.#writes.length === 0
  }

  add(write: QueuedWrite) {
    const last = this.#writes.at(-1)
    this.#writes.push(write)
    if (last && last.id > write.id) this.#writes.sort((one, other) => one.id - other.id)
  }

  /**
   * Carries out one batch; without writes it only reads the zone, resolves its open sends and repairs a late write.
   * @returns false where no calls were free: what somebody waits for was refused, the rest goes on waiting.
   * @throws where the zone could not be read, or the ledger not be written.
   */
  async run(): Promise<boolean> {
    try {
      return await this.#run()
    } catch (error) {
      // A fault of ours must not end the process, nor leave anyone waiting.
      if (!(error instanceof HttpError || isDatabaseAway(error)))
        this.#options.batch.log.error({ err: error, domain: this.#domain.name }, 'batch failed')
      for (const write of this.#writes.splice(0)) await this.#recorder.fail(write, error)
      throw error
    }
  }

  async #run(): Promise<boolean> {
    const calls = await this.#reserve()
    if (!calls) return false
    using _calls = calls
    const batch = new WriteBatch(this.#options.batch, calls, this.#domain.name)
    await batch.read()
    const taken = await this.#take(await this.#gather())
    const writes = (await Promise.all(taken.map((write) => this.#recheck(write)))).flat()
    await batch.run(writes)
    this.#options.onBatch(batch)
    return true
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

  async #reserve(): Promise<BatchCalls | undefined> {
    const { registrar, batch, checkLease } = this.#options
    const options = { registrar, clock: batch.clock, domain: this.#domain, checkLease }
    const awaited = this.#writes.filter(({ isAsync }) => !isAsync)
    const callers = [...new Set(awaited.map(({ request }) => request.callerId ?? request.by))]
    const priority = this.isEmpty ? ('background' as const) : ('queued' as const)
    const background = { priority, maxWaitMs: maxBackgroundWaitMs }
    try {
      const reserve = awaited.length > 0 ? { callers } : background
      return await BatchCalls.reserve(options, batchCalls, reserve)
    } catch (error) {
      if (awaited.length === 0) await delay(batch.clock, maxBackgroundWaitMs / 4)
      this.#writes = this.#writes.filter(({ isAsync }) => isAsync)
      for (const write of awaited) await this.#recorder.fail(write, error)
      return undefined
    }
  }

  async #take(upTo: number): Promise<QueuedWrite[]> {
    const later = this.#writes.findIndex(({ id }) => id > upTo)
    const writes = this.#writes.slice(0, later < 0 ? this.#writes.length : later)
    try {
      const claimed = new Set(await this.#options.batch.ledger.claim(writes.map(({ id }) => id)))
      this.#writes = this.#writes.slice(writes.length)
      for (const write of writes)
        if (!claimed.has(write.id)) write.reject(changeNotQueued(write.id, 'no longer queued'))
      return writes.filter(({ id }) => claimed.has(id))
    } catch (error) {
      for (const write of this.#writes.splice(0)) write.reject(error)
      throw error
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
}
