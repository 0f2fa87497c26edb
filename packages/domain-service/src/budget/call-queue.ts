import { randomUUID } from 'node:crypto'
import { registrarBusy } from '../errors.ts'
import type { BudgetState, Claim, KeptPlace } from './call-budget.ts'
import { addSlots, type CallWindows, marginMs, type Priority, priorities, type Slots } from './call-windows.ts'

/**
 * Slots for calls: first queued, then taken; those of a batch are held until it uses or releases them. After a 503 a
 * reservation with callers keeps its place in the queue, or its slots, until `absentUntil`: the first of them that
 * retries takes it over.
 */
export interface Reservation extends KeptPlace {
  /** A single call, made once it has its slot. `held`: the reservation whose slot it uses, if any; `priority`: of the slot. */
  readonly call?: { priority: Priority; held: Reservation | undefined }
  /** Its place in the fair queue: lower ones go first. */
  readonly startTag: number
  deadline: number
  /** When its first caller last took over one of its places. */
  cameBackAt?: number
  client: PromiseWithResolvers<void>
}

export type Wanted = Pick<Reservation, 'priority' | 'slots' | 'callers' | 'domain' | 'call'>

/** How long after its Retry-After the place and the slots of an absent caller are kept. */
const graceMs = 10_000
/** A caller that took over a place within this time is not gone, although it did not take over another. */
const presentMs = 60_000

/** The order of priorities; a call whose slot is already held goes first, and a refused reader takes turns with writes. */
const rank = ({ slots, priority, absentUntil, cameBackAt }: Slots & Partial<Reservation>) =>
  slots === 0 ? -1 : priorities.indexOf(priority === 'read' && (absentUntil ?? cameBackAt) ? 'write' : priority)

/** The place that this caller may take over. Others who share one come when they were told to, and only for its domain. */
function placeFor<Place extends KeptPlace>(wanted: Wanted, places: Place[], now: number): Place | undefined {
  const { priority, callers, domain } = wanted
  const kept = places.filter((each) => each.priority === priority && callers.some((by) => each.callers.includes(by)))
  const isOwn = (place: Place) => place.callers.every((by) => callers.includes(by))
  const mayTake = (place: Place) => isOwn(place) || (place.toldFor ?? 0) - marginMs <= now
  return kept.find((place) => place.domain === domain && mayTake(place)) ?? kept.find(isOwn)
}

const union = (one: readonly string[], other: readonly string[]) => [...new Set([...one, ...other])]

const flowOf = ({ priority, callers }: Wanted) => `${priority} ${callers[0]}`

/**
 * The reservations of a process that wait for slots, and those that hold some. Slots go by priority, then by start-time
 * fair queueing: a caller's second call comes after the first call of every other waiting caller.
 */
export class CallQueue {
  readonly #windows: CallWindows
  /** In the order in which they get their slots. */
  waiting: Reservation[] = []
  readonly held = new Set<Reservation>()
  /** Places that a process which stops leaves to others. */
  left: Reservation[] = []
  /** Of places at other processes, until those processes give them up. */
  claims: Claim[] = []
  /** The places at other processes that nobody has taken over. */
  #open: BudgetState['places'] = []
  /** Those that have come since the last turn. */
  readonly #newcomers: Reservation[] = []
  /** Of the fair queue: the latest start tag granted. */
  #virtualTime = 0
  /** The next start tag of each flow, unless the virtual time has reached it. */
  readonly #nextTags = new Map<string, number>()

  constructor(windows: CallWindows) {
    this.#windows = windows
  }

