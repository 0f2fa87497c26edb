import { databaseProblem } from '@domains-and-files/http'
import { OutcomeUnknownError } from '@domains-and-files/persistence'
import type { Domain } from '../dns/domain-name.ts'
import { leaseLost, serviceStopping } from '../errors.ts'
import type { ChangeRequest, QueuedChange } from '../ledger/ledger.ts'
import type { AwaitedChanges } from '../ledger/replicas/awaited-changes.ts'
import type { Lease, Leases } from '../ledger/replicas/leases.ts'
import { DomainQueue } from './domain-queue.ts'
import { type DomainWrites, WriteQueue, type WriteQueueOptions } from './write-queue.ts'
import { isDatabaseAway, readEnd, type WriteResult } from './zone-write.ts'

export interface SharedQueueOptions extends WriteQueueOptions {
  leases: Leases
  awaited: AwaitedChanges
  /** Milliseconds after which a call to the registrar is given up. */
  timeoutMs: number
  /** Whether `wake` is called for what other replicas do. */
  isListening: boolean
}

type Options = SharedQueueOptions & { onIdle: () => void }

/** A client of this replica, or its queue of asynchronous changes, that waits for a change to end. */
interface Waiter {
  isAsync: boolean
  end: PromiseWithResolvers<WriteResult>
}

/** Changes that `ready` gives at once. */
const maxReady = 1_000
/** How often the ledger is asked what other replicas have done. */
const pollMs = 100
const listeningPollMs = 1_000
/** How long a domain's failing queries are repeated. */
const maxOutageMs = 10_000
/** A change that failed here so often, and has not ended, is left to others. */
const maxFailures = 3

const outcomeUnknown = (cause: unknown) => databaseProblem(new OutcomeUnknownError(cause)) ?? cause

/**
 * The queue of all replicas, in the database. Whichever replica holds a domain's lease carries out what all of them have
 * queued for it; each replica answers its own clients from the ledger.
 */
export const openSharedQueue = (options: SharedQueueOptions): WriteQueue =>
  new WriteQueue(
    options.batch.ledger,
    (domain, onIdle) => new SharedDomain(domain, { ...options, onIdle }),
  )

/** The changes of one domain that this replica waits for, and the batches that it carries out itself. */
export class SharedDomain implements DomainWrites {
  readonly #domain: Domain
  readonly #options: Options
  readonly #queue: DomainQueue
  readonly #waiters = new Map<number, Waiter[]>()
  /** Changes that the queue of this process has. */
  readonly #pulled = new Set<number>()
  /** How often a batch of this process has failed to carry out a change. */
  readonly #failures = new Map<number, number>()
  #checks: PromiseWithResolvers<void>[] = []
  /** Changes that are being queued in the database. */
  #accepting = 0
  #wakeUp = Promise.withResolvers<void>()
  #running: Promise<void> | undefined
  /** When the database last answered. */
  #answeredAt = performance.now()
  #isClosing = false

