import type { Priority, StoredCall } from './call-windows.ts'

/** The budget of one registrar account, as a process reads it. Times are the budget's. */
export interface BudgetState {
  now: number
  blockedUntil: number
  /** Calls that this process has not counted yet, oldest first. */
  calls: (StoredCall & { id: number })[]
  /** Slots held for calls to come, of all processes. */
  holds: { priority: Priority; slots: number }[]
  /** New slots that other processes wait for. */
  waiters: { priority: Priority; calls: number }[]
}

/** Slots held for the calls of one write round. */
export interface Hold {
  id: string
  priority: Priority
  slots: number
  /** By the monotonic clock; its slots may be gone then. */
  expiresAt: number
}

/** What a process takes from the budget in one turn. */
export interface BudgetChanges {
  calls: Priority[]
  holds: Hold[]
  /** Holds of which one slot has become a call. */
  used: string[]
  /** New slots that this process still waits for. */
  waiting: ReadonlyMap<Priority, number>
}

/** What a process knows: calls up to this id, those that a window may count. */
export interface Since {
  id: number
  keepMs: number
}

/** Where the calls of one registrar account are counted, and slots for further ones held. */
export interface CallBudget {
  /** Whether other processes take from it, too. */
  readonly isShared: boolean
  /** Whether every counted call is stored; false while the storage fails. */
  readonly isStored: boolean
  /** The state without a turn: others may take from it at any time. */
  read(since: Since): Promise<BudgetState>
  /**
   * One turn: gives back holds, reads the state, and takes what `take` decides. Nobody makes calls for the next `pauseMs`.
   * @returns the id of the last call counted so far.
   */
  turn(
    given: { released: string[]; pauseMs: number },
    since: Since,
    take: (state: BudgetState) => BudgetChanges,
  ): Promise<number>
}

/** How long a hold of a process that may have died lasts, unless its slots are used. */
export const holdMs = 120_000