  /** Enters the queue, or takes over the place or the slots that are kept for one of the callers. */
  enter(wanted: Wanted, { now, deadline }: { now: number; deadline: number }): Reservation {
    const wait = { client: Promise.withResolvers<void>(), deadline, absentUntil: undefined }
    const places = [...this.held, ...this.waiting].filter(({ absentUntil }) => absentUntil)
    const kept = placeFor(wanted, places, now)
    if (kept) {
      for (const each of this.#absent(kept)) each.cameBackAt = now
      if (this.held.has(kept)) wait.client.resolve()
      return Object.assign(kept, wait)
    }
    const flow = flowOf(wanted)
    // Behind each flow's first place, where its caller was told a time.
    const told = this.waiting.filter((each) => each.isCertain && (each.absentUntil ?? each.cameBackAt))
    const tags = told.flatMap(({ priority, startTag }) => (priority === wanted.priority ? startTag : []))
    const startTag = Math.max(this.#virtualTime, this.#nextTags.get(flow) ?? 0, ...tags)
    if (wanted.callers.length > 0) this.#nextTags.set(flow, startTag + 1)
    const reservation = { ...wanted, ...wait, id: randomUUID(), startTag }
    this.waiting.push(reservation)
    this.#newcomers.push(reservation)
    return reservation
  }

  /** A place of any process for writes of the same domain, whose callers were told a time that is still to come. */
  #placeToShare({ domain }: Wanted, now: number): KeptPlace | undefined {
    return [...this.held, ...this.waiting, ...this.#open].find(
      (each) => domain && each.domain === domain && each.absentUntil && each.isCertain && (each.toldFor ?? 0) > now,
    )
  }

  /** The reservations of this priority that are kept for the first of these callers, who is absent. */
  #absent({ priority, callers: [first = ''] }: Wanted): Reservation[] {
    return [...this.held, ...this.waiting].filter(
      (each) => each.absentUntil && each.priority === priority && each.callers.includes(first),
    )
  }

