import type { Priority, WindowState } from './call-windows.ts'
import type { Reservation } from './reservation.ts'

export type { Priority, WindowState }

export interface ReserveOptions {
  priority?: Priority
  /** Infinity: waits however long. */
  maxWaitMs?: number
}

/**
 * The calls that the registrar allows, in sliding windows, kept across restarts. Calls get slots by priority, then first
 * come, first served. As soon as no slot can come free within the wait: 503 `registrar_busy` with Retry-After.
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
  if (priority === 'queued' || priority === 'background') return Number.POSITIVE_INFINITY
  return priority === 'follow-up' ? followUpWaitMs : maxWaitMs
}
