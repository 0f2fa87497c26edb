import type { Priority, WindowState } from './call-windows.ts'

export type { Priority, WindowState }

export interface ReserveOptions {
  priority?: Priority
  /** Infinity: waits however long. */
  maxWaitMs?: number
  /** Who waits for a write: callers take turns, and keep their place where they are told to come back. */
  callers?: readonly string[]
}

/**
 * The calls that the registrar allows, in sliding windows, kept across restarts. Calls get slots by priority; callers take
 * turns. As soon as no slot can come free within the wait: 503 `registrar_busy` with Retry-After.
 */
export interface CallQuota {
  /** Resolves when one call may be made; the call is counted then. */
  take(priority: Priority): Promise<void>
  /**
   * Resolves when so many slots are free at once, and holds them until they are used or released. A window smaller than
   * that gives all it has.
   */
  reserve(calls: number, options?: ReserveOptions): Promise<Reservation>
  /** The registrar reported too many calls, whatever we counted: no call for so long. */
  pause(milliseconds: number): void
  /** How long so many calls take that are made one by one as slots come free; an upper estimate. */
  waitMs(priority: Priority, calls: number): number
  state(): WindowState[]
  /** Whether less than half of the readers' share of the shortest window is left. */
  readonly readsAreScarce: boolean
  /** Whether every counted call is stored; false while the storage fails. */
  readonly isStored: boolean
  /** Calls and reservations that wait for slots. */
  readonly waiting: number
  /** Refuses everything that waits. */
  close(): void
}

// A round under way cannot be refused without harm: it waits until the calls of a whole minute have become free.
export const followUpWaitMs = 61_000

/** How long a call of this priority waits, unless its caller says otherwise. */
export function waitOf(priority: Priority, maxWaitMs: number): number {
  if (['queued', 'background', 'sweep'].includes(priority)) return Number.POSITIVE_INFINITY
  return priority === 'follow-up' ? followUpWaitMs : maxWaitMs
}

/** What a reservation asks of its quota. */
interface Slots {
  /** Counts one held slot as a call made now. */
  use: () => Promise<void>
  /** Takes a slot that was not reserved, before everything else. */
  followUp: () => Promise<void>
  release: (unused: number) => void
}

/** Slots held for the calls of one write round. */
export class Reservation {
  readonly #slots: Slots
  #unused: number
  #isReleased = false

  constructor(calls: number, slots: Slots) {
    this.#slots = slots
    this.#unused = calls
  }

  /** Slots that no call has used yet. */
  get unused(): number {
    return this.#unused
  }

  /**
   * Resolves when the round's next call may be made, which is then counted. A call beyond the reserved ones goes before
   * everything else.
   * @throws 503 `registrar_busy` where a call beyond them finds no slot.
   */
  async use(): Promise<void> {
    if (this.#unused === 0) return this.#slots.followUp()
    this.#unused--
    await this.#slots.use()
  }

  /** Gives the unused slots back. Releasing twice does nothing; later calls are follow-ups. */
  release() {
    if (this.#isReleased) return
    this.#isReleased = true
    const unused = this.#unused
    this.#unused = 0
    if (unused > 0) this.#slots.release(unused)
  }

  [Symbol.dispose]() {
    this.release()
  }
}