  /** Counts the calls and the slots of other processes; gives up the slots of callers that have not come back. */
  adopt(state: BudgetState) {
    const { now, calls, holds } = state
    for (const { priority, at } of calls) this.#windows.count(priority, at)
    for (const each of this.held) {
      if ((each.absentUntil ?? Infinity) > now) continue
      this.held.delete(each)
      if ((each.cameBackAt ?? 0) > now - presentMs) continue
      // The caller is gone: its further places that no other write shares must not keep slots, one window after another.
      for (const place of this.#absent(each)) if (!place.domain || place.callers.length === 1) place.absentUntil = now
      this.#nextTags.delete(flowOf(each))
    }
    this.#windows.held = [...holds, ...this.#takeOver(state), ...this.held]
  }

  /**
   * Gives up the places that other processes have taken over, takes over those that they keep for newcomers, and adds the
   * callers that share the others.
   * @returns the slots that are not held by others any more, negative.
   */
  #takeOver({ now, places, claims }: BudgetState): Slots[] {
    const ids = new Set(places.map(({ id }) => id))
    this.claims = this.claims.filter(({ id }) => ids.has(id))
    const all = [...claims, ...this.claims]
    const taken = new Set(all.flatMap(({ id, callers }) => (callers ? [] : id)))
    const isTaken = ({ id, absentUntil }: KeptPlace) => absentUntil !== undefined && taken.has(id)
    for (const each of this.held) if (isTaken(each)) this.held.delete(each)
    this.waiting = this.waiting.filter((each) => !isTaken(each))
    this.#open = places.filter((place) => !isTaken(place))
    const kept = Map.groupBy([...this.#open, ...this.held, ...this.waiting], ({ id }) => id)
    for (const { id, callers = [] } of all)
      for (const place of kept.get(id) ?? []) place.callers = union(place.callers, callers)
    return this.#newcomers.splice(0).flatMap((newcomer) => {
      const place = placeFor(newcomer, this.#open, now)
      if (!place) return []
      this.claims.push({ id: place.id })
      this.#open = this.#open.filter((each) => each !== place)
      newcomer.callers = union(newcomer.callers, place.callers)
      Object.assign(newcomer, { startTag: this.#virtualTime - 1, cameBackAt: now })
      return place.isHeld ? [{ priority: place.priority, slots: -place.slots }] : []
    })
  }

  /** Grants in order until a call finds no room; refuses all those that cannot be granted in time. */
  grantSlots(state: BudgetState) {
    const { now, blockedUntil, waiters } = state
    const granted: Reservation[] = []
    const waiting: Reservation[] = []
    let wakeAt = Infinity
    const ahead: Slots[] = []
    const flows = new Set<string>()
    // A caller that is not expected yet leaves its slots to those who wait for other processes.
    const isEarly = (each: Reservation) => waiters.length > 0 && each.absentUntil && (each.toldFor ?? 0) > now
    this.waiting.sort((one, other) => rank(one) - rank(other) || one.startTag - other.startTag)
    for (const call of this.waiting) {
      if ((call.absentUntil ?? Infinity) <= now) continue
      // Of those that wait in other processes, a higher priority goes first, and the same one may.
      const first = [...ahead, ...waiters.filter((each) => rank(each) < rank(call))]
      // Readers wait for their share, or for the whole window: what is left of that serves writes.
      const isWrite = call.priority === 'write' || call.priority === 'queued'
      const before = first.filter(({ priority }) => !(isWrite && priority === 'read'))
      const isNext = waiting.every((each) => (isWrite && each.priority === 'read') || isEarly(each))
      const freeAt = Math.max(blockedUntil, this.#windows.earliest(call, now, { ahead: before }))
      if (isNext && freeAt <= now && !isEarly(call)) {
        this.#grant(call, now)
        granted.push(call)
        continue
      }
      // Held slots may be given back unused, so a call is refused early only where even that would not help.
      const best = this.#windows.earliest(call, now, { ahead: before, held: [] })
      const isLate = call.deadline <= now || Math.max(blockedUntil, best) > call.deadline
      if (call.absentUntil === undefined && isLate) {
        const equal = waiters.filter((each) => rank(each) === rank(call))
        if (!this.#refuse(call, state, [...first, ...equal])) continue
      }
      wakeAt = Math.min(wakeAt, call.absentUntil ?? call.deadline, isNext && !isEarly(call) ? freeAt : Infinity)
      call.isCertain = !flows.has(flowOf(call))
      flows.add(flowOf(call))
      waiting.push(call)
      addSlots(ahead, call)
    }
    this.waiting = waiting
    for (const { absentUntil = Infinity } of this.held) wakeAt = Math.min(wakeAt, absentUntil)
    return { granted, wakeAt }
  }

  /**
   * Tells the caller of a reservation when to come back: when its slots come free after those `ahead`, or as it was told to
   * the caller whose place it shares. @returns whether the reservation keeps its own place.
   */
  #refuse(call: Reservation, { now, blockedUntil }: BudgetState, ahead: Slots[]): boolean {
    const shared = this.#placeToShare(call, now)
    const behindAll = { ahead, groupSize: call.slots }
    const toldFor = Math.max(blockedUntil, shared?.toldFor ?? this.#windows.earliest(call, now, behindAll))
    // Retry-After leaves out the margin: a caller that returns waits that long in the queue.
    const retryAfter = Math.max(1, Math.ceil((toldFor - marginMs - now) / 1000))
    call.client.reject(registrarBusy(retryAfter))
    if (shared) {
      shared.callers = union(shared.callers, call.callers)
      this.claims = [...this.claims.filter(({ id }) => id !== shared.id), { id: shared.id, callers: shared.callers }]
    }
    if (shared || call.callers.length === 0) return false
    Object.assign(call, { toldFor, absentUntil: now + retryAfter * 1000 + graceMs })
    return true
  }

  /** Takes the slots that were found free: holds them, or counts one as a call. */
  #grant(granted: Reservation, now: number) {
    this.#virtualTime = Math.max(this.#virtualTime, granted.startTag)
    for (const [flow, next] of this.#nextTags) if (next <= this.#virtualTime) this.#nextTags.delete(flow)
    if (!granted.call) {
      this.#windows.held.push(granted)
      this.held.add(Object.assign(granted, { isCertain: true }))
      return
    }
    const { priority, held } = granted.call
    if (held) held.slots -= 1
    if (held?.slots === 0) this.held.delete(held)
    this.#windows.count(priority, now)
  }
}
