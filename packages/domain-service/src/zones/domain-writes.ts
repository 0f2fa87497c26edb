import { databaseProblem } from '@domains-and-files/http'
import type { Domain } from '../dns/domain-name.ts'
import { leaseLost, ledgerUnavailable, serviceStopping } from '../errors.ts'
import type { ChangeRequest, QueuedChange } from '../ledger/ledger.ts'
import type { AwaitedChanges } from '../ledger/replicas/awaited-changes.ts'
import type { Leases } from '../ledger/replicas/leases.ts'
import type { RegistrarClient } from '../registrar/client.ts'
import { failedOutcome } from './batch/batch-recorder.ts'
import type { WriteResult } from './batch/evaluate-write.ts'
import { runBatch } from './batch/run-batch.ts'
import type { BatchDependencies } from './batch/write-batch.ts'
import { WaitingClients } from './waiting-clients.ts'

export interface DomainWritesOptions {
  registrar: RegistrarClient
  batch: BatchDependencies
  /** Where several processes write zones. */
  replicas?: {
    leases: Leases
    awaited: AwaitedChanges
    /** Milliseconds after which a call to the registrar is given up. */
    timeoutMs: number
    /** Whether `wake` is called when other replicas change the queue. */
    isListening: boolean
  }
}

type Options = DomainWritesOptions & { onIdle: () => void }

/** Poll interval of the ledger, for changes of other replicas; longer while notifications of them arrive. */
const pollMs = 100
const listeningPollMs = 1_000
/** How long replicas retry a domain's failing queries before its clients get the error. */
const maxOutageMs = 10_000

/**
 * The writes of one domain; their queue is in the ledger. The replica that holds the domain's lease carries out the
 * writes of all replicas. Each replica answers its own clients, from the ledger if another one carried the change out.
 */
export class DomainWrites {
  readonly #domain: Domain
  readonly #options: Options
  readonly #clients: WaitingClients
  #checks: PromiseWithResolvers<void>[] = []
  /** Callers that wait until no change is ready. */
  #drains: PromiseWithResolvers<void>[] = []
  /** Changes that are being queued in the database. */
  #accepting = 0
  /** Characters of JSON of the writes that wait. */
  length = 0
  #wakeUp = Promise.withResolvers<void>()
  #isRunning = false
  /** When the database last answered. */
  #answeredAt = performance.now()
  #isClosing = false
  readonly #ended = Promise.withResolvers<void>()

  constructor(domain: Domain, options: Options) {
    this.#domain = domain
    this.#options = options
    this.#clients = new WaitingClients(options.batch.ledger, options.replicas?.awaited)
  }

  get waiting(): number {
    return this.#clients.ends.size + this.#accepting
  }

  async write(request: ChangeRequest): Promise<WriteResult> {
    this.#accepting++
    try {
      const id = await this.#options.batch.ledger.acceptAwaited(request)
      const end = this.#clients.wait(id)
      this.#start()
      return end
    } finally {
      this.#accepting--
      this.#endIfIdle()
    }
  }

  carryOut(): Promise<void> {
    return this.#ask(this.#drains)
  }

  check(): Promise<void> {
    return this.#ask(this.#checks)
  }

