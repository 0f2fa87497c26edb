import { randomUUID } from 'node:crypto'
import { databaseProblem } from '@domains-and-files/http'
import { DatabaseUnavailableError } from '@domains-and-files/persistence'
import { type Clock, systemClock, type Timer } from '../clock.ts'
import { registrarUnavailable } from '../errors.ts'
import { type BudgetChanges, type BudgetState, type CallBudget, holdMs } from './call-budget.ts'
import {
  type CallQuota,
  followUpWaitMs,
  Reservation,
  type ReserveOptions,
  waitOf,
} from './call-quota.ts'
import { type CallLimit, CallWindows, type Priority, type WindowState } from './call-windows.ts'
import { KeptPlaces, type OpenedReservation } from './kept-places.ts'
import { type WaitingCall, WaitingCalls } from './waiting-calls.ts'

interface QuotaOptions {
  limits: CallLimit[]
  budget: CallBudget
  isAvailable: () => boolean
  clock?: Clock
  /** How long a call or a reservation waits for slots before 503 `registrar_busy`. */
  maxWaitMs?: number
}

/** Slots may come free at another replica at any time. */
const retryMs = 250
/** How old the counts of `state` are at most. */
const refreshMs = 1_000
const pruneMs = 3_600_000

/**
 * The quota of all replicas of one registrar account. Each turn locks the budget in the database, counts what others have
 * taken since, and takes what is free: writes go first across replicas.
 */
export class SharedCallQuota implements CallQuota {
  readonly #options: Required<QuotaOptions>
  readonly #waiting = new WaitingCalls()
  readonly #places: KeptPlaces
  readonly #timers: NodeJS.Timeout[]
  #windows: CallWindows
  /** The last call that `#windows` counts. */
  #lastId = 0
  /** The database's clock minus that of this process. */
  #clockOffset = 0
  #blockedUntil = 0
  #released: string[] = []
  #pauseMs = 0
  #isPublished = false
  #running: Promise<void> | undefined
  #isDue = false
  #retry: Timer | undefined

  private constructor(options: QuotaOptions) {
    this.#options = { maxWaitMs: 10_000, clock: systemClock, ...options }
    this.#windows = new CallWindows(options.limits)
    const { clock } = this.#options
    this.#places = new KeptPlaces({ clock, now: () => this.#now(), serve: () => this.#serve() })
    this.#timers = [
      setInterval(() => this.#serve(), refreshMs).unref(),
      setInterval(() => void this.#prune(), pruneMs).unref(),
    ]
  }

  /** Counts the calls that were made before. */
  static async open(options: QuotaOptions): Promise<SharedCallQuota> {
    await options.budget.open()
    const quota = new SharedCallQuota(options)
    await quota.#prune()
    await quota.#refresh()
    return quota
  }

  take(priority: Priority): Promise<void> {
    const maxWaitMs = waitOf(priority, this.#options.maxWaitMs)
    return this.#wait({ priority, calls: 1, maxWaitMs }, (changes, now) => {
      this.#windows.count(priority, now)
      changes.calls.push(priority)
    }).granted
  }

