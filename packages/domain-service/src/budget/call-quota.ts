import { type Clock, databaseProblem, systemClock, type Timer } from '@domains-and-files/http'
import { DatabaseUnavailableError } from '@domains-and-files/persistence'
import { registrarUnavailable } from '../errors.ts'
import { type BudgetState, type CallBudget, holdMs } from './call-budget.ts'
import {
  type CallLimit,
  CallWindows,
  type HourOfCalls,
  type Priority,
  type WindowState,
} from './call-windows.ts'
import { Reservation, WaitingCalls } from './waiting-calls.ts'

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
  /** Places of callers that got 503: a caller that retries after its Retry-After gets in, however long the queue is. */
  readonly #places: Reservation[] = []
  /** Reservations that hold slots. */
  readonly #held = new Set<Reservation>()
  /** By the monotonic clock; afterwards other processes may have taken the held slots. */
  #heldUntil = Number.POSITIVE_INFINITY
  #windows: CallWindows
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
    this.#pauseMs = Math.max(this.#pauseMs, milliseconds)
    this.#serve()
  }

  /** Resolves when one call may be made, which is counted then: of this priority, or with a held slot if there is one. */
  take(slot: Priority | Reservation): Promise<void> {
    const priority = typeof slot === 'string' ? slot : 'follow-up'
    const isHeld =
      typeof slot === 'object' && this.#held.has(slot) && performance.now() < this.#heldUntil
    // A held slot waits only while the registrar wants no calls at all.
    const slots = isHeld ? 0 : 1
    const take = () => (isHeld ? this.#useHeld(slot) : this.#count(priority))
    const call = new Reservation({ priority, slots, take }, this)
    const taken = call.enter(this.now() + this.#waitOf(priority))
    this.#queue.add(call)
    this.#serve()
    return taken
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
    const take = (granted: Reservation) => this.#hold(granted)
    const reservation = known ?? new Reservation({ priority, slots, callers, take }, this)
    const entered = reservation.enter(this.now() + maxWaitMs)
    if (this.#held.has(reservation)) return reservation
    if (!known) this.#queue.add(reservation)
    this.#serve()
    try {
      await entered
    } catch (error) {
      if (reservation.absentUntil !== undefined) this.#places.push(reservation)
      if (this.#places.length > maxPlaces) giveUp(this.#places.shift())
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
    return this.#queue.waiting.length
  }

  /** Refuses everything that waits. */
  close() {
    clearInterval(this.#refreshing)
    this.#retry?.cancel()
    for (const place of this.#places.splice(0)) giveUp(place)
    this.#queue.clear(registrarUnavailable(5))
    this.#serve()
  }

  /** For reservations. */
  release(reservation: Reservation) {
    if (this.#held.delete(reservation)) this.#serve()
  }

  /** The budget's clock, by which slots come free. */
  now(): number {
    return Math.round(this.#clockOffset + this.#clock.now())
  }

  #waitOf(priority: Priority): number {
    if (['queued', 'background', 'sweep'].includes(priority)) return Number.POSITIVE_INFINITY
    return priority === 'follow-up' ? followUpWaitMs : this.#maxWaitMs
  }

  // These three run while a turn serves waiting calls.

  #hold(reservation: Reservation) {
    this.#windows.hold(reservation.priority, reservation.slots)
    this.#held.add(reservation)
  }

  #count(priority: Priority) {
    this.#windows.count(priority, this.now())
    this.#calls.push(priority)
  }

  /** One of the held slots becomes a call. */
  #useHeld(reservation: Reservation) {
    this.#windows.hold(reservation.priority, -1)
    reservation.slots -= 1
    if (reservation.slots === 0) this.#held.delete(reservation)
    this.#count(reservation.priority)
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
      this.#lastId = await this.#budget.turn(this.#since, pauseMs, (state) => {
        this.#adopt(state)
        const served = this.#queue.serve({ ...state, windows: this.#windows })
        wakeAt = served.wakeAt
        granted = served.granted
        this.#isPublished = this.#held.size + this.#queue.waiting.length > 0
        return { calls: this.#calls, held: this.#held, waiting: this.#queue.waiting }
      })
      if (this.#budget.isShared) this.#heldUntil = heldUntil
      for (const call of granted) call.resolve()
    } catch (error) {
      // No call was made, even if the database has stored the turn.
      const cause = new DatabaseUnavailableError(error)
      const failure = databaseProblem(cause) ?? cause
      // The windows may count calls that were not stored: the next turn reads all of them again.
      this.#windows = new CallWindows(this.#limits)
      this.#lastId = 0
      this.#isPublished = true
      for (const call of granted) {
        this.#held.delete(call)
        call.refuse(failure)
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

  get #since() {
    return { id: this.#lastId, keepMs: this.#windows.keepMs }
  }

  async #refresh() {
    const state = await this.#budget.read(this.#since)
    this.#adopt(state)
    this.#lastId = state.calls.at(-1)?.id ?? this.#lastId
  }

  #adopt({ now, blockedUntil, calls, holds }: BudgetState) {
    this.#clockOffset = now - this.#clock.now()
    this.#blockedUntil = blockedUntil
    for (const { priority, at } of calls) this.#windows.count(priority, at)
    for (const each of this.#held) if ((each.absentUntil ?? Infinity) <= now) each.release()
    this.#windows.replaceHolds([...holds, ...this.#held])
  }
}

/** Lets the next turn remove a kept place. */
function giveUp(place: Reservation | undefined) {
  if (place) place.absentUntil = Number.NEGATIVE_INFINITY
}
