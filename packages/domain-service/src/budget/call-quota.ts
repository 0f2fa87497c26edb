import { type Clock, databaseProblem, systemClock, type Timer } from '@domains-and-files/http'
import { DatabaseUnavailableError } from '@domains-and-files/persistence'
import { registrarUnavailable } from '../errors.ts'
import {
  type BudgetChanges,
  type BudgetState,
  type CallBudget,
  type Hold,
  holdMs,
} from './call-budget.ts'
import {
  type CallLimit,
  CallWindows,
  type HourOfCalls,
  type Priority,
  type WindowState,
} from './call-windows.ts'
import { Reservation, type Slots, type WaitingCall, WaitingCalls } from './waiting-calls.ts'

interface ReserveOptions {
  priority?: Priority
  /** Infinity: waits without a deadline. */
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

// Refusing the next call of a batch under way does harm, so it waits until a whole minute's window has become free.
const followUpWaitMs = 61_000

// Shared budget: waiting calls retry, since other processes free slots; `state` is at most `refreshMs` old.
const retryMs = 250
const refreshMs = 1_000

/** Maximum kept places of callers that got 503; beyond it the oldest place is given up. */
const maxPlaces = 500

const noChanges = (): BudgetChanges => ({ calls: [], holds: [], used: [], waiting: new Map() })

/**
 * The registrar's call quota: sliding windows that survive restarts. Slots go by priority, then by fair queueing among
 * callers. A call gets 503 `registrar_busy` with Retry-After as soon as no slot can come free within its wait. Each turn
 * counts the calls of other processes, then takes free slots: writes go first across processes.
 */
export class CallQuota implements Slots {
  readonly #budget: CallBudget
  readonly #queue = new WaitingCalls()
  readonly #limits: CallLimit[]
  readonly clock: Clock
  readonly #maxWaitMs: number
  /** Places of callers that got 503: a caller that retries after its Retry-After gets in, however long the queue is. */
  readonly #places: Reservation[] = []
  #windows: CallWindows
  /** The last call that `windows` counts. */
  #lastId = 0
  /** No call is made before this time: the registrar reported too many, whatever we counted. */
  #blockedUntil = 0
  /** The budget's clock minus that of this process. */
  #clockOffset = 0
  /** What the next turn passes to the budget. */
  #given = { released: [] as string[], pauseMs: 0 }
  #isRunning = false
  #isDue = false
  #refreshing: NodeJS.Timeout | undefined
  #retry: Timer | undefined
  /** What the turn under way takes: it becomes effective as a whole or not at all. */
  #taken = noChanges()

  private constructor({ limits, budget, maxWaitMs = 10_000, clock = systemClock }: Options) {
    this.#limits = limits
    this.#budget = budget
    this.clock = clock
    this.#windows = new CallWindows(limits)
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
    this.#given.pauseMs = Math.max(this.#given.pauseMs, milliseconds)
    this.#serve()
  }

  /** Resolves when one call may be made, which is counted then: of this priority, or with a held slot if there is one. */
  take(slot: Priority | Hold): Promise<void> {
    const { promise, resolve, reject: refuse } = Promise.withResolvers<void>()
    const priority = typeof slot === 'string' ? slot : 'follow-up'
    const isHeld = typeof slot === 'object' && slot.slots > 0 && performance.now() < slot.expiresAt
    this.#queue.add({
      priority,
      // A held slot waits only while the registrar wants no calls at all.
      slots: isHeld ? 0 : 1,
      deadline: this.now() + this.#waitOf(priority),
      take: () => (isHeld ? this.#useHeld(slot) : this.#count(priority)),
      resolve,
      refuse,
    })
    this.#serve()
    return promise
  }

