import { type Clock, databaseProblem, systemClock, type Timer } from '@domains-and-files/http'
import { DatabaseUnavailableError } from '@domains-and-files/persistence'
import { registrarUnavailable } from '../errors.ts'
import { type BudgetState, type CallBudget, holdMs } from './call-budget.ts'
import { type CallLimit, CallWindows, type Priority, SlotCounts } from './call-windows.ts'
import { type Reservation, WaitingCalls } from './waiting-calls.ts'

/** Where a call gets its slot: the reservation of its batch, or the queue of all calls. */
export type CallSlot = Priority | Reservation

export interface ReserveOptions {
  priority?: Priority
  /** Default: as long as calls of this priority wait. Infinity: waits without a deadline. */
  maxWaitMs?: number
  /** Authors of the write, for fair queueing. A caller that gets 503 keeps its place in the queue. */
  callers?: readonly string[]
}

interface Options {
  limits: CallLimit[]
  budget: CallBudget
  /** How long a call or a reservation waits for slots before 503 `registrar_busy`. */
  maxWaitMs?: number
  clock?: Clock
}

const maxWaits: Partial<Record<Priority, number>> = {
  // Refusing the next call of a batch under way does harm: it waits until a whole minute's window has become free.
  'follow-up': 61_000,
  ...{ queued: Infinity, background: Infinity, sweep: Infinity },
}

// Shared budget: waiting calls retry, since other processes free slots; `state` is at most `refreshMs` old.
const retryMs = 250
const refreshMs = 1_000

/**
 * The registrar's call quota: sliding windows that survive restarts. Slots go by priority, then by fair queueing among
 * callers. A call gets 503 `registrar_busy` with Retry-After as soon as no slot can come free within its wait. Each turn
 * counts the calls of other processes, then takes free slots: writes go first across processes.
 */
export class CallQuota {
  readonly #budget: CallBudget
  readonly #queue = new WaitingCalls()
  readonly #limits: CallLimit[]
  readonly #clock: Clock
  readonly #maxWaitMs: number
  /** Reservations that hold slots. */
  readonly #held = new Set<Reservation>()
  /** By the monotonic clock; afterwards other processes may have taken the held slots. */
  #heldUntil = Number.POSITIVE_INFINITY
  /** What was counted so far. */
  windows: CallWindows
  /** The last call that `windows` counts. */
  #lastId = 0
  /** No call is made before this time: the registrar reported too many, whatever we counted. */
  #blockedUntil = 0
  /** The budget's clock minus that of this process. */
  #clockOffset = 0
  /** How long the next turn stops all calls. */
  #pauseMs = 0
  #isRunning = false
  #isDue = false
  #refreshing: NodeJS.Timeout | undefined
  #retry: Timer | undefined
  /** Calls of the turn under way: they may be made once it is stored. */
  #calls: Priority[] = []
  /** Whether other processes know that this one holds slots or waits for some. */
  #isPublished = false

  private constructor({ limits, budget, maxWaitMs = 10_000, clock = systemClock }: Options) {
    this.#limits = limits
    this.#budget = budget
    this.#clock = clock
    this.windows = new CallWindows(limits)
    this.#maxWaitMs = maxWaitMs
    if (budget.isShared) this.#refreshing = setInterval(() => this.#serve(), refreshMs).unref()
  }

  /** Counts the calls of earlier processes. */
  static async open(options: Options): Promise<CallQuota> {
    const quota = new CallQuota(options)
    await quota.#refresh()
    return quota
  }

  /** Whether every counted call is stored; false while the storage fails. */
  get isStored(): boolean {
    return this.#budget.isStored
  }

  /** Stops all calls for this long: the registrar reported too many. */
  pause(milliseconds: number) {
    this.#pauseMs = Math.max(this.#pauseMs, milliseconds)
    void this.#serve()
  }

  /**
   * Resolves when one call may be made, which is counted then: of this priority, or with a held slot if there is one. A
   * further call of a batch goes before everything else.
   * @throws 503 `registrar_busy` where it finds no slot.
   */
  take(slot: CallSlot): Promise<void> {
    const isHeld = typeof slot === 'object' && this.#held.has(slot)
    const held = isHeld && performance.now() < this.#heldUntil ? slot : undefined
    const priority = typeof slot === 'string' ? slot : 'follow-up'
    // A held slot waits only while the registrar wants no calls at all.
    const slots = held ? 0 : 1
    return this.#enter({ priority, slots, callers: [], turn: 0, call: { held } }).client.promise
  }

  /**
   * Resolves when `calls` slots are free at once, and holds them until they are used or released. Where a window is
   * smaller than `calls`, the reservation gets the whole window.
   */
  async reserve(
    calls: number,
    { priority = 'write', maxWaitMs, callers = [] }: ReserveOptions = {},
  ): Promise<Reservation> {
    const kept = this.#places.find((place) => callers.some((each) => place.callers.includes(each)))
    if (kept && this.#held.has(kept)) return Object.assign(kept, { absentUntil: undefined })
    const slots = Math.min(calls, this.windows.most(priority))
    const reservation = this.#enter(kept ?? { priority, slots, callers, turn: 0 }, maxWaitMs)
    await reservation.client.promise
    return reservation
  }

  /** Of callers that got 503: one that retries after its Retry-After gets in, however long the queue is. */
  get #places(): Reservation[] {
    return [...this.#held, ...this.#queue.waiting].filter((each) => each.absentUntil !== undefined)
  }

  #enter(
    wanted: Omit<Reservation, 'deadline' | 'client'>,
    maxWaitMs = maxWaits[wanted.priority] ?? this.#maxWaitMs,
  ): Reservation {
    const isNew = wanted.absentUntil === undefined
    const client = Promise.withResolvers<void>()
    const deadline = this.now() + maxWaitMs
    const call = Object.assign(wanted, { client, deadline, absentUntil: undefined })
    if (isNew) this.#queue.add(call)
    void this.#serve()
    return call
  }

