import type { Database } from 'better-sqlite3'
import { type Clock, systemClock, type Timer } from '../clock.ts'
import { registrarUnavailable } from '../errors.ts'
import {
  type CallQuota,
  followUpWaitMs,
  Reservation,
  type ReserveOptions,
  waitOf,
} from './call-quota.ts'
import {
  type CallLimit,
  CallWindows,
  type Priority,
  type StoredCall,
  type WindowState,
} from './call-windows.ts'
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

/**
 * Counted calls in SQLite, so that a restart does not exceed the registrar's limits. A full or failing disk loses
 * nothing for this process: calls not stored yet are kept and stored with a later one.
 */
export class CallStore {
  readonly #insertAll: (calls: StoredCall[], forgetBefore: number) => void
  readonly #select: (since: number) => StoredCall[]
  readonly #onFailure: (error: unknown) => void
  #unstored: StoredCall[] = []
  #isFailing = false

  /** `onFailure` is called once per outage. */
  constructor(database: Database, onFailure: (error: unknown) => void) {
    const forget = database.prepare<[number]>('delete from calls where at <= ?')
    const insert = database.prepare<[StoredCall]>(
      'insert into calls (at, priority) values (:at, :priority)',
    )
    this.#insertAll = database.transaction((calls: StoredCall[], forgetBefore: number) => {
      forget.run(forgetBefore)
      for (const call of calls) insert.run(call)
    })
    const select = database.prepare<[number], StoredCall>(
      'select at, priority from calls where at > ? order by at',
    )
    this.#select = (since) => select.all(since)
    this.#onFailure = onFailure
  }

  /** Calls made after `since`, oldest first. */
  load(since: number): StoredCall[] {
    return this.#select(since)
  }

  /** Never throws: a call that cannot be stored must not fail a read. */
  add(call: StoredCall, forgetBefore: number) {
    this.#unstored.push(call)
    this.#unstored = this.#unstored.filter(({ at }) => at > forgetBefore)
    this.#flush(forgetBefore)
  }

  /** Whether all calls are stored; tries again what could not be stored. */
  isComplete(forgetBefore: number): boolean {
    if (this.#unstored.length > 0) this.#flush(forgetBefore)
    return this.#unstored.length === 0
  }

  #flush(forgetBefore: number) {
    try {
      this.#insertAll(this.#unstored, forgetBefore)
      this.#unstored = []
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing) this.#onFailure(error)
      this.#isFailing = true
    }
  }
}
