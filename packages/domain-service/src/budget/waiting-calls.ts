import { registrarBusy } from '../errors.ts'
import { type CallWindows, type Priority, priorities } from './call-windows.ts'

export interface WaitingCall {
  priority: Priority
  /** New slots; 0 for a call whose slot is held already. */
  calls: number
  deadline: number
  /** Takes the slots, in the same turn in which they were found free. */
  grant: () => void
  refuse: (error: Error) => void
}

interface Turn {
  windows: CallWindows
  now: number
  /** No call is granted before this time. */
  blockedUntil: number
  /** New slots that other processes wait for, by priority: those of a better priority go first. */
  others?: ReadonlyMap<Priority, number>
}

/** Calls and reservations that wait for slots, by priority, then first come, first served. */
export class WaitingCalls {
  #waiting: WaitingCall[] = []

  get size(): number {
    return this.#waiting.length
  }

  /** New slots that are waited for, by priority. */
  get slots(): Map<Priority, number> {
    const slots = new Map<Priority, number>()
    for (const { priority, calls } of this.#waiting) increase(slots, priority, calls)
    return slots
  }

  add(call: WaitingCall) {
    const isBehind = (each: WaitingCall) => rank(each) > rank(call)
    const place = this.#waiting.findIndex(isBehind)
    this.#waiting.splice(place < 0 ? this.#waiting.length : place, 0, call)
  }

  /**
   * Grants in order until a call finds no room; refuses all those that cannot be granted in time.
   * @returns when to try again; Infinity if nothing waits.
   */
  serve({ windows, now, blockedUntil, others = new Map() }: Turn): number {
    const ahead = new Map<Priority, number>()
    const waiting: WaitingCall[] = []
    let wakeAt = Number.POSITIVE_INFINITY
    for (const call of this.#waiting) {
      const request = { ...call, ahead: withBetter(ahead, others, call) }
      const freeAt = Math.max(blockedUntil, windows.earliest(request, now))
      if (waiting.length === 0 && freeAt <= now) {
        call.grant()
        continue
      }
      // Held slots may be given back unused, so a call is refused early only where even that would not help.
      const best = Math.max(blockedUntil, windows.earliest(request, now, true))
      if (call.deadline <= now || best > call.deadline) {
        call.refuse(registrarBusy(Math.max(1, Math.ceil((freeAt - now) / 1000))))
        continue
      }
      if (waiting.length === 0) wakeAt = freeAt
      wakeAt = Math.min(wakeAt, call.deadline)
      waiting.push(call)
      increase(ahead, call.priority, call.calls)
    }
    this.#waiting = waiting
    return wakeAt
  }

  /** Refuses all. */
  clear(error: Error) {
    const waiting = this.#waiting
    this.#waiting = []
    for (const call of waiting) call.refuse(error)
  }
}

// A call whose slot is held waits for nobody.
const rank = ({ calls, priority }: WaitingCall) => (calls === 0 ? -1 : priorities.indexOf(priority))

function withBetter(
  ahead: Map<Priority, number>,
  others: ReadonlyMap<Priority, number>,
  call: WaitingCall,
): Map<Priority, number> {
  if (others.size === 0) return ahead
  const all = new Map(ahead)
  for (const [priority, calls] of others)
    if (priorities.indexOf(priority) < rank(call)) increase(all, priority, calls)
  return all
}

const increase = (slots: Map<Priority, number>, priority: Priority, calls: number) =>
  slots.set(priority, (slots.get(priority) ?? 0) + calls)
