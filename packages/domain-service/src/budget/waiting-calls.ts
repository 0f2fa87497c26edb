import { registrarBusy } from '../errors.ts'
import type { Slots } from './call-budget.ts'
import { type CallWindows, marginMs, type Priority, priorities } from './call-windows.ts'

export interface WaitingCall {
  priority: Priority
  /** New slots that the call needs; 0 if its slot is already held. */
  slots: number
  /** Key of fair queueing within a priority. A refused call with a caller keeps its place until `absentUntil`. */
  caller?: string | undefined
  deadline: number
  /** The caller got 503 and may retry: until this time the call stays in the queue and can get its slots. */
  absentUntil?: number | undefined
  /** Takes the slots, in the same turn in which they were found free. */
  take: () => void
  /** Called once that turn is stored. */
  resolve: () => void
  refuse: (error: unknown) => void
}

/** How long after its Retry-After the place and the slots of an absent caller are kept. */
const graceMs = 10_000

interface Turn {
  windows: CallWindows
  now: number
  /** No call is granted before this time. */
  blockedUntil: number
  /** New slots that other processes wait for: those of a higher priority go first. */
  waiters: readonly Slots[]
}

/**
 * Queue of calls and reservations that wait for slots, by priority. Within a priority: start-time fair queueing, so a
 * caller's second call comes after the first call of every other waiting caller.
 */
export class WaitingCalls {
  /** In the order in which they get their slots. */
  waiting: (WaitingCall & { turn: number })[] = []
  /** Virtual time of the fair queue: the latest turn granted. */
  #turn = 0
  /** The last turn of each caller, unless the virtual time has passed it. */
  readonly #turns = new Map<string, number>()

  add(call: WaitingCall) {
    const { caller } = call
    const last = caller === undefined ? -1 : (this.#turns.get(caller) ?? -1)
    const turn = Math.max(this.#turn, last + 1)
    if (caller !== undefined) this.#turns.set(caller, turn)
    const isBehind = (each: WaitingCall & { turn: number }) =>
      rank(each) > rank(call) || (rank(each) === rank(call) && each.turn > turn)
    const place = this.waiting.findIndex(isBehind)
    // The same object: its owner changes the deadline.
    this.waiting.splice(place < 0 ? this.waiting.length : place, 0, Object.assign(call, { turn }))
  }

  #grant(call: WaitingCall & { turn: number }): WaitingCall {
    this.#turn = Math.max(this.#turn, call.turn)
    for (const [caller, turn] of this.#turns) if (turn < this.#turn) this.#turns.delete(caller)
    call.take()
    return call
  }

  /**
   * Grants in order until a call finds no room; refuses all those that cannot be granted in time.
   * @returns the granted calls, and when to try again: Infinity if nothing waits.
   */
  serve({ windows, now, blockedUntil, waiters }: Turn) {
    const granted: WaitingCall[] = []
    const ahead = new Map<Priority, number>()
    const waiting: (WaitingCall & { turn: number })[] = []
    let wakeAt = Number.POSITIVE_INFINITY
    for (const call of this.waiting) {
      if (call.absentUntil !== undefined && call.absentUntil <= now) {
        call.refuse(registrarBusy(1))
        continue
      }
      const { priority, slots } = call
      const request = { priority, calls: slots, ahead: withBetter(ahead, waiters, call) }
      const freeAt = Math.max(blockedUntil, windows.earliest(request, now))
      if (waiting.length === 0 && freeAt <= now) {
        granted.push(this.#grant(call))
        continue
      }
      // Held slots may be given back unused, so a call is refused early only where even that would not help.
      const best = Math.max(blockedUntil, windows.earliest(request, now, true))
      const isLate = call.deadline <= now || best > call.deadline
      if (call.absentUntil === undefined && isLate) {
        // Retry-After leaves out the margin: a caller that returns waits that long in the queue.
        const retryAfter = Math.max(1, Math.ceil((freeAt - marginMs - now) / 1000))
        call.refuse(registrarBusy(retryAfter))
        if (call.caller === undefined) continue
        call.absentUntil = now + retryAfter * 1000 + graceMs
      }
      if (waiting.length === 0) wakeAt = freeAt
      wakeAt = Math.min(wakeAt, call.absentUntil ?? call.deadline)
      waiting.push(call)
      increase(ahead, priority, slots)
    }
    this.waiting = waiting
    return { granted, wakeAt }
  }

  /** Refuses all. */
  clear(error: unknown) {
    const waiting = this.waiting
    this.waiting = []
    for (const call of waiting) call.refuse(error)
  }
}

// A call whose slot is already held goes first.
const rank = ({ slots, priority }: WaitingCall) => (slots === 0 ? -1 : priorities.indexOf(priority))

function withBetter(
  ahead: Map<Priority, number>,
  waiters: Turn['waiters'],
  call: WaitingCall,
): Map<Priority, number> {
  if (waiters.length === 0) return ahead
  const all = new Map(ahead)
  for (const { priority, slots } of waiters)
    if (priorities.indexOf(priority) < rank(call)) increase(all, priority, slots)
  return all
}

const increase = (slots: Map<Priority, number>, priority: Priority, calls: number) =>
  slots.set(priority, (slots.get(priority) ?? 0) + calls)

/** What a reservation needs of its quota. */
interface Quota {
  /** Holds the slots, in the turn under way. */
  hold(reservation: Reservation): void
  /** Counts one held slot as a call made now; without any, takes one before everything else. */
  take(reservation: Reservation): Promise<void>
  release(reservation: Reservation): void
}

interface Wanted {
  priority: Priority
  slots: number
  callers: readonly string[]
}

/**
 * Slots for the calls of one batch: first queued, then held. After a 503 it keeps its place in the queue, or its slots,
 * until `absentUntil`: the first of its callers that retries takes it over.
 */
export class Reservation implements WaitingCall, Disposable {
  readonly priority: Priority
  readonly caller: string | undefined
  readonly #callers: readonly string[]
  readonly #quota: Quota
  /** Slots that no call has used yet. */
  slots: number
  deadline = 0
  absentUntil: number | undefined
  #client = Promise.withResolvers<void>()

  constructor({ priority, slots, callers }: Wanted, quota: Quota) {
    this.priority = priority
    this.slots = slots
    this.#callers = callers
    this.caller = callers[0]
    this.#quota = quota
  }

  /** Whether it waits for one of these callers to come back. */
  isKeptFor(callers: readonly string[]): boolean {
    return this.absentUntil !== undefined && callers.some((each) => this.#callers.includes(each))
  }

  /** Resolves once it holds its slots. @throws 503 `registrar_busy` as soon as none can come free by the deadline. */
  enter(deadline: number): Promise<void> {
    this.deadline = deadline
    this.absentUntil = undefined
    this.#client = Promise.withResolvers()
    return this.#client.promise
  }

  take() {
    this.#quota.hold(this)
  }

  resolve() {
    this.#client.resolve()
  }

  refuse(error: unknown) {
    this.absentUntil = undefined
    this.#client.reject(error)
  }

  /**
   * Resolves when the batch's next call may be made, which is then counted. A call beyond the reserved ones goes before
   * everything else.
   * @throws 503 `registrar_busy` where a call beyond them finds no slot.
   */
  use(): Promise<void> {
    return this.#quota.take(this)
  }

  /** Gives the unused slots back. Releasing twice does nothing; later calls are follow-ups. */
  release() {
    this.absentUntil = undefined
    this.slots = 0
    this.#quota.release(this)
  }

  [Symbol.dispose]() {
    this.release()
  }
}
