import { type Clock, systemClock, type Timer } from '../../clock.ts'
import { registrarUnavailable } from '../../errors.ts'
import { type CallQuota, followUpWaitMs, type ReserveOptions, waitOf } from './call-quota.ts'
import type { CallLimit } from './call-rate.ts'
import type { CallStore } from './call-store.ts'
import { CallWindows, type Priority, type WindowState } from './call-windows.ts'
import { Reservation } from './reservation.ts'
import { type WaitingCall, WaitingCalls } from './waiting-calls.ts'

interface QuotaOptions {
  limits: CallLimit[]
  store: Pick<CallStore, 'load' | 'add' | 'isComplete'>
  /** How long a call or a reservation waits for slots before 503 `registrar_busy`. */
  maxWaitMs?: number
  clock?: Clock
}

/** The quota of the only process that calls the registrar: counted in memory, calls kept in a store. */
export class LocalCallQuota implements CallQuota {
  readonly #windows: CallWindows
  readonly #maxWaitMs: number
  readonly #clock: Clock
  readonly #store: QuotaOptions['store']
  readonly #waiting = new WaitingCalls()
  #blockedUntil = 0
  #timer: Timer | undefined

  constructor({ limits, store, maxWaitMs = 10_000, clock = systemClock }: QuotaOptions) {
    this.#windows = new CallWindows(limits)
    this.#maxWaitMs = maxWaitMs
    this.#clock = clock
    this.#store = store
    this.#windows.restore(store.load(this.#outdated()), clock.now())
  }

  take(priority: Priority): Promise<void> {
    const maxWaitMs = waitOf(priority, this.#maxWaitMs)
    return this.#wait({ priority, calls: 1, maxWaitMs, grant: () => this.#count(priority) })
  }

  async reserve(
    calls: number,
    { priority = 'write', maxWaitMs = waitOf(priority, this.#maxWaitMs) }: ReserveOptions = {},
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

  pause(milliseconds: number) {
    this.#blockedUntil = Math.max(this.#blockedUntil, this.#clock.now() + milliseconds)
  }

  waitMs(priority: Priority, calls: number): number {
    const now = this.#clock.now()
    return Math.max(0, this.#blockedUntil - now, this.#windows.lastOf(priority, calls, now) - now)
  }

  state(): WindowState[] {
    return this.#windows.state(this.#clock.now())
  }

  get readsAreScarce(): boolean {
    return this.#windows.readsAreScarce(this.#clock.now())
  }

  get isStored(): boolean {
    return this.#store.isComplete(this.#outdated())
  }

  get waiting(): number {
    return this.#waiting.size
  }

  close() {
    this.#timer?.cancel()
    this.#waiting.clear(registrarUnavailable(5))
  }

  #wait({
    maxWaitMs,
    grant,
    ...request
  }: Pick<WaitingCall, 'priority' | 'calls' | 'grant'> & { maxWaitMs: number }): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#waiting.add({
      ...request,
      deadline: this.#clock.now() + maxWaitMs,
      grant: () => {
        grant()
        resolve()
      },
      refuse: reject,
    })
    this.#serve()
    return promise
  }

  #serve() {
    const now = this.#clock.now()
    const blockedUntil = this.#blockedUntil
    const wakeAt = this.#waiting.serve({ windows: this.#windows, now, blockedUntil })
    this.#timer?.cancel()
    if (wakeAt < Number.POSITIVE_INFINITY)
      this.#timer = this.#clock.setTimer(() => this.#serve(), Math.max(1, wakeAt - now))
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