  #ask(asked: PromiseWithResolvers<void>[]): Promise<void> {
    const end = Promise.withResolvers<void>()
    asked.push(end)
    this.#start()
    return end.promise
  }

  wake() {
    this.#wakeUp.resolve()
  }

  /** Resolves when the clients of this process have their answers. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#rejectTasks(serviceStopping())
    this.wake()
    this.#endIfIdle()
    await this.#ended.promise
  }

  #start() {
    this.wake()
    if (!this.#isRunning) void this.#run()
  }

  async #run() {
    const { leases } = this.#options.replicas ?? {}
    this.#isRunning = true
    while (this.#isNeeded) {
      let hasWorked = false
      try {
        const lease = await leases?.tryAcquire(this.#domain.name)
        if (lease) hasWorked = await this.#hold().finally(() => leases?.release(lease))
        else if (!leases) hasWorked = await this.#hold()
        await this.#clients.answerEnded()
      } catch (error) {
        this.#endOutage(error)
      }
      if (!hasWorked && this.#isNeeded) await this.#pause()
    }
    this.#isRunning = false
    this.#endIfIdle()
  }

  get #isNeeded(): boolean {
    return this.#clients.ends.size + this.#checks.length + this.#drains.length > 0
  }

  get #isStopped(): boolean {
    return this.#isClosing && this.#clients.ends.size === 0
  }

  #endIfIdle() {
    if (this.#isRunning || this.#accepting > 0) return
    this.#options.onIdle()
    this.#ended.resolve()
  }

  /** Carries out the queued writes and checks. @returns whether there were any. */
  async #hold(): Promise<boolean> {
    const { ledger } = this.#options.batch
    const { name } = this.#domain
    let hasWorked = this.#checks.length > 0
    for (let batches = 0; ; batches++) {
      const waiting = [...this.#clients.ends.keys()]
      const drains = [...this.#drains]
      const writes: QueuedChange[] = []
      await this.pull(writes)
      hasWorked ||= writes.length > 0
      // A batch resolves open sends, so a check starts one.
      if (batches + writes.length === 0 && (await ledger.hasOpenSend(name))) this.#checkOpenSend()
      if (this.#isStopped) this.#rejectTasks(serviceStopping())
      const hasWork = writes.length + this.#checks.length > 0
      if (this.#isStopped || !hasWork) {
        this.#drains = this.#drains.filter((drain) => !drains.includes(drain))
        for (const drain of drains) drain.resolve()
        // No other process carries out these changes, so they have ended.
        if (!this.#options.replicas) await this.#clients.answer(waiting)
        return hasWorked
      }
      if (!(await this.#runBatch(writes))) return false
    }
  }

  #checkOpenSend() {
    const { log } = this.#options.batch
    const facts = { domain: this.#domain.name }
    this.check().catch((error) => log.warn({ err: error, ...facts }, 'zone not checked'))
  }

  /** @returns false where it failed. */
  async #runBatch(writes: QueuedChange[]): Promise<boolean> {
    const { registrar, batch, replicas } = this.#options
    const checks = this.#checks.splice(0)
    let failure: unknown
    try {
      const ended = await runBatch(this.#domain, writes, {
        ...{ registrar, batch, isShared: replicas !== undefined },
        ...{ queue: this, clients: this.#clients },
      })
      failure = ended?.failure
      if (ended && !failure) for (const check of checks.splice(0)) check.resolve()
    } catch (error) {
      failure = error
    }
    this.#checks.push(...checks)
    if (failure) this.#rejectTasks(failure)
    else this.#answeredAt = performance.now()
    await this.#clients.endBatch(failure)
    return !failure
  }

  /** Adds the writes that all processes have queued. @returns the id up to which none is missing. */
  async pull(writes: QueuedChange[]): Promise<number> {
    if (this.#isStopped) return Infinity
    const isAccepting = this.#accepting > 0
    const { ledger } = this.#options.batch
    const known = writes.map(({ id }) => id)
    const { ready, upTo } = await ledger.ready(this.#domain.name, known)
    this.#answeredAt = performance.now()
    for (const change of ready) {
      if (!this.#options.replicas && !change.isAsync && !this.#clients.ends.has(change.id)) {
        // No client waits: it got an error while the ledger could not be written.
        const end = failedOutcome(change, ledgerUnavailable(undefined))
        if (!isAccepting) await ledger.endChanges(this.#domain.name, [end]).catch(() => undefined)
      } else {
        this.#clients.pulled.add(change.id)
        writes.push(change)
      }
    }
    writes.sort((one, other) => one.id - other.id)
    return upTo
  }

  // Waits out a short outage: another replica may carry out the changes.
  #endOutage(error: unknown) {
    const { replicas, batch } = this.#options
    const problem = databaseProblem(error)
    if (replicas && problem && performance.now() - this.#answeredAt < maxOutageMs) return
    batch.log.error({ err: error, domain: this.#domain.name }, 'queued writes not followed')
    this.#clients.giveUp(error)
    this.#rejectTasks(problem ?? error)
  }

  #rejectTasks(error: unknown) {
    for (const each of [...this.#checks.splice(0), ...this.#drains.splice(0)]) each.reject(error)
  }

  /**
   * Requires a lease that outlasts a call: the call must end, or time out, before another replica can acquire the lease.
   * @throws {HttpError} where this process may not send the zone any more.
   */
  checkLease() {
    const { replicas } = this.#options
    if (!replicas) return
    const { name } = this.#domain
    const left = (replicas.leases.current(name)?.expiresAt ?? 0) - performance.now()
    if (left <= replicas.timeoutMs) throw leaseLost(name)
  }

  async #pause() {
    const { replicas } = this.#options
    const timer = setTimeout(
      () => this.wake(),
      !replicas || replicas.isListening ? listeningPollMs : pollMs,
    )
    await this.#wakeUp.promise
    clearTimeout(timer)
    this.#wakeUp = Promise.withResolvers()
  }
}
