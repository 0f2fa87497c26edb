import { type Clock, databaseProblem, systemClock, type Timer } from '@domains-and-files/http'
import { DatabaseUnavailableError } from '@domains-and-files/persistence'
import { registrarUnavailable } from '../errors.ts'
import type { BudgetState, CallBudget } from './call-budget.ts'
import { CallQueue, type Reservation, type Wanted } from './call-queue.ts'
import { type CallLimit, CallWindows, type Priority } from './call-windows.ts'

/** Where a call gets its slot: the reservation of its batch, the queue of all calls, or a reservation of its own. */
export type CallSlot = Priority | Reservation | ReserveOptions

export interface ReserveOptions {
  priority?: Priority
  /** Default: as long as calls of this priority wait. Infinity: waits without a deadline. */
  maxWaitMs?: number
  callers?: readonly string[]
  domain?: string
}

/** How long calls wait for slots; by default ten seconds. */
const maxWaits: Partial<Record<Priority, number>> = {
  // Refusing the next call of a batch under way does harm: it waits until a whole minute's window has become free.
  'follow-up': 61_000,
  queued: Infinity,
  background: Infinity,
  sweep: Infinity,
}

interface Options {
  limits: CallLimit[]
  budget: CallBudget
  /** How long a call or a reservation waits for slots before 503 `registrar_busy`. */
  maxWaitMs?: number
  clock?: Clock
}

// Shared budget: waiting calls retry, since other processes free slots; `state` is at most `refreshMs` old.
const retryMs = 250
const refreshMs = 1_000

/**
 * The registrar's call quota: sliding windows that survive restarts. A call gets 503 `registrar_busy` with Retry-After as
 * soon as no slot can come free within its wait. Each turn counts the calls of other processes, then takes free slots:
 * writes go first across processes.
 */
export class CallQuota {
  readonly #options: Options
  readonly #clock: Clock
  readonly windows: CallWindows
  readonly #queue: CallQueue
  /** No call is made before this time: the registrar reported too many, whatever we counted. */
  #blockedUntil = 0
  /** The budget's clock minus that of this process. */
  #clockOffset = 0
  /** How long the next turn stops all calls. */
  #pauseMs = 0
  /** Resolves after the last turn that is due. */
  #turns: Promise<unknown> = Promise.resolve()
  #isTurnDue = false
  #refreshing: NodeJS.Timeout | undefined
  #retry: Timer | undefined
  /** Whether other processes know that this one holds slots or waits for some. */
  #isPublished = false

