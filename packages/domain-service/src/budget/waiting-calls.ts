import { registrarBusy } from '../errors.ts'
import type { Slots } from './call-budget.ts'
import { type CallWindows, marginMs, type Priority, priorities } from './call-windows.ts'

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
  waiting: Reservation[] = []
  /** Virtual time of the fair queue: the latest turn granted. */
  #turn = 0
  /** The last turn of each caller, unless the virtual time has passed it. */
  readonly #turns = new Map<string, number>()

  add(call: Reservation) {
    const { caller } = call
    const last = caller === undefined ? -1 : (this.#turns.get(caller) ?? -1)
    call.turn = Math.max(this.#turn, last + 1)
    if (caller !== undefined) this.#turns.set(caller, call.turn)
    const isBehind = (each: Reservation) =>
      rank(each) > rank(call) || (rank(each) === rank(call) && each.turn > call.turn)
    const place = this.waiting.findIndex(isBehind)
    this.waiting.splice(place < 0 ? this.waiting.length : place, 0, call)
  }

  #grant(call: Reservation): Reservation {
    this.#turn = Math.max(this.#turn, call.turn)
    for (const [caller, turn] of this.#turns) if (turn < this.#turn) this.#turns.delete(caller)
    call.take(call)
    return call
  }

  /**
   * Grants in order until a call finds no room; refuses all those that cannot be granted in time.
   * @returns the granted calls, and when to try again: Infinity if nothing waits.
   */
  serve({ windows, now, blockedUntil, waiters }: Turn) {
    const granted: Reservation[] = []
    const ahead = new Map<Priority, number>()
    const waiting: Reservation[] = []
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
const rank = ({ slots, priority }: Reservation) => (slots === 0 ? -1 : priorities.indexOf(priority))

function withBetter(
  ahead: Map<Priority, number>,
  waiters: Turn['waiters'],
  call: Reservation,
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
  /** Counts one held slot as a call made now; without any, takes one before everything else. */
  take(reservation: Reservation): Promise<void>
  release(reservation: Reservation): void
}

interface Wanted {
  priority: Priority
  slots: number
  callers?: readonly string[]
  take: (reservation: Reservation) => void
}

/**
 * Slots for calls: first queued, then taken; those of a batch are held until it uses them. After a 503 a reservation with
 * callers keeps its place in the queue, or its slots, until `absentUntil`: the first of them that retries takes it over.
 */
export class Reservation implements Disposable {
  readonly priority: Priority
  /** Key of fair queueing within a priority. */
  readonly caller: string | undefined
  /** Takes the slots, in the same turn in which they were found free. */
  readonly take: (reservation: Reservation) => void
  readonly #callers: readonly string[]
  readonly #quota: Quota
  /** Slots to take, or held and not used yet; 0 for a call whose slot is held already. */
  slots: number
  /** Its place in the fair queue. */
  turn = 0
  deadline = 0
  absentUntil: number | undefined
  #client = Promise.withResolvers<void>()

  constructor({ priority, slots, callers = [], take }: Wanted, quota: Quota) {
    this.priority = priority
    this.slots = slots
    this.take = take
    this.#callers = callers
    this.caller = callers[0]
    this.#quota = quota
  }

  /** Whether it waits for one of these callers to come back. */
  isKeptFor(callers: readonly string[]): boolean {
    return this.absentUntil !== undefined && callers.some((each) => this.#callers.includes(each))
  }

  /** Resolves once it has its slots. @throws 503 `registrar_busy` as soon as none can come free by the deadline. */
  enter(deadline: number): Promise<void> {
    this.deadline = deadline
    this.absentUntil = undefined
    this.#client = Promise.withResolvers()
    return this.#client.promise
  }

  /** Called once the turn that took the slots is stored. */
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
