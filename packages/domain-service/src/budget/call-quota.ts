import { type Clock, databaseProblem, systemClock, type Timer } from '@domains-and-files/http'
import { DatabaseUnavailableError } from '@domains-and-files/persistence'
import { registrarBusy, registrarUnavailable } from '../errors.ts'
import type { BudgetState, CallBudget } from './call-budget.ts'
import {
  type CallLimit,
  type CallSlot,
  CallWindows,
  marginMs,
  maxWaits,
  type Priority,
  type Reservation,
  type ReserveOptions,
  rank,
  SlotCounts,
  turnKey,
} from './call-windows.ts'

interface Options {
  limits: CallLimit[]
  budget: CallBudget
  /** How long a call or a reservation waits for slots before 503 `registrar_busy`. */
  maxWaitMs?: number
  clock?: Clock
}

/** How long after its Retry-After the place and the slots of an absent caller are kept. */
const graceMs = 10_000
// Shared budget: waiting calls retry, since other processes free slots; `state` is at most `refreshMs` old.
const retryMs = 250
const refreshMs = 1_000

/**
 * The registrar's call quota: sliding windows that survive restarts. Slots go by priority, then by start-time fair
 * queueing: a caller's second call comes after the first call of every other waiting caller. A call gets 503
 * `registrar_busy` with Retry-After as soon as no slot can come free within its wait. Each turn counts the calls of other
 * processes, then takes free slots: writes go first across processes.
 */
export class CallQuota {
  readonly #options: Options
  readonly budget: CallBudget
  readonly #clock: Clock
  /** In the order in which they get their slots. */
  #waiting: Reservation[] = []
  /** Virtual time of the fair queue: the latest turn granted. */
  #turn = 0
  /** The next turn of each caller by priority, unless the virtual time has reached it. */
  readonly #turns = new Map<string, number>()
  readonly #held = new Set<Reservation>()
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
  /** Whether other processes know that this one holds slots or waits for some. */
  #isPublished = false

  private constructor(options: Options) {
    this.#options = options
    this.budget = options.budget
    this.#clock = options.clock ?? systemClock
    this.windows = new CallWindows(options.limits)
    if (this.budget.isShared) this.#refreshing = setInterval(() => this.#serve(), refreshMs).unref()
  }

  /** Counts the calls of earlier processes. */
  static async open(options: Options): Promise<CallQuota> {
    const quota = new CallQuota(options)
    await quota.#refresh()
    return quota
  }

  /** Stops all calls for this long: the registrar reported too many. */
  pause(milliseconds: number) {
    this.#pauseMs = Math.max(this.#pauseMs, milliseconds)
    void this.#serve()
  }

  /**
   * Resolves when one call may be made, which is counted then: of this priority, or with a held slot if there is one. A
   * further call of a batch goes before everything else.
   */
  take(slot: CallSlot): Promise<void> {
    if (typeof slot === 'object' && !('client' in slot))
      return this.reserve(1, slot).then((own) => this.take(own).finally(() => this.release(own)))
    const held = typeof slot === 'object' && this.#held.has(slot) ? slot : undefined
    const priority = typeof slot === 'string' ? slot : 'follow-up'
    // A held slot waits only while the registrar wants no calls at all.
    return this.#enter({ priority, slots: held ? 0 : 1, callers: [], turn: 0, call: { held } }).client.promise
  }

