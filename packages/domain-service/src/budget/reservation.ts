import { type Priority, priorities, type Slots } from './call-windows.ts'

/**
 * Slots for calls: first queued, then taken; those of a batch are held until it uses or releases them. After a 503 a
 * reservation with callers keeps its place in the queue, or its slots, until `absentUntil`: the first of them that
 * retries takes it over.
 */
export interface Reservation extends Slots {
  /** Authors of the write. The first is the key of fair queueing within a priority. */
  readonly callers: readonly string[]
  /** A single call, made as soon as it has its slot, which is one of `held` if it is present. */
  readonly call?: { held: Reservation | undefined }
  /** Its place in the fair queue. */
  turn: number
  deadline: number
  absentUntil?: number | undefined
  client: PromiseWithResolvers<void>
}

/** Where a call gets its slot: the reservation of its batch, or the queue of all calls. */
export type CallSlot = Priority | Reservation

export interface ReserveOptions {
  priority?: Priority
  /** Default: as long as calls of this priority wait. Infinity: waits without a deadline. */
  maxWaitMs?: number
  callers?: readonly string[]
}

/** The order of priorities; a call whose slot is already held goes first. */
export const rank = ({ slots, priority }: Slots) => (slots === 0 ? -1 : priorities.indexOf(priority))

/** How long calls wait for slots; by default ten seconds. */
export const maxWaits: Partial<Record<Priority, number>> = {
  // Refusing the next call of a batch under way does harm: it waits until a whole minute's window has become free.
  'follow-up': 61_000,
  queued: Infinity,
  background: Infinity,
  sweep: Infinity,
}
