import { registrarBusy } from '../errors.ts'
import type { BudgetState } from './call-budget.ts'
import {
  type CallWindows,
  marginMs,
  type Priority,
  priorities,
  SlotCounts,
} from './call-windows.ts'

/** How long after its Retry-After the place and the slots of an absent caller are kept. */
const graceMs = 10_000
/** Maximum places in the queue that are kept for absent callers; beyond it the first to expire is given up. */
const maxPlaces = 500

/**
 * Slots for calls: first queued, then taken; those of a batch are held until it uses or releases them. After a 503 a
 * reservation with callers keeps its place in the queue, or its slots, until `absentUntil`: the first of them that
 * retries takes it over.
 */
export interface Reservation {
  readonly priority: Priority
  /** Slots to take, or held and not used yet; 0 for a call whose slot is held already. */
  slots: number
  /** The first is the key of fair queueing within a priority. */
  readonly callers: readonly string[]
  /** A single call, made as soon as it has its slot, which is one of `held` if it is present. */
  readonly call?: { held?: Reservation | undefined }
  /** Its place in the fair queue. */
  turn: number
  deadline: number
  absentUntil?: number | undefined
  client: PromiseWithResolvers<void>
}

/**
 * Queue of calls and reservations that wait for slots, by priority. Within a priority: start-time fair queueing, so a
 * caller's second call comes after the first call of every other waiting caller.
 */
export class WaitingCalls {
  /** In the order in which they get their slots. */
  waiting: Reservation[] = []
  /** Virtual time of the fair queue: the latest turn granted. */
  #turn = 0
  /** The last turn of each caller, unless the virtual time has passed it. */
  readonly #turns = new Map<string, number>()

  add(call: Reservation) {
    const [caller] = call.callers
    const last = caller === undefined ? -1 : (this.#turns.get(caller) ?? -1)
    call.turn = Math.max(this.#turn, last + 1)
    if (caller !== undefined) this.#turns.set(caller, call.turn)
    const isBehind = (each: Reservation) =>
      rank(each) > rank(call) || (rank(each) === rank(call) && each.turn > call.turn)
    const place = this.waiting.findIndex(isBehind)
    this.waiting.splice(place < 0 ? this.waiting.length : place, 0, call)
  }

  /**
   * Grants in order until a call finds no room; refuses all those that cannot be granted in time.
   * @returns the granted calls, and when to try again: Infinity if nothing waits.
   */
  serve(
    { now, blockedUntil, waiters }: BudgetState,
    windows: CallWindows,
    grant: (call: Reservation) => void,
  ) {
    const granted: Reservation[] = []
    const ahead = new SlotCounts()
    const waiting: Reservation[] = []
    let wakeAt = Number.POSITIVE_INFINITY
    for (const call of this.waiting) {
      if (call.absentUntil !== undefined && call.absentUntil <= now) continue
      const before = new SlotCounts(ahead)
      for (const each of waiters)
        if (priorities.indexOf(each.priority) < rank(call)) before.add(each)
      const freeAt = Math.max(blockedUntil, windows.earliest(call, before, now))
      if (waiting.length === 0 && freeAt <= now) {
        this.#turn = Math.max(this.#turn, call.turn)
        for (const [caller, turn] of this.#turns) if (turn < this.#turn) this.#turns.delete(caller)
        grant(call)
        granted.push(call)
        continue
      }
      // Held slots may be given back unused, so a call is refused early only where even that would not help.
      const best = Math.max(blockedUntil, windows.earliest(call, before, now, true))
      if (call.absentUntil === undefined && (call.deadline <= now || best > call.deadline)) {
        // Retry-After leaves out the margin: a caller that returns waits that long in the queue.
        const retryAfter = Math.max(1, Math.ceil((freeAt - marginMs - now) / 1000))
        call.client.reject(registrarBusy(retryAfter))
        if (call.callers.length === 0) continue
        call.absentUntil = now + retryAfter * 1000 + graceMs
      }
      if (waiting.length === 0) wakeAt = freeAt
      wakeAt = Math.min(wakeAt, call.absentUntil ?? call.deadline)
      waiting.push(call)
      ahead.add(call)
    }
    const places = waiting.filter(({ absentUntil }) => absentUntil !== undefined)
    places.sort((one, other) => (one.absentUntil ?? 0) - (other.absentUntil ?? 0))
    const givenUp = new Set(places.slice(0, -maxPlaces))
    this.waiting = waiting.filter((each) => !givenUp.has(each))
    return { granted, wakeAt }
  }

  /** Refuses all. */
  clear(error: unknown) {
    for (const { client } of this.waiting.splice(0)) client.reject(error)
  }
}

// A call whose slot is already held goes first.
const rank = ({ slots, priority }: Reservation) => (slots === 0 ? -1 : priorities.indexOf(priority))