  /**
   * Resolves when `calls` slots are free at once, and holds them until they are used or released. Where a window is
   * smaller than `calls`, the reservation gets the whole window. A caller that got 503 keeps its place in the queue, or its
   * slots: if it retries after its Retry-After it gets in, however long the queue is.
   */
  async reserve(
    calls: number,
    { priority = 'write', maxWaitMs, callers = [] }: ReserveOptions = {},
  ): Promise<Reservation> {
    const [kept] = this.#absent(priority, callers)
    for (const each of this.#absent(priority, kept?.callers.slice(0, 1))) each.cameBackAt = this.now()
    if (kept && this.#held.has(kept)) return Object.assign(kept, { absentUntil: undefined })
    const slots = Math.min(calls, this.windows.most(priority))
    const reservation = this.#enter(kept ?? { priority, slots, callers, turn: 0 }, maxWaitMs)
    await reservation.client.promise
    return reservation
  }

  #absent(priority: Priority, callers: readonly string[] = []): Reservation[] {
    return [...this.#held, ...this.#waiting].filter(
      (each) => each.absentUntil && each.priority === priority && callers.some((by) => each.callers.includes(by)),
    )
  }

  #enter(
    wanted: Omit<Reservation, 'deadline' | 'client'>,
    maxWaitMs = maxWaits[wanted.priority] ?? this.#options.maxWaitMs ?? 10_000,
  ): Reservation {
    const isNew = wanted.absentUntil === undefined
    const client = Promise.withResolvers<void>()
    const deadline = this.now() + maxWaitMs
    const call = Object.assign(wanted, { client, deadline, absentUntil: undefined })
    if (isNew) {
      const key = turnKey(call)
      call.turn = Math.max(this.#turn, this.#turns.get(key) ?? 0)
      if (call.callers.length > 0) this.#turns.set(key, call.turn + 1)
      this.#waiting.push(call)
      this.#waiting.sort((one, other) => rank(one) - rank(other) || one.turn - other.turn)
    }
    void this.#serve()
    return call
  }

  /** Upper estimate of the time until the last of `calls` calls is made, each as a slot comes free. */
  waitMs(priority: Priority, calls: number): number {
    const now = this.now()
    const last = this.windows.earliest({ priority, slots: calls }, now, { inTurn: 1 })
    return Math.max(0, this.#blockedUntil - now, last - now)
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /** Refuses what waits. */
  close() {
    clearInterval(this.#refreshing)
    this.#retry?.cancel()
    for (const each of this.#held) if (each.absentUntil !== undefined) this.#held.delete(each)
    for (const { client } of this.#waiting.splice(0)) client.reject(registrarUnavailable(5))
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

  async #serve() {
    this.#isDue = true
    if (this.#isRunning) return
    this.#isRunning = true
    await Promise.resolve() // Calls of one event-loop turn share a transaction.
    while (this.#isDue) {
      this.#isDue = false
      this.#retry?.cancel()
      const size = this.#waiting.length + this.#held.size
      if (size + this.#pauseMs > 0 || this.#isPublished) await this.#takeTurn()
      else if (this.budget.isShared) await this.#refresh().catch(() => this.#forget()) // The probe reports it.
    }
    this.#isRunning = false
  }

  async #takeTurn() {
    const pauseMs = this.#pauseMs
    this.#pauseMs = 0
    let granted: Reservation[] = []
    let wakeAt = Infinity
    try {
      const last = await this.budget.turn(this.#lastId, pauseMs, (state) => {
        this.#adopt(state)
        ;({ granted, wakeAt } = this.#grantSlots(state))
        this.#isPublished = this.#held.size + this.#waiting.length > 0
        const calls = granted.flatMap(({ call, priority }) => (call ? (call.held?.priority ?? priority) : []))
        return { calls, held: this.#held, waiting: this.#waiting }
      })
      this.#lastId = last ?? this.#lastId
      for (const { client } of granted) client.resolve()
    } catch (error) {
      const cause = new DatabaseUnavailableError(error)
      // No call was made, although the windows count some, and the database may.
      this.#forget()
      this.#isPublished = true
      for (const call of granted) this.#held.delete(call)
      for (const { client } of [...granted, ...this.#waiting.splice(0)]) client.reject(databaseProblem(cause) ?? cause)
    }
    const absent = Array.from(this.#held, ({ absentUntil = Infinity }) => absentUntil)
    const retryIn = this.budget.isShared && this.#waiting.length > 0 ? retryMs : Infinity
    const waitMs = Math.min(Math.min(wakeAt, ...absent) - this.now(), retryIn)
    if (waitMs < Infinity) this.#retry = this.#clock.setTimer(() => this.#serve(), Math.max(1, waitMs))
  }

  /** Grants in order until a call finds no room; refuses all those that cannot be granted in time. */
  #grantSlots({ now, blockedUntil, waiters }: BudgetState) {
    const granted: Reservation[] = []
    const waiting: Reservation[] = []
    let wakeAt = Infinity
    const others = waiters.toSorted((one, other) => rank(one) - rank(other))
    const ahead = new SlotCounts()
    for (const call of this.#waiting) {
      if ((call.absentUntil ?? Infinity) <= now) continue
      // Those of a higher priority that wait in other processes go first.
      for (; others[0] && rank(others[0]) < rank(call); others.shift()) ahead.add(others[0])
      // Readers wait for their share, or for the whole window: what is left of that serves asynchronous batches.
      if (call.priority === 'queued') ahead.delete('read')
      const isNext = waiting.length === 0 || (call.priority === 'queued' && waiting.at(-1)?.priority === 'read')
      const freeAt = Math.max(blockedUntil, this.windows.earliest(call, now, { ahead }))
      if (isNext && freeAt <= now) {
        this.#grant(call)
        granted.push(call)
        continue
      }
      // Held slots may be given back unused, so a call is refused early only where even that would not help.
      const best = this.windows.earliest(call, now, { ahead, held: new SlotCounts() })
      const isLate = call.deadline <= now || Math.max(blockedUntil, best) > call.deadline
      if (call.absentUntil === undefined && isLate) {
        const turnAt = Math.max(blockedUntil, this.windows.earliest(call, now, { ahead, inTurn: call.slots }))
        // Retry-After leaves out the margin: a caller that returns waits that long in the queue.
        const retryAfter = Math.max(1, Math.ceil((turnAt - marginMs - now) / 1000))
        call.client.reject(registrarBusy(retryAfter))
        if (call.callers.length === 0) continue
        call.absentUntil = now + retryAfter * 1000 + graceMs
      }
      wakeAt = Math.min(wakeAt, call.absentUntil ?? call.deadline, isNext ? freeAt : Infinity)
      waiting.push(call)
      ahead.add(call)
    }
    this.#waiting = waiting
    return { granted, wakeAt }
  }

  /** Takes the slots of a call, in the turn in which they were found free: holds them, or counts one as a call. */
  #grant(granted: Reservation) {
    this.#turn = Math.max(this.#turn, granted.turn)
    for (const [caller, next] of this.#turns) if (next <= this.#turn) this.#turns.delete(caller)
    if (!granted.call) {
      this.windows.held.add(granted)
      return this.#held.add(granted)
    }
    const { held } = granted.call
    const { priority } = held ?? granted
    if (held) {
      this.windows.held.add({ priority, slots: -1 })
      held.slots -= 1
      if (held.slots === 0) this.#held.delete(held)
    }
    this.windows.count(priority, this.now())
  }

  // All calls are read again: a standby that is promoted may lack some, and give their ids again.
  #forget() {
    this.windows = new CallWindows(this.#options.limits)
    this.#lastId = 0
  }

  async #refresh() {
    this.#adopt(await this.budget.read(this.#lastId))
  }

  #adopt({ now, blockedUntil, calls, holds }: BudgetState) {
    this.#clockOffset = now - this.#clock.now()
    this.#blockedUntil = blockedUntil
    for (const { priority, at } of calls) this.windows.count(priority, at)
    this.#lastId = calls.at(-1)?.id ?? this.#lastId
    for (const each of this.#held) {
      if ((each.absentUntil ?? Infinity) > now) continue
      this.release(each)
      if ((each.cameBackAt ?? 0) > now - 60_000) continue
      // The caller is gone: its further places must not keep slots from others, one window after another.
      for (const place of this.#absent(each.priority, each.callers.slice(0, 1))) place.absentUntil = now
      this.#turns.delete(turnKey(each))
    }
    this.windows.held = SlotCounts.sum([...holds, ...this.#held])
  }
}
