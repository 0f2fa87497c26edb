import { setImmediate as nextIteration, setTimeout as sleep } from 'node:timers/promises'
import { databaseProblem } from '@domains-and-files/http'
import type { Domain } from '../dns/domain-name.ts'
import { leaseLost, ledgerUnavailable, serviceStopping } from '../errors.ts'
import type { ChangeRequest, QueuedChange } from '../ledger/ledger.ts'
import type { AwaitedChanges } from '../ledger/replicas/awaited-changes.ts'
import type { Leases } from '../ledger/replicas/leases.ts'
import { Batch } from './batch/batch.ts'
import { type BatchDependencies, failed } from './batch/batch-recorder.ts'
import type { WriteResult } from './batch/evaluate-write.ts'
import { WaitingClients } from './waiting-clients.ts'

export interface DomainWritesOptions {
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

/** A caller that waits until a batch has ended, or no change is ready. */
interface Task {
  end: PromiseWithResolvers<void>
  /** The zone is read, though no change may be ready. */
  mustRead: boolean
}

const maxDebounceMs = 250
// Writes of other processes take longer to arrive. Less than the age of a read that a write may be based on.
const maxSharedDebounceMs = 450
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
  #tasks: Task[] = []
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
      const end = this.#clients.wait(await this.#options.batch.ledger.acceptAwaited(request))
      return end
    } finally {
      this.#accepting--
      this.wake()
    }
  }

  /** Carries out what is queued, or only reads the zone: resolves open sends, and repairs a late write. */
  carryOut({ mustRead }: Pick<Task, 'mustRead'>): Promise<void> {
    const end = Promise.withResolvers<void>()
    this.#tasks.push({ end, mustRead })
    this.wake()
    return end.promise
  }

  /** Looks for something to do. */
  wake() {
    this.#wakeUp.resolve()
    if (!this.#isRunning) void this.#run()
  }

  /** Resolves when the clients of this process have their answers. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#rejectTasks(serviceStopping())
    this.wake()
    await this.#ended.promise
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
    if (this.#accepting > 0) return
    this.#options.onIdle()
    this.#ended.resolve()
  }

  get #isNeeded(): boolean {
    return this.#clients.ends.size + this.#tasks.length > 0
  }

  get #isStopped(): boolean {
    return this.#isClosing && this.#clients.ends.size === 0
  }

  /** Carries out the queued writes and the tasks. @returns whether there was anything to do, and it was done. */
  async #hold(): Promise<boolean> {
    const { ledger } = this.#options.batch
    for (let hasWorked = false; ; hasWorked = true) {
      const waiting = [...this.#clients.ends.keys()]
      const tasks = [...this.#tasks]
      const writes: QueuedChange[] = []
      await this.pull(writes)
      // A batch resolves open sends.
      const mustRead =
        tasks.some((task) => task.mustRead) ||
        (!hasWorked && writes.length === 0 && (await ledger.hasOpenSend(this.#domain.name)))
      if (this.#isStopped) this.#rejectTasks(serviceStopping())
      if (this.#isStopped || !(mustRead || writes.length > 0)) {
        this.#endTasks(tasks)
        return hasWorked
      }
      if (!(await this.#runBatch(writes, { tasks, waiting }))) return false
    }
  }

  /** @returns false where it failed. */
  async #runBatch(
    writes: QueuedChange[],
    { tasks, waiting }: { tasks: Task[]; waiting: number[] },
  ): Promise<boolean> {
    let failure: unknown
    try {
      const options = { ...this.#options.batch, domain: this.#domain, clients: this.#clients }
      const ended = await new Batch({ ...options, queue: this }).run(writes)
      failure = ended?.failure
      if (ended && !failure) this.#endTasks(tasks)
    } catch (error) {
      failure = error
    }
    if (failure) this.#rejectTasks(failure)
    else this.#answeredAt = performance.now()
    await this.#clients.endBatch(failure, waiting)
    return !failure
  }

  #endTasks(tasks: Task[]) {
    this.#tasks = this.#tasks.filter((task) => !tasks.includes(task))
    for (const { end } of tasks) end.resolve()
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
        const end = failed(change, ledgerUnavailable(undefined))
        if (!isAccepting) await ledger.endChanges(this.#domain.name, [end]).catch(() => undefined)
      } else {
        this.#clients.pulled.add(change.id)
        writes.push(change)
      }
    }
    writes.sort((one, other) => one.id - other.id)
    return upTo
  }

  // Requests that arrived during the read join the batch, and so do those close behind them: registrar quota is scarcer
  // than latency.
  async gather(writes: QueuedChange[]): Promise<number> {
    const { isShared } = this.#options.batch.ledger // Other processes queue writes, too.
    let pulledTo = await this.pull(writes)
    const latest = performance.now() + (isShared ? maxSharedDebounceMs : maxDebounceMs)
    const mayJoin = isShared || writes.length > 1
    for (let seen = 0; mayJoin && writes.length > seen && performance.now() < latest; ) {
      seen = writes.length
      await sleep(isShared ? 50 : 20)
      await nextIteration() // Lets Node first read requests that are ready at the sockets.
      pulledTo = await this.pull(writes)
    }
    return pulledTo
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
    for (const { end } of this.#tasks.splice(0)) end.reject(error)
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
