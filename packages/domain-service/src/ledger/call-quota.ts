import { type Clock, systemClock, type Timer } from '../clock.ts'
import { registrarBusy, registrarUnavailable } from '../errors.ts'
import type { CallLimit } from './call-rate.ts'
import type { CallStore } from './call-store.ts'
import { CallWindows, type Priority, priorities, type WindowState } from './call-windows.ts'
import { Reservation } from './reservation.ts'

export type { Priority, WindowState }

interface Waiter {
  priority: Priority
  /** New slots; 0 for a call whose slot is held already. */
  calls: number
  deadline: number
  /** Takes the slots, in the same turn in which they were found free. */
  grant: () => void
  refuse: (error: Error) => void
}

interface QuotaOptions {
  limits: CallLimit[]
  store: Pick<CallStore, 'load' | 'add' | 'isComplete'>
  /** How long a call or a reservation waits for slots before 503 `registrar_busy`. */
  maxWaitMs?: number
  clock?: Clock
}

export interface ReserveOptions {
  priority?: Priority
  /** Infinity: waits however long. */
  maxWaitMs?: number
}

// A round under way cannot be refused without harm: it waits until the calls of a whole minute have become free.
const followUpWaitMs = 61_000

/**
 * The calls that the registrar allows, in sliding windows, kept across restarts. Calls get slots by priority, then first
 * come, first served. As soon as no slot can come free within the wait: 503 `registrar_busy` with Retry-After.
 */
export class CallQuota {
  readonly #windows: CallWindows
  readonly #maxWaitMs: number
  readonly #clock: Clock
  readonly #store: QuotaOptions['store']
  #waiters: Waiter[] = []
  #blockedUntil = 0
  #timer: Timer | undefined

  constructor({ limits, store, maxWaitMs = 10_000, clock = systemClock }: QuotaOptions) {
    this.#windows = new CallWindows(limits)
    this.#maxWaitMs = maxWaitMs
    this.#clock = clock
    this.#store = store
    this.#windows.restore(store.load(this.#outdated()), clock.now())
  }

  /** Resolves when one call may be made; the call is counted then. */
  take(priority: Priority): Promise<void> {
    const grant = () => this.#count(priority)
    return this.#wait({ priority, calls: 1, maxWaitMs: this.#waitOf(priority), grant })
  }

  /**
   * Resolves when so many slots are free at once, and holds them until they are used or released. A window smaller than
   * that gives all it has.
   */
  async reserve(
    calls: number,
    { priority = 'write', maxWaitMs = this.#waitOf(priority) }: ReserveOptions = {},
  ): Promise<Reservation> {
    const slots = Math.min(calls, this.#windows.most(priority))
    const grant = () => this.#windows.hold(priority, slots)
    await this.#wait({ priority, calls: slots, maxWaitMs, grant })
    const use = () => {
      this.#windows.hold(priority, -1)
      this.#count(priority)
    }
    return new Reservation(slots, {
      // A held slot waits only while the registrar wants no calls at all.
      use: () =>
        this.#wait({ priority: 'follow-up', calls: 0, maxWaitMs: followUpWaitMs, grant: use }),
      followUp: () => this.take('follow-up'),
      release: (unused) => {
        this.#windows.hold(priority, -unused)
        this.#serve()
      },
    })
  }

  /** The registrar reported too many calls, whatever we counted: no call for so long. */
  pause(milliseconds: number) {
    this.#blockedUntil = Math.max(this.#blockedUntil, this.#clock.now() + milliseconds)
  }

  /** How long so many calls take that are made one by one as slots come free; an upper estimate. */
  waitMs(priority: Priority, calls: number): number {
    const now = this.#clock.now()
    return Math.max(0, this.#blockedUntil - now, this.#windows.lastOf(priority, calls, now) - now)
  }

  state(): WindowState[] {
    return this.#windows.state(this.#clock.now())
  }

  /** Whether less than half of the readers' share of the shortest window is left. */
  get readsAreScarce(): boolean {
    return this.#windows.readsAreScarce(this.#clock.now())
  }

  /** Whether every counted call is stored; false while the disk is full or failing. */
  get isStored(): boolean {
    return this.#store.isComplete(this.#outdated())
  }

  /** Calls and reservations that wait for slots. */
  get waiting(): number {
    return this.#waiters.length
  }

  /** Refuses everything that waits. */
  close() {
    this.#timer?.cancel()
    const waiters = this.#waiters
    this.#waiters = []
    for (const waiter of waiters) waiter.refuse(registrarUnavailable(5))
  }

  #waitOf(priority: Priority): number {
    if (priority === 'queued' || priority === 'background') return Number.POSITIVE_INFINITY
    return priority === 'follow-up' ? followUpWaitMs : this.#maxWaitMs
  }

  #wait(
    request: Pick<Waiter, 'priority' | 'calls' | 'grant'> & { maxWaitMs: number },
  ): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter = {
      priority: request.priority,
      calls: request.calls,
      deadline: this.#clock.now() + request.maxWaitMs,
      grant: () => {
        request.grant()
        resolve()
      },
      refuse: reject,
    }
    const isBehind = (each: Waiter) => rank(each) > rank(waiter)
    const place = this.#waiters.findIndex(isBehind)
    this.#waiters.splice(place < 0 ? this.#waiters.length : place, 0, waiter)
    this.#serve()
    return promise
  }

  // Grants in order until a waiter finds no room; refuses all those that cannot be granted in time.
  #serve() {
    const now = this.#clock.now()
    const ahead = new Map<Priority, number>()
    const waiting: Waiter[] = []
    let wakeAt = Number.POSITIVE_INFINITY
    for (const waiter of this.#waiters) {
      const request = { ...waiter, ahead }
      const freeAt = Math.max(this.#blockedUntil, this.#windows.earliest(request, now))
      if (waiting.length === 0 && freeAt <= now) {
        waiter.grant()
        continue
      }
      // Held slots may be given back unused, so a waiter is refused early only where even that would not help.
      const best = Math.max(this.#blockedUntil, this.#windows.earliest(request, now, true))
      if (waiter.deadline <= now || best > waiter.deadline) {
        waiter.refuse(registrarBusy(Math.max(1, Math.ceil((freeAt - now) / 1000))))
        continue
      }
      if (waiting.length === 0) wakeAt = freeAt
      wakeAt = Math.min(wakeAt, waiter.deadline)
      waiting.push(waiter)
      ahead.set(waiter.priority, (ahead.get(waiter.priority) ?? 0) + waiter.calls)
    }
    this.#waiters = waiting
    this.#timer?.cancel()
    if (waiting.length > 0 && wakeAt < Number.POSITIVE_INFINITY) {
      this.#timer = this.#clock.setTimer(() => this.#serve(), Math.max(1, wakeAt - now))
    }
  }

  #count(priority: Priority) {
    const at = this.#clock.now()
    this.#windows.count(priority, at)
    this.#store.add({ at, priority }, this.#outdated())
  }

  #outdated(): number {
    return this.#clock.now() - this.#windows.keepMs
  }
}

// A call whose slot is held waits for nobody.
const rank = ({ calls, priority }: Waiter) => (calls === 0 ? -1 : priorities.indexOf(priority))
