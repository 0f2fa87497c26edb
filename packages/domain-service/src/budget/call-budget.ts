import { marginMs, type Priority, type Slots, windowMs } from './call-windows.ts'

/** When a call was made, in milliseconds since 1970, and with which priority. */
export interface StoredCall {
  at: number
  priority: string
}

/** What a process keeps for a caller that it has refused, until `absentUntil`: a place in its queue, or slots. */
export interface KeptPlace extends Slots {
  readonly id: string
  /** Authors of the writes, or readers; it is kept for each. The first names the flow of fair queueing within a priority. */
  callers: readonly string[]
  /** Of the writes: those that are refused after others of their domain share their place, to be one batch. */
  readonly domain?: string | undefined
  absentUntil?: number | undefined
  /** The time that the absent caller was told. */
  toldFor?: number
  /** It holds its slots, or is the first place of its flow: then it gets them by `toldFor`. */
  isCertain?: boolean
}

/** What a process tells of a place that another one keeps: these callers share it, too; without callers it is taken over. */
export type Claim = Pick<KeptPlace, 'id'> & Partial<Pick<KeptPlace, 'callers'>>

/** The call budget of one registrar account, as a process reads it. Times are by the budget's clock. */
export interface BudgetState {
  now: number
  blockedUntil: number
  /** Calls that this process has not counted yet, oldest first; after a failure all of them. */
  calls: (StoredCall & { id?: number })[]
  /** Slots that other processes hold for calls to come. */
  holds: Slots[]
  /** New slots that other processes wait for. */
  waiters: Slots[]
  /** Places that other processes keep. `isHeld`: its slots are among `holds`. */
  places: (KeptPlace & { isHeld: boolean })[]
  /** Those of other processes. */
  claims: Claim[]
}

/** The calls that a process makes in one turn, the slots that it holds and waits for, and its claims. */
export interface BudgetShare {
  calls: Priority[]
  held: Iterable<Slots & Partial<KeptPlace>>
  waiting: Iterable<Slots & Partial<KeptPlace>>
  claims: Claim[]
}

/** Where the calls of one registrar account are counted. */
export interface CallBudget {
  /** Other processes take from it, too. */
  readonly isShared: boolean
  /** The state outside a turn: other processes may change it at any time. */
  read(): Promise<BudgetState>
  /** One turn: reads the state, and stores what `take` decides. No process makes a call for `pauseMs`. */
  turn(pauseMs: number, take: (state: BudgetState) => BudgetShare): Promise<void>
}

/** Calls older than this count in no window. */
export const keepMs = windowMs.day + marginMs

/** Held slots expire this long after their process has last stored them, as it does every second: it may have died. */
export const holdMs = 30_000
