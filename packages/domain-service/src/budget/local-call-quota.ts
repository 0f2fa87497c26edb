import { join, name, type Sql, type SqlTransaction, sql } from '@domains-and-files/persistence'
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
import { KeptPlaces, type OpenedReservation } from './kept-places.ts'
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
  readonly #places: KeptPlaces
  #blockedUntil = 0
  #timer: Timer | undefined

  private constructor({ limits, store, maxWaitMs = 10_000, clock = systemClock }: QuotaOptions) {
    this.#windows = new CallWindows(limits)
    this.#maxWaitMs = maxWaitMs
    this.#clock = clock
    this.#store = store
    this.#places = new KeptPlaces({ clock, now: clock.now, serve: () => this.#serve() })
  }

  /** Counts the calls that were made before. */
  static async open(options: QuotaOptions): Promise<LocalCallQuota> {
    const quota = new LocalCallQuota(options)
    quota.#windows.restore(await options.store.load(quota.#outdated()), quota.#clock.now())
    return quota
  }

  take(priority: Priority): Promise<void> {
    const maxWaitMs = waitOf(priority, this.#maxWaitMs)
    return this.#wait({ priority, calls: 1, maxWaitMs, grant: () => this.#count(priority) }).granted
  }

  async reserve(
    calls: number,
    {
      priority = 'write',
      maxWaitMs = waitOf(priority, this.#maxWaitMs),
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
    const grant = () => this.#windows.hold(priority, slots)
    const waiting = this.#wait({ priority, calls: slots, grant, ...options })
    const use = () => {
      this.#windows.hold(priority, -1)
      this.#count(priority)
    }
    const reservation = new Reservation(slots, {
      // A held slot waits only while the registrar wants no calls at all.
      use: () =>
        this.#wait({ priority: 'follow-up', calls: 0, maxWaitMs: followUpWaitMs, grant: use })
          .granted,
      followUp: () => this.take('follow-up'),
      release: (unused) => {
        this.#windows.hold(priority, -unused)
        this.#serve()
      },
    })
    return { ...waiting, reservation }
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
    this.#places.close()
    this.#timer?.cancel()
    this.#waiting.clear(registrarUnavailable(5))
  }

  #wait({
    maxWaitMs,
    grant,
    ...request
  }: Pick<WaitingCall, 'priority' | 'calls' | 'caller' | 'grant'> & { maxWaitMs: number }) {
    const { promise: granted, resolve, reject } = Promise.withResolvers<void>()
    const call: WaitingCall = {
      ...request,
      deadline: this.#clock.now() + maxWaitMs,
      grant: () => {
        grant()
        resolve()
      },
      refuse: reject,
    }
    this.#waiting.add(call)
    this.#serve()
    return { call, granted }
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

const calls = name('calls')

/**
 * Counted calls in SQLite, so that a restart does not exceed the registrar's limits. A full or failing disk loses
 * nothing for this process: calls not stored yet are kept and stored with a later one.
 */
export class CallStore {
  readonly #sql: Sql
  readonly #account: string
  readonly #onFailure: (error: unknown) => void
  #unstored: StoredCall[] = []
  #isFailing = false
  #flushing: Promise<void> | undefined

  /** `onFailure` is called once per outage. */
  constructor(database: Sql, account: string, onFailure: (error: unknown) => void) {
    this.#sql = database
    this.#account = account
    this.#onFailure = onFailure
  }

  /** Calls made after `since`, oldest first. */
  load(since: number): Promise<StoredCall[]> {
    return this.#sql.all(sql`select at, priority from ${calls}
      where account = ${this.#account} and at > ${since} order by at`)
  }

  /** Stores the call in the background: one that cannot be stored must not fail a read. */
  add(call: StoredCall, forgetBefore: number) {
    this.#unstored.push(call)
    this.#unstored = this.#unstored.filter(({ at }) => at > forgetBefore)
    this.#flush(forgetBefore)
  }

  /** False while calls cannot be stored; tries again to store them. */
  isComplete(forgetBefore: number): boolean {
    if (this.#isFailing) this.#flush(forgetBefore)
    return !this.#isFailing
  }

  /** Resolves when what was added is stored, or cannot be. */
  async settle(): Promise<void> {
    await this.#flushing
  }

  #flush(forgetBefore: number) {
    this.#flushing ??= this.#storeAll(forgetBefore).finally(() => {
      this.#flushing = undefined
    })
  }

  async #storeAll(forgetBefore: number) {
    try {
      while (this.#unstored.length > 0) {
        const some = new Set(this.#unstored)
        await this.#sql.transaction((transaction) => this.#insert(transaction, some, forgetBefore))
        this.#unstored = this.#unstored.filter((call) => !some.has(call))
        this.#isFailing = false
      }
    } catch (error) {
      if (!this.#isFailing) this.#onFailure(error)
      this.#isFailing = true
    }
  }

  async #insert(transaction: SqlTransaction, some: Set<StoredCall>, forgetBefore: number) {
    const account = this.#account
    await transaction.run(
      sql`delete from ${calls} where account = ${account} and at <= ${forgetBefore}`,
    )
    const rows = Array.from(some, ({ at, priority }) => sql`(${account}, ${at}, ${priority})`)
    await transaction.run(sql`insert into ${calls} (account, at, priority) values ${join(rows)}`)
  }
}