  constructor(domain: Domain, options: Options) {
    this.#domain = domain
    this.#options = options
    const { leases, timeoutMs, onBatch } = options
    this.#queue = new DomainQueue(domain, {
      ...options,
      onBatch: (end) => onBatch(domain, end),
      onIdle: () => undefined,
      pull: () => this.#pull(),
      isShared: true,
      // The call must have ended, or been given up, while nobody else can hold the lease.
      checkLease: () => {
        const left = (leases.current(domain.name)?.expiresAt ?? 0) - performance.now()
        if (left <= timeoutMs) throw leaseLost(domain.name)
      },
    })
  }

  get waiting(): number {
    return this.#waiters.size + this.#accepting
  }

  async write(request: ChangeRequest): Promise<WriteResult> {
    this.#accepting++
    try {
      const { id } = await this.#options.batch.ledger.accept(request, { isAsync: false })
      return this.#awaitEnd(id, false)
    } finally {
      this.#accepting--
    }
  }

  carryOut({ id }: QueuedChange): Promise<WriteResult> {
    return this.#awaitEnd(id, true)
  }

  // Whichever replica carries it out.
  #awaitEnd(id: number, isAsync: boolean): Promise<WriteResult> {
    const end = Promise.withResolvers<WriteResult>()
    this.#waiters.set(id, [...(this.#waiters.get(id) ?? []), { isAsync, end }])
    if (!isAsync) this.#options.awaited.add(id, (cause) => this.#expire(id, cause))
    this.#start()
    return end.promise
  }

  check(): Promise<void> {
    const check = Promise.withResolvers<void>()
    this.#checks.push(check)
    this.#start()
    return check.promise
  }

  wake() {
    this.#wakeUp.resolve()
  }

  /** Resolves when the clients of this replica have their answers. */
  async close(): Promise<void> {
    this.#isClosing = true
    for (const check of this.#checks.splice(0)) check.reject(serviceStopping())
    for (const [id, waiters] of this.#waiters)
      if (waiters.every(({ isAsync }) => isAsync)) this.#reject(id, serviceStopping())
    this.wake()
    await Promise.all([this.#queue.close(), this.#running])
  }

  #start() {
    this.wake()
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
      this.#options.onIdle()
    })
  }

  async #run() {
    while (this.#waiters.size > 0 || this.#checks.length > 0) {
      try {
        const hasWorked = await this.#tryHold()
        await this.#answerEnded()
        if (!hasWorked && (this.#waiters.size > 0 || this.#checks.length > 0)) await this.#pause()
      } catch (error) {
        this.#endOutage(error)
        await this.#pause()
      }
    }
  }

  /** @returns false where another replica writes the domain, or there is nothing to do. */
  async #tryHold(): Promise<boolean> {
    const { leases } = this.#options
    const lease = await leases.tryAcquire(this.#domain.name)
    this.#answeredAt = performance.now()
    if (!lease) return false
    try {
      const hasWorked = await this.#carryOut(lease)
      await leases.release(lease)
      return hasWorked
    } catch (error) {
      this.#queue.giveUp(error)
      // What is recorded of a batch needs the lease.
      await this.#queue.idle
      // Not awaited: a database that is away would delay the clients' answers.
      void leases.release(lease)
      throw error
    }
  }

  async #carryOut(lease: Lease): Promise<boolean> {
    const { batch } = this.#options
    const { name } = this.#domain
    await batch.ledger.takeOver(lease)
    const checks = this.#checks.splice(0)
    if (checks.length > 0)
      this.#queue.check().then(
        () => checks.forEach((check) => void check.resolve()),
        (error) => checks.forEach((check) => void check.reject(error)),
      )
    else if (await batch.ledger.hasOpenSend(name))
      this.#queue
        .check()
        .catch((error: unknown) => batch.log.warn({ err: error, domain: name }, 'zone not checked'))
    await this.#pull()
    const hasWork = checks.length > 0 || this.#pulled.size > 0
    for (let isIdle = false; !isIdle; ) {
      isIdle = await Promise.race([this.#queue.idle.then(() => true), this.#pause()])
      await this.#pull()
      await this.#answerEnded()
      if (this.#pulled.size > 0) isIdle = false
    }
    return hasWork
  }

  /** Hands over what all replicas have queued. */
  async #pull(): Promise<number> {
    if (this.#isClosing && this.#waiters.size === 0) return Infinity
    const ready = await this.#options.batch.ledger.ready(this.#domain.name)
    this.#answeredAt = performance.now()
    for (const change of ready) {
      const hasFailed = (this.#failures.get(change.id) ?? 0) >= maxFailures
      if (this.#pulled.has(change.id) || hasFailed) continue
      this.#pulled.add(change.id)
      this.#queue.add({ ...change, order: change.id, ...this.#settlementOf(change) })
    }
    return ready.length >= maxReady ? (ready.at(-1)?.id ?? Infinity) : Infinity
  }

  #settlementOf({ id, isAsync }: QueuedChange) {
    return {
      resolve: (result: WriteResult) => {
        this.#pulled.delete(id)
        for (const { end } of this.#take(id)) end.resolve(result)
        this.wake()
      },
      // Another replica may have taken over what failed here, so the ledger decides.
      reject: (error: unknown) => {
        this.#pulled.delete(id)
        if (isAsync) this.#reject(id, error)
        else this.#countFailure(id, error)
        this.wake()
      },
    }
  }

  // A change that cannot be ended in the ledger would be carried out again and again.
  #countFailure(id: number, error: unknown) {
    const failures = (this.#failures.get(id) ?? 0) + 1
    this.#failures.set(id, failures)
    const isLate = isDatabaseAway(error) && this.#options.awaited.isExpired(id)
    if (isLate) this.#reject(id, outcomeUnknown(error))
    else if (failures >= maxFailures) this.#giveUp(id, error)
  }

  // A client that reads the zone after this answer sees the outcome: no replica begins the change later.
  #giveUp(id: number, error: unknown) {
    const answer = () => this.#reject(id, outcomeUnknown(error))
    this.#options.awaited.expire(id).then(answer, answer)
  }

  async #answerEnded() {
    if (this.#waiters.size === 0) return
    const ids = [...this.#waiters.keys()].filter((id) => !this.#pulled.has(id))
    for (const id of await this.#options.batch.ledger.ended(ids)) {
      try {
        const result = await readEnd(this.#options.batch.ledger, id)
        for (const { end } of this.#take(id)) end.resolve(result)
      } catch (error) {
        if (databaseProblem(error)) throw error
        this.#reject(id, error)
      }
    }
  }

  // A batch of this process reports itself how its changes ended.
  #expire(id: number, cause: unknown) {
    if (!this.#pulled.has(id)) this.#reject(id, outcomeUnknown(cause))
  }

  // Another replica may carry out the changes.
  #endOutage(error: unknown) {
    const problem = databaseProblem(error)
    if (problem && performance.now() - this.#answeredAt < maxOutageMs) return
    this.#options.batch.log.error(
      { err: error, domain: this.#domain.name },
      'queued writes not followed',
    )
    for (const id of [...this.#waiters.keys()]) if (!this.#pulled.has(id)) this.#giveUp(id, error)
    for (const check of this.#checks.splice(0)) check.reject(problem ?? error)
  }

  #take(id: number): Waiter[] {
    const waiters = this.#waiters.get(id) ?? []
    this.#waiters.delete(id)
    this.#options.awaited.delete(id)
    return waiters
  }

  #reject(id: number, error: unknown) {
    for (const { end } of this.#take(id)) end.reject(error)
  }

  async #pause(): Promise<false> {
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#options.isListening ? listeningPollMs : pollMs)
    })
    await Promise.race([this.#wakeUp.promise, timeout])
    clearTimeout(timer)
    this.#wakeUp = Promise.withResolvers()
    return false
  }
}
