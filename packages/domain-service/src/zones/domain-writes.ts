import { setImmediate as nextIteration, setTimeout as sleep } from 'node:timers/promises'
import { databaseProblem } from '@domains-and-files/http'
import { OutcomeUnknownError } from '@domains-and-files/persistence'
import type { Domain } from '../dns/domain-name.ts'
import { ledgerUnavailable, serviceStopping } from '../errors.ts'
import type { ChangeRequest, QueuedChange } from '../ledger/ledger.ts'
import { Batch } from './batch/batch.ts'
import { failed, readResult } from './batch/batch-recorder.ts'
import type { WriteResult } from './batch/evaluate-write.ts'
import type { ZoneDependencies } from './zone-dependencies.ts'

type Options = ZoneDependencies & { onIdle: () => void }

/** A caller that waits until a batch has ended, or no change is ready. */
interface Task {
  end: PromiseWithResolvers<void>
  /** The zone is read, though no change may be ready. */
  mustRead: boolean
  /** A queued change that its caller waits for: tried now, also after a failure, and in the turn of a write. */
  awaited?: { id: number; caller: string }
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
  /** What clients wait for, by the id of their change. Several may wait for one, with the same idempotency key. */
  readonly #clients = new Map<number, PromiseWithResolvers<WriteResult> & { requestId: string }>()
  /** Changes in the running batch of this process, which reports how they end. */
  readonly #pulled = new Set<number>()
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
  }

  get waiting(): number {
    return this.#clients.size + this.#accepting
  }

  async write(request: ChangeRequest): Promise<WriteResult> {
    const { ledger, replicas } = this.#options
    this.#accepting++
    try {
      const { id, requestId } = await ledger.acceptAwaited(request)
      const end = this.#take(id, requestId) ?? Object.assign(Promise.withResolvers<WriteResult>(), { requestId })
      this.#clients.set(id, end)
      replicas?.awaited.add(id, (cause) => this.#rejectUnpulled(id, cause))
      return end.promise
    } finally {
      this.#accepting--
      this.wake()
    }
  }

  /** Carries out what is queued, or only reads the zone: resolves open sends, and repairs a late write. */
  carryOut(task: Omit<Task, 'end'>): Promise<void> {
    const end = Promise.withResolvers<void>()
    this.#tasks.push({ ...task, end })
    this.wake()
    return end.promise
  }

  wake() {
    this.#wakeUp.resolve()
    if (!this.#isRunning) void this.#run()
  }

  /** Resolves when the clients of this process have their answers. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#endTasks(this.#tasks, serviceStopping())
    this.wake()
    await this.#ended.promise
  }

  async #run() {
    const { leases, isListening = true } = this.#options.replicas ?? {}
    this.#isRunning = true
    while (this.#clients.size + this.#tasks.length > 0) {
      let hasWorked = false
      try {
        const lease = await leases?.tryAcquire(this.#domain.name)
        if (lease) hasWorked = await this.#runBatches().finally(() => leases?.release(lease))
        else if (!leases) hasWorked = await this.#runBatches()
        await this.#answerEnded()
      } catch (error) {
        this.#endOutage(error)
      }
      if (hasWorked || this.#clients.size + this.#tasks.length === 0) continue
      const timer = setTimeout(() => this.wake(), isListening ? listeningPollMs : pollMs)
      await this.#wakeUp.promise
      clearTimeout(timer)
      this.#wakeUp = Promise.withResolvers()
    }
    this.#isRunning = false
    if (this.#accepting > 0) return
    this.#options.onIdle()
    this.#ended.resolve()
  }

  /** Carries out the queued writes and the tasks. @returns whether there was anything to do, and it was done. */
  async #runBatches(): Promise<boolean> {
    const { ledger } = this.#options
    for (let hasWorked = false; ; hasWorked = true) {
      if (hasWorked && this.#clients.size + this.#tasks.length === 0) return true
      const waiting = [...this.#clients.keys()]
      const tasks = [...this.#tasks]
      const writes: QueuedChange[] = []
      // Only now: the batch before may have failed, which made the change pause.
      for (const { awaited } of tasks) if (awaited) await ledger.endPause(awaited.id)
      await this.#pull(writes)
      // A batch resolves open sends.
      const mustRead =
        tasks.some((task) => task.mustRead) ||
        (!hasWorked && writes.length === 0 && (await ledger.hasOpenSend(this.#domain.name)))
      if (this.#isStopped || !(mustRead || writes.length > 0)) {
        this.#endTasks(tasks)
        return hasWorked
      }
      if (!(await this.#runBatch(writes, tasks, waiting))) return false
    }
  }

  get #isStopped(): boolean {
    return this.#isClosing && this.#clients.size === 0
  }

  /** @returns false where it failed. */
  async #runBatch(writes: QueuedChange[], tasks: Task[], waiting: number[]): Promise<boolean> {
    const callers = tasks.flatMap(({ awaited }) => awaited?.caller ?? [])
    const batch = new Batch({ ...this.#options, domain: this.#domain, queue: this, callers })
    const ended = await batch.run(writes).catch((failure: unknown) => ({ failure }))
    const failure = ended?.failure
    // Those that came meanwhile have a batch of their own, also after a failed one.
    this.#endTasks(ended ? tasks : tasks.filter(({ awaited }) => awaited), failure)
    if (!failure) this.#answeredAt = performance.now()
    // What has not ended by now could not be recorded; after a failed batch that was empty this may be true of every
    // change that was `waiting` before it. The next batch carries out those that came later.
    const ids = failure && this.#pulled.size === 0 ? waiting : [...this.#pulled]
    this.#pulled.clear()
    await this.#answerEnded()
    if (failure || this.#options.replicas) this.#giveUp(failure, ids)
    return !failure
  }

  #endTasks(tasks: Task[], error?: unknown) {
    this.#tasks = this.#tasks.filter((task) => !tasks.includes(task))
    for (const { end } of tasks) error ? end.reject(error) : end.resolve()
  }

  /** Adds the writes that all processes have queued. @returns the id up to which none is missing. */
  async #pull(writes: QueuedChange[]): Promise<number> {
    if (this.#isStopped) return Infinity
    const isAccepting = this.#accepting > 0
    const { ledger, replicas } = this.#options
    const known = writes.map(({ id }) => id)
    const { ready, upTo } = await ledger.ready(this.#domain.name, known)
    this.#answeredAt = performance.now()
    for (const change of ready) {
      if (!replicas && !change.isAsync && !this.#clients.has(change.id)) {
        // No client waits: it got an error while the ledger could not be written.
        const end = failed(change, ledgerUnavailable(undefined))
        if (!isAccepting) await ledger.endChanges(this.#domain.name, [end]).catch(() => undefined)
      } else {
        this.#pulled.add(change.id)
        writes.push(change)
      }
    }
    writes.sort((one, other) => one.id - other.id)
    return upTo
  }

  // Requests that arrived during the read join the batch, and so do those close behind them: registrar quota is scarcer
  // than latency.
  async gather(writes: QueuedChange[]): Promise<number> {
    const isShared = this.#options.replicas !== undefined // Other processes queue writes, too.
    let pulledTo = await this.#pull(writes)
    const latest = performance.now() + (isShared ? maxSharedDebounceMs : maxDebounceMs)
    const mayJoin = isShared || writes.length + this.#accepting > 1
    for (let seen = 0; mayJoin && writes.length + this.#accepting > seen && performance.now() < latest; ) {
      seen = writes.length
      await sleep(isShared ? 50 : 20)
      await nextIteration() // Lets Node first read requests that are ready at the sockets.
      pulledTo = await this.#pull(writes)
    }
    return pulledTo
  }

  resolve({ id, request }: QueuedChange, result: WriteResult) {
    this.#take(id, request.requestId)?.resolve(result)
  }

  // Another replica may have taken over a change that failed here, so the ledger decides how it ends.
  reject({ id }: QueuedChange, error: unknown) {
    if (!this.#options.replicas) this.#take(id)?.reject(error)
  }

  /** Answers the clients whose changes have ended, in whichever process. @throws where the ledger cannot be read. */
  async #answerEnded() {
    const { ledger } = this.#options
    const ids = [...this.#clients.keys()].filter((id) => !this.#pulled.has(id))
    for (const id of ids.length > 0 ? await ledger.ended(ids) : []) {
      try {
        const result = await readResult(ledger, id, this.#clients.get(id)?.requestId ?? '')
        this.#take(id)?.resolve(result)
      } catch (error) {
        if (databaseProblem(error)) throw error
        this.#take(id)?.reject(error)
      }
    }
  }

  // Waits out a short outage: another replica may carry out the changes.
  #endOutage(error: unknown) {
    const { replicas, log } = this.#options
    const problem = databaseProblem(error)
    if (replicas && problem && performance.now() - this.#answeredAt < maxOutageMs) return
    log.error({ err: error, domain: this.#domain.name }, 'queued writes not followed')
    this.#giveUp(error)
    this.#endTasks(this.#tasks, problem ?? error)
  }

  /**
   * Answers these clients that the ledger is unavailable, except those whose change is in a batch of this process. One
   * that reads the zone after this answer sees the outcome: no replica begins the change later.
   */
  #giveUp(error: unknown, ids: Iterable<number> = this.#clients.keys()) {
    const { awaited } = this.#options.replicas ?? {}
    for (const id of ids) {
      const answer = () => this.#rejectUnpulled(id, error)
      if (awaited) awaited.expire(id).then(answer, answer)
      else answer()
    }
  }

  // A batch of this process reports the ends of its changes itself.
  #rejectUnpulled(id: number, cause: unknown) {
    if (this.#pulled.has(id)) return
    const unknown = this.#options.replicas && databaseProblem(new OutcomeUnknownError(cause))
    this.#take(id)?.reject(unknown ?? cause)
  }

  /** The client of a change; it gets an error where the id is that of another request. */
  #take(id: number, requestId?: string) {
    const end = this.#clients.get(id)
    this.#clients.delete(id)
    this.#options.replicas?.awaited.delete(id)
    if (!end || end.requestId === (requestId ?? end.requestId)) return end
    end.reject(databaseProblem(new OutcomeUnknownError(new Error(`change ${id} is lost`))))
    return undefined
  }
}