  /** Upper estimate of the time until the last of `calls` calls is made, each as a slot comes free. */
  waitMs(priority: Priority, calls: number): number {
    const now = this.now()
    return Math.max(0, this.#blockedUntil - now, this.windows.lastOf(priority, calls, now) - now)
  }

  /** Calls and reservations that wait for slots. */
  get waiting(): number {
    return this.#queue.waiting.length
  }

  /** Refuses everything that waits. */
  close() {
    clearInterval(this.#refreshing)
    this.#retry?.cancel()
    for (const place of this.#places) this.#held.delete(place)
    this.#queue.clear(registrarUnavailable(5))
    void this.#serve()
  }

  /** Takes the unused slots back. Releasing twice does nothing; later calls are follow-ups. */
  release(reservation: Reservation) {
    reservation.slots = 0
    if (this.#held.delete(reservation)) void this.#serve()
  }

  /** The budget's clock, by which slots come free. */
  now(): number {
    return Math.round(this.#clockOffset + this.#clock.now())
  }

  /** Takes the slots of a call, in the turn in which they were found free: holds them, or counts one as a call. */
  #grant(granted: Reservation) {
    const { call } = granted
    if (!call) {
      this.windows.held.add(granted)
      this.#held.add(granted)
      return
    }
    const { held } = call
    const { priority } = held ?? granted
    if (held) {
      this.windows.held.add({ priority, slots: -1 })
      held.slots -= 1
      if (held.slots === 0) this.#held.delete(held)
    }
    this.windows.count(priority, this.now())
    this.#calls.push(priority)
  }

  async #serve() {
    this.#isDue = true
    if (this.#isRunning) return
    this.#isRunning = true
    await Promise.resolve() // Calls of one event-loop turn share a transaction.
    while (this.#isDue) {
      this.#isDue = false
      this.#retry?.cancel()
      const size = this.#queue.waiting.length + this.#held.size
      if (size + this.#pauseMs > 0 || this.#isPublished) await this.#takeTurn()
      else await this.#refresh().catch(() => undefined) // The probe reports it.
    }
    this.#isRunning = false
  }

  async #takeTurn() {
    const pauseMs = this.#pauseMs
    this.#pauseMs = 0
    this.#calls = []
    let granted: Reservation[] = []
    let wakeAt = Infinity
    const heldUntil = performance.now() + holdMs
    try {
      this.#lastId = await this.#budget.turn(this.#lastId, pauseMs, (state) => {
        this.#adopt(state)
        const served = this.#queue.serve(state, this.windows, (call) => this.#grant(call))
        ;({ wakeAt, granted } = served)
        this.#isPublished = this.#held.size + this.#queue.waiting.length > 0
        return { calls: this.#calls, held: this.#held, waiting: this.#queue.waiting }
      })
      if (this.#budget.isShared) this.#heldUntil = heldUntil
      for (const { client } of granted) client.resolve()
    } catch (error) {
      // No call was made, even if the database has stored the turn.
      const cause = new DatabaseUnavailableError(error)
      const failure = databaseProblem(cause) ?? cause
      // The windows may count calls that were not stored: the next turn reads all of them again.
      this.windows = new CallWindows(this.#limits)
      this.#lastId = 0
      this.#isPublished = true
      for (const call of granted) {
        this.#held.delete(call)
        call.client.reject(failure)
      }
      this.#queue.clear(failure)
    }
    this.#retryAt(wakeAt)
  }

  #retryAt(wakeAt: number) {
    const absent = Array.from(this.#held, ({ absentUntil = Infinity }) => absentUntil)
    const retryIn = this.#budget.isShared && this.#queue.waiting.length > 0 ? retryMs : Infinity
    const waitMs = Math.min(Math.min(wakeAt, ...absent) - this.now(), retryIn)
    if (waitMs < Infinity)
      this.#retry = this.#clock.setTimer(() => this.#serve(), Math.max(1, waitMs))
  }

  async #refresh() {
    const state = await this.#budget.read(this.#lastId)
    this.#adopt(state)
    this.#lastId = state.calls.at(-1)?.id ?? this.#lastId
  }

  #adopt({ now, blockedUntil, calls, holds }: BudgetState) {
    this.#clockOffset = now - this.#clock.now()
    this.#blockedUntil = blockedUntil
    for (const { priority, at } of calls) this.windows.count(priority, at)
    for (const each of this.#held) if ((each.absentUntil ?? Infinity) <= now) this.release(each)
    this.windows.held = SlotCounts.sum([...holds, ...this.#held])
  }
}