  private constructor(options: Options) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.windows = new CallWindows(options.limits)
    this.#queue = new CallQueue(this.windows)
    if (options.budget.isShared) this.#refreshing = setInterval(() => this.#serve(), refreshMs).unref()
  }

  /** Counts the calls of earlier processes. */
  static async open(options: Options): Promise<CallQuota> {
    const quota = new CallQuota(options)
    quota.#adopt(await options.budget.read())
    return quota
  }

  /** Stops all calls for this long: the registrar reported too many. */
  pause(milliseconds: number) {
    this.#pauseMs = Math.max(this.#pauseMs, milliseconds)
    this.#serve()
  }

  /**
   * Resolves when one call may be made, which is counted then: of this priority, or with a held slot if there is one. A
   * further call of a batch goes before everything else.
   */
  async take(slot: CallSlot): Promise<void> {
    if (typeof slot === 'object' && !('client' in slot)) {
      const own = await this.reserve(1, slot)
      return this.take(own).finally(() => this.release(own))
    }
    const held = typeof slot === 'object' && this.#queue.held.has(slot) ? slot : undefined
    const priority = typeof slot === 'string' ? slot : 'follow-up'
    // A held slot waits only while the registrar wants no calls at all.
    const call = { priority: held?.priority ?? priority, held }
    await this.#wait({ priority, slots: held ? 0 : 1, callers: [], call })
  }

  /**
   * Resolves when `calls` slots are free at once, and holds them until they are used or released. Where a window is
   * smaller than `calls`, the reservation gets the whole window. A caller that got 503 keeps its place in the queue, or its
   * slots: if it retries after its Retry-After it gets in, however long the queue is.
   */
  async reserve(
    calls: number,
    { priority = 'write', maxWaitMs, callers = [], domain }: ReserveOptions = {},
  ): Promise<Reservation> {
    const slots = Math.min(calls, this.windows.most(priority))
    return this.#wait({ priority, slots, callers, domain }, maxWaitMs)
  }

  async #wait(wanted: Wanted, maxWaitMs = maxWaits[wanted.priority] ?? this.#options.maxWaitMs ?? 10_000) {
    const now = this.now()
    const reservation = this.#queue.enter(wanted, { now, deadline: now + maxWaitMs })
    this.#serve()
    await reservation.client.promise
    return reservation
  }

  /** Upper estimate of the time until the last of `calls` calls is made, each as a slot comes free. */
  waitMs(priority: Priority, calls: number): number {
    const now = this.now()
    const last = this.windows.earliest({ priority, slots: calls }, now, { groupSize: 1 })
    return Math.max(0, this.#blockedUntil - now, last - now)
  }

  get waiting(): number {
    return this.#queue.waiting.length
  }

  /** Refuses what waits, and leaves the places of absent callers to other processes. */
  close() {
    clearInterval(this.#refreshing)
    this.#retry?.cancel()
    const { held, waiting } = this.#queue
    this.#queue.left = [...held, ...waiting].filter(({ absentUntil }) => absentUntil !== undefined)
    for (const each of this.#queue.left) held.delete(each)
    for (const { client } of waiting.splice(0)) client.reject(registrarUnavailable(5))
    this.#serve()
  }

  /** Takes the unused slots back. Releasing twice does nothing; later calls are follow-ups. */
  release(reservation: Reservation) {
    reservation.slots = 0
    if (this.#queue.held.delete(reservation)) this.#serve()
  }

  /** The budget's clock, by which slots come free. */
  now(): number {
    return Math.round(this.#clockOffset + this.#clock.now())
  }

  // One turn at a time; a turn that is due serves all calls that come before it begins, in one transaction.
  #serve() {
    if (this.#isTurnDue) return
    this.#isTurnDue = true
    this.#turns = this.#turns.then(() => {
      this.#isTurnDue = false
      this.#retry?.cancel()
      const { budget } = this.#options
      const { held, waiting } = this.#queue
      if (held.size + waiting.length + this.#pauseMs > 0 || this.#isPublished) return this.#takeTurn()
      // The probe reports a database that is away.
      if (budget.isShared) return budget.read().then(this.#adopt, () => this.windows.clear())
    })
  }

  async #takeTurn() {
    const pauseMs = this.#pauseMs
    this.#pauseMs = 0
    let granted: Reservation[] = []
    let wakeAt = Infinity
    try {
      await this.#options.budget.turn(pauseMs, (state) => {
        this.#adopt(state)
        ;({ granted, wakeAt } = this.#queue.grantSlots(state))
        const { held, waiting, left, claims } = this.#queue
        this.#isPublished = held.size + waiting.length > 0
        const calls = granted.flatMap(({ call }) => call?.priority ?? [])
        return { calls, held, waiting: [...waiting, ...left], claims }
      })
      for (const { client } of granted) client.resolve()
    } catch (error) {
      const cause = new DatabaseUnavailableError(error)
      // No call was made, although the windows count some: the next turn reads all.
      this.windows.clear()
      this.#isPublished = true
      const { held, waiting } = this.#queue
      for (const call of granted) held.delete(call)
      for (const { client } of [...granted, ...waiting.splice(0)]) client.reject(databaseProblem(cause) ?? cause)
    }
    const retryIn = this.#options.budget.isShared && this.#queue.waiting.length > 0 ? retryMs : Infinity
    const waitMs = Math.min(wakeAt - this.now(), retryIn)
    if (waitMs < Infinity) this.#retry = this.#clock.setTimer(() => this.#serve(), Math.max(1, waitMs))
  }

  readonly #adopt = (state: BudgetState) => {
    this.#clockOffset = state.now - this.#clock.now()
    this.#blockedUntil = state.blockedUntil
    this.#queue.adopt(state)
  }
}
