import { randomUUID } from 'node:crypto'
import { type Clock, systemClock } from '@domains-and-files/http'
import { registrarUnavailable } from '../errors.ts'
import {
  type CallLimit,
  CallWindows,
  type HourOfCalls,
  type Priority,
  type WindowState,
} from './call-windows.ts'
import { KeptPlaces, type OpenedReservation, Reservation } from './reservations.ts'
import { type WaitingCall, WaitingCalls } from './waiting-calls.ts'

export type { Priority, WindowState }

export interface ReserveOptions {
  priority?: Priority
  /** Infinity: waits however long. */
  maxWaitMs?: number
  /** Who waits for a write: callers take turns, and keep their place where they are told to come back. */
  callers?: readonly string[]
}

export interface QuotaOptions {
  limits: CallLimit[]
  /** How long a call or a reservation waits for slots before 503 `registrar_busy`. */
  maxWaitMs?: number
  clock?: Clock
}

/** Slots held for the calls of one write round. */
export interface Hold {
  id: string
  priority: Priority
  slots: number
  /** By the monotonic clock; its slots may be gone then. */
  expiresAt: number
}

type Request = Pick<WaitingCall, 'priority' | 'calls' | 'caller'> & { maxWaitMs: number }

/** How a call that waits ends. */
export type Grant = Pick<PromiseWithResolvers<void>, 'resolve' | 'reject'>

// A round under way cannot be refused without harm: it waits until the calls of a whole minute have become free.
const followUpWaitMs = 61_000

/**
 * The calls that the registrar allows, in sliding windows, kept across restarts. Calls get slots by priority; callers take
 * turns. As soon as no slot can come free within the wait: 503 `registrar_busy` with Retry-After.
 */
export abstract class CallQuota {
  protected readonly queue = new WaitingCalls()
  protected readonly limits: CallLimit[]
  protected readonly clock: Clock
  protected windows: CallWindows
  /** No call is made before this time: the registrar reported too many, whatever we counted. */
  protected blockedUntil = 0
  readonly #maxWaitMs: number
  readonly #places: KeptPlaces

  constructor({ limits, maxWaitMs = 10_000, clock = systemClock }: QuotaOptions) {
    this.limits = limits
    this.clock = clock
    this.windows = new CallWindows(limits)
    this.#maxWaitMs = maxWaitMs
    this.#places = new KeptPlaces({ clock, now: () => this.now(), serve: () => this.serve() })
  }

  /** Whether every counted call is stored; false while the storage fails. */
  abstract get isStored(): boolean
  /** The registrar reported too many calls: no call for so long. */
  abstract pause(milliseconds: number): void
  /** The time by which slots come free. */
  protected abstract now(): number
  /** Looks for free slots. */
  protected abstract serve(): void
  // The following are called while waiting calls are served: what is taken counts once `settle` resolves its grant.
  protected abstract count(priority: Priority): void
  protected abstract hold(hold: Hold): void
  /** One of the held slots becomes a call. */
  protected abstract useHeld(hold: Hold): void
  protected abstract settle(grant: Grant): void
  protected abstract release(hold: Hold, unused: number): void

  /** Resolves when one call may be made; the call is counted then. */
  take(priority: Priority): Promise<void> {
    const request = { priority, calls: 1, maxWaitMs: this.#waitOf(priority) }
    return this.#wait(request, () => this.count(priority)).granted
  }

  /**
   * Resolves when so many slots are free at once, and holds them until they are used or released. A window smaller than
   * that gives all it has.
   */
  async reserve(
    calls: number,
    { priority = 'write', maxWaitMs = this.#waitOf(priority), callers = [] }: ReserveOptions = {},
  ): Promise<Reservation> {
    const [caller] = callers
    if (caller === undefined) {
      const { granted, reservation } = this.#open({ priority, calls, maxWaitMs })
      await granted
      return reservation
    }
    const open = () => this.#open({ priority, calls, maxWaitMs: Infinity, caller })
    return this.#places.reserve(callers, maxWaitMs, open)
  }

  /** How long so many calls take that are made one by one as slots come free; an upper estimate. */
  waitMs(priority: Priority, calls: number): number {
    const now = this.now()
    return Math.max(0, this.blockedUntil - now, this.windows.lastOf(priority, calls, now) - now)
  }

  state(): WindowState[] {
    return this.windows.state(this.now())
  }

  hours(): HourOfCalls[] {
    return this.windows.hours(this.now())
  }

  /** Whether less than half of the readers' share of the shortest window is left. */
  get readsAreScarce(): boolean {
    return this.windows.readsAreScarce(this.now())
  }

  /** Calls and reservations that wait for slots. */
  get waiting(): number {
    return this.queue.size
  }

  /** Refuses everything that waits. */
  close() {
    this.#places.close()
    this.queue.clear(registrarUnavailable(5))
  }

  #waitOf(priority: Priority): number {
    if (['queued', 'background', 'sweep'].includes(priority)) return Number.POSITIVE_INFINITY
    return priority === 'follow-up' ? followUpWaitMs : this.#maxWaitMs
  }

  #open(request: Request): OpenedReservation {
    const { priority } = request
    const slots = Math.min(request.calls, this.windows.most(priority))
    const hold = { id: randomUUID(), priority, slots, expiresAt: Number.POSITIVE_INFINITY }
    const waiting = this.#wait({ ...request, calls: slots }, () => this.hold(hold))
    const followUp = () => this.take('follow-up')
    // A held slot waits only while the registrar wants no calls at all.
    const held = { priority: 'follow-up', calls: 0, maxWaitMs: followUpWaitMs } as const
    const reservation = new Reservation(slots, {
      use: () =>
        performance.now() < hold.expiresAt
          ? this.#wait(held, () => this.useHeld(hold)).granted
          : followUp(),
      followUp,
      release: (unused) => {
        this.release(hold, unused)
        this.serve()
      },
    })
    return { ...waiting, reservation }
  }

  #wait({ maxWaitMs, ...request }: Request, take: () => void) {
    const { promise: granted, resolve, reject } = Promise.withResolvers<void>()
    const call: WaitingCall = {
      ...request,
      deadline: this.now() + maxWaitMs,
      grant: () => {
        take()
        this.settle({ resolve, reject })
      },
      refuse: reject,
    }
    this.queue.add(call)
    this.serve()
    return { call, granted }
  }
}