  /**
   * Resolves when `calls` slots are free at once, and holds them until they are used or released. Where a window is
   * smaller than `calls`, the reservation gets the whole window.
   */
  async reserve(
    calls: number,
    { priority = 'write', maxWaitMs = this.#waitOf(priority), callers = [] }: ReserveOptions = {},
  ): Promise<Reservation> {
    const at = this.#places.findIndex((place) => place.isKeptFor(callers))
    const [known] = at < 0 ? [] : this.#places.splice(at, 1)
    const slots = Math.min(calls, this.#windows.most(priority))
    const reservation = known ?? new Reservation({ priority, slots, callers }, this)
    const entered = reservation.enter(this.now() + maxWaitMs)
    if (!known) this.#queue.add(reservation)
    this.#serve()
    try {
      await entered
    } catch (error) {
      if (reservation.absentUntil !== undefined) this.#places.push(reservation)
      if (this.#places.length > maxPlaces) this.#places.shift()?.giveUp()
      throw error
    }
    return reservation
  }

  /** Upper estimate of the time until the last of `calls` calls is made, each as a slot comes free. */
  waitMs(priority: Priority, calls: number): number {
    const now = this.now()
    return Math.max(0, this.#blockedUntil - now, this.#windows.lastOf(priority, calls, now) - now)
  }

  state(): WindowState[] {
    return this.#windows.state(this.now())
  }

  hours(): HourOfCalls[] {
    return this.#windows.hours(this.now())
  }

  /** Whether less than half of the readers' share of the shortest window is left. */
  get readsAreScarce(): boolean {
    return this.#windows.readsAreScarce(this.now())
  }

  /** Calls and reservations that wait for slots. */
  get waiting(): number {
    return this.#queue.size
  }

  /** Refuses everything that waits. */
  close() {
    clearInterval(this.#refreshing)
    this.#retry?.cancel()
    for (const place of this.#places.splice(0)) place.giveUp()
    this.#queue.clear(registrarUnavailable(5))
  }

  // For reservations: see `Slots`.

  release({ id }: Hold) {
    this.#given.released.push(id)
    this.#serve()
  }

  now(): number {
    return Math.round(this.#clockOffset + this.clock.now())
  }

  hold(hold: Hold) {
    this.#windows.hold(hold.priority, hold.slots)
    this.#taken.holds.push(hold)
    this.#renew(hold)
  }

  #waitOf(priority: Priority): number {
    if (['queued', 'background', 'sweep'].includes(priority)) return Number.POSITIVE_INFINITY
    return priority === 'follow-up' ? followUpWaitMs : this.#maxWaitMs
  }

  // These methods and `hold` run while a turn serves waiting calls: their changes count once the turn is stored.

  #count(priority: Priority) {
    this.#windows.count(priority, this.now())
    this.#taken.calls.push(priority)
  }

  /** One of the held slots becomes a call. */
  #useHeld(hold: Hold) {
    this.#windows.hold(hold.priority, -1)
    hold.slots -= 1
    this.#count(hold.priority)
    this.#taken.used.push(hold.id)
    this.#renew(hold)
  }

  #renew(hold: Hold) {
    if (this.#budget.isShared) hold.expiresAt = performance.now() + holdMs
  }

  #serve() {
    this.#isDue = true
    if (!this.#isRunning) void this.#run()
  }

  async #run() {
    this.#isRunning = true
    await Promise.resolve() // Calls of one event-loop turn share a transaction.
    while (this.#isDue) {
      this.#isDue = false
      this.#retry?.cancel()
      const { released, pauseMs } = this.#given
      const published = this.#taken.waiting.size
      if (this.#queue.size + released.length + pauseMs + published > 0) await this.#takeTurn()
      else await this.#refresh().catch(() => undefined) // The probe reports it.
    }
    this.#isRunning = false
  }

  async #takeTurn() {
    this.#taken = noChanges()
    const given = this.#given
    this.#given = { released: [], pauseMs: 0 }
    let granted: WaitingCall[] = []
    let wakeAt = Infinity
    try {
      this.#lastId = await this.#budget.turn(given, this.#since, (state) => {
        this.#adopt(state)
        const served = this.#queue.serve({ ...state, windows: this.#windows })
        wakeAt = served.wakeAt
        granted = served.granted
        this.#taken.waiting = this.#queue.slots
        return this.#taken
      })
      for (const call of granted) call.resolve()
    } catch (error) {
      // No call was made, even if the database has stored the turn.
      const cause = new DatabaseUnavailableError(error)
      const failure = databaseProblem(cause) ?? cause
      // The windows may count calls that were not stored: the next turn reads all of them again.
      this.#windows = new CallWindows(this.#limits)
      this.#lastId = 0
      for (const call of granted) call.refuse(failure)
      this.#queue.clear(failure)
    }
    const waitMs = Math.min(wakeAt - this.now(), this.#budget.isShared ? retryMs : Infinity)
    if (this.#queue.size > 0 && waitMs < Infinity)
      this.#retry = this.clock.setTimer(() => this.#serve(), Math.max(1, waitMs))
  }

  get #since() {
    return { id: this.#lastId, keepMs: this.#windows.keepMs }
  }

  async #refresh() {
    const state = await this.#budget.read(this.#since)
    this.#adopt(state)
    this.#lastId = state.calls.at(-1)?.id ?? this.#lastId
  }

  #adopt({ now, blockedUntil, calls, holds }: BudgetState) {
    this.#clockOffset = now - this.clock.now()
    this.#blockedUntil = blockedUntil
    for (const { priority, at } of calls) this.#windows.count(priority, at)
    this.#windows.replaceHolds(holds)
  }
}