  async reserve(
    calls: number,
    {
      priority = 'write',
      maxWaitMs = waitOf(priority, this.#options.maxWaitMs),
      callers = [],
    }: ReserveOptions = {},
  ): Promise<Reservation> {
    const [caller] = callers
    if (caller === undefined) {
      const { granted, reservation } = this.#open(calls, { priority, maxWaitMs, caller })
      await granted
      return reservation
    }
    const open = () => this.#open(calls, { priority, maxWaitMs: Infinity, caller })
    return this.#places.reserve(callers, maxWaitMs, open)
  }

  #open(
    calls: number,
    { priority, ...options }: { priority: Priority; maxWaitMs: number; caller: string | undefined },
  ): OpenedReservation {
    const slots = Math.min(calls, this.#windows.most(priority))
    const id = randomUUID()
    let expiresAt = 0
    const renew = () => {
      expiresAt = performance.now() + holdMs
    }
    const waiting = this.#wait({ priority, calls: slots, ...options }, (changes) => {
      this.#windows.hold(priority, slots)
      changes.holds.push({ id, priority, slots })
      renew()
    })
    const use = () =>
      this.#wait({ priority: 'follow-up', calls: 0, maxWaitMs: followUpWaitMs }, (changes, now) => {
        this.#windows.hold(priority, -1)
        this.#windows.count(priority, now)
        changes.calls.push(priority)
        changes.used.push(id)
        renew()
      }).granted
    const reservation = new Reservation(slots, {
      use: () => (performance.now() < expiresAt ? use() : this.take('follow-up')),
      followUp: () => this.take('follow-up'),
      release: () => {
        this.#released.push(id)
        this.#serve()
      },
    })
    return { ...waiting, reservation }
  }

  pause(milliseconds: number) {
    this.#pauseMs = Math.max(this.#pauseMs, milliseconds)
    this.#serve()
  }

  waitMs(priority: Priority, calls: number): number {
    const now = this.#now()
    return Math.max(0, this.#blockedUntil - now, this.#windows.lastOf(priority, calls, now) - now)
  }

  state(): WindowState[] {
    return this.#windows.state(this.#now())
  }

  get readsAreScarce(): boolean {
    return this.#windows.readsAreScarce(this.#now())
  }

  get isStored(): boolean {
    return this.#options.isAvailable()
  }

  get waiting(): number {
    return this.#waiting.size
  }

  close() {
    this.#places.close()
    for (const timer of this.#timers) clearInterval(timer)
    this.#retry?.cancel()
    this.#waiting.clear(registrarUnavailable(5))
  }

  #wait(
    {
      maxWaitMs,
      ...request
    }: Pick<WaitingCall, 'priority' | 'calls' | 'caller'> & { maxWaitMs: number },
    take: (changes: BudgetChanges, now: number) => void,
  ) {
    const { promise: granted, resolve, reject } = Promise.withResolvers<void>()
    const call: WaitingCall = {
      ...request,
      deadline: this.#now() + maxWaitMs,
      grant: () => {
        const turn = this.#turn
        if (!turn) throw new Error('granted outside of a turn')
        take(turn.changes, turn.now)
        turn.granted.push({ resolve, reject })
      },
      refuse: reject,
    }
    this.#waiting.add(call)
    this.#serve()
    return { call, granted }
  }

  /** The turn under way, which becomes effective as a whole or not at all. */
  #turn: Turn | undefined

  #serve() {
    this.#isDue = true
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
  }

  async #run() {
    await Promise.resolve() // Calls of one event-loop turn share a transaction.
    while (this.#isDue) {
      this.#isDue = false
      this.#retry?.cancel()
      const hasWork = this.#waiting.size + this.#released.length + this.#pauseMs > 0
      if (hasWork || this.#isPublished) await this.#takeTurn()
      else await this.#refresh().catch(() => undefined) // The probe reports it.
    }
  }

  async #takeTurn() {
    const turn: Turn = {
      changes: { calls: [], holds: [], used: [], waiting: new Map() },
      granted: [],
      now: 0,
    }
    const released = this.#released.splice(0)
    const pauseMs = this.#pauseMs
    this.#pauseMs = 0
    try {
      const since = { id: this.#lastId, keepMs: this.#windows.keepMs }
      this.#lastId = await this.#options.budget.turn({ released, pauseMs }, since, (state) =>
        this.#decide(turn, state),
      )
      for (const { resolve } of turn.granted) resolve()
      this.#isPublished = this.#waiting.size > 0
    } catch (error) {
      // No call was made, whether or not its slot was taken.
      const failure = databaseProblem(new DatabaseUnavailableError(error)) ?? error
      // What was counted meanwhile may not have been stored.
      this.#windows = new CallWindows(this.#options.limits)
      this.#lastId = 0
      for (const { reject } of turn.granted) reject(failure)
      this.#waiting.clear(failure instanceof Error ? failure : new Error(String(failure)))
    }
    if (this.#waiting.size > 0) {
      this.#retry = this.#options.clock.setTimer(() => this.#serve(), retryMs)
    }
  }

  #decide(turn: Turn, state: BudgetState): BudgetChanges {
    this.#adopt(state)
    turn.now = state.now
    const others = new Map<Priority, number>()
    for (const { priority, calls } of state.waiters)
      others.set(priority, (others.get(priority) ?? 0) + calls)
    const { now, blockedUntil } = state
    this.#turn = turn
    this.#waiting.serve({ windows: this.#windows, now, blockedUntil, others })
    this.#turn = undefined
    turn.changes.waiting = this.#waiting.slots
    return turn.changes
  }

  async #refresh() {
    const state = await this.#options.budget.read({
      id: this.#lastId,
      keepMs: this.#windows.keepMs,
    })
    this.#adopt(state)
    this.#lastId = state.calls.at(-1)?.id ?? this.#lastId
  }

  #adopt({ now, blockedUntil, calls, holds }: BudgetState) {
    this.#clockOffset = now - this.#options.clock.now()
    this.#blockedUntil = blockedUntil
    for (const { priority, at } of calls) this.#windows.count(priority, at)
    this.#windows.replaceHolds(holds)
  }

  async #prune() {
    await this.#options.budget.prune(this.#windows.keepMs).catch(() => undefined)
  }

  // The database's clock.
  #now(): number {
    return Math.round(this.#clockOffset + this.#options.clock.now())
  }
}

interface Turn {
  changes: BudgetChanges
  granted: { resolve: () => void; reject: (error: unknown) => void }[]
  now: number
}
