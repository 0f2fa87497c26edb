import type { Priority, StoredCall } from './call-windows.ts'

/** The call budget of one registrar account, as a process reads it. Times are by the budget's clock. */
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
  /** By the monotonic clock; afterwards other processes may have taken its slots. */
  expiresAt: number
}

/** What a process takes from the budget in one turn. */
export interface BudgetChanges {
  calls: Priority[]
  holds: Hold[]
  /** Ids of holds, one entry for each slot that became a call. */
  used: string[]
  /** New slots that this process still waits for. */
  waiting: ReadonlyMap<Priority, number>
}

/** What a process has counted: calls up to `id`. Calls older than `keepMs` count in no window. */
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
  /** The state outside a turn: other processes may change it at any time. */
  read(since: Since): Promise<BudgetState>
  /**
   * One turn: releases holds, reads the state, and stores what `take` decides. No process makes a call for `pauseMs`.
   * @returns the id of the last call counted so far.
   */
  turn(
    given: { released: string[]; pauseMs: number },
    since: Since,
    take: (state: BudgetState) => BudgetChanges,
  ): Promise<number>
}

/** A hold expires this long after it was made or last used: its process may have died. */
export const holdMs = 120_000
