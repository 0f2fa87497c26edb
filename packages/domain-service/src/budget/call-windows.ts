/** One of the registrar's limits: at most `calls` in any sliding window of this length. */
export interface CallLimit {
  calls: number
  window: CallWindow
}

export type CallWindow = 'minute' | 'hour' | 'day'

export const windowMs = { minute: 60_000, hour: 3_600_000, day: 86_400_000 }

/**
 * Added to each window. The registrar counts a call on arrival, this service counts it before sending it: a call that
 * arrived late must have left the registrar's window, too, before its slot is used again.
 */
export const marginMs = 500

/** Parses `20/minute,700/hour,8000/day`; undefined for anything else. */
export function parseRate(text: string): CallLimit[] | undefined {
  const limits = text
    .split(',')
    .map((part) => /^([1-9][0-9]{0,6})\/(minute|hour|day)$/.exec(part.trim()))
  if (!limits.every((match) => match !== null)) return undefined
  // The expression admits only these windows.
  return limits.map(([, calls, window]) => ({
    calls: Number(calls),
    window: window as CallWindow,
  }))
}

/** A call: when it was made, in milliseconds since 1970, and with which priority. */
export interface StoredCall {
  at: number
  priority: string
}

/**
 * Priorities, highest first. `follow-up`: a later call of a batch of writes under way. `write`: a batch with a waiting
 * client. `read`: a client's read. `queued`: an asynchronous batch. `background`: reading ahead. `sweep`: the search for
 * changes made outside.
 */
export const priorities = ['follow-up', 'write', 'read', 'queued', 'background', 'sweep'] as const
export type Priority = (typeof priorities)[number]

export interface WindowState {
  window: CallWindow
  limit: number
  /** Calls neither made nor reserved. */
  left: number
  /** When the oldest counted call leaves the window; milliseconds since 1970. */
  nextFreeAt: number | undefined
  /** The same in milliseconds from now; 0 if there is none. */
  nextFreeMs: number
}

/** Calls made in the hour that begins at `from`, milliseconds since 1970; `reads`: reads, reading ahead and sweeps. */
export interface HourOfCalls {
  from: number
  calls: number
  reads: number
}

// Writes may use whole windows, readers half of each: so readers never stop writers.
const readShare = (calls: number) => Math.max(1, Math.floor(calls / 2))
// Reading ahead leaves calls to readers; asynchronous batches leave calls to batches with a waiting client.
const backgroundShare = (calls: number) => Math.max(1, Math.floor(readShare(calls) * 0.7))
const sweepShare = (calls: number) => Math.max(1, Math.floor(readShare(calls) / 6))
const queuedShare = (calls: number) => Math.max(1, Math.floor((calls * 2) / 3))

/** Slots that a process holds, or waits for. */
export interface Slots {
  priority: Priority
  slots: number
}

/** The sum of slots by priority. */
export class SlotCounts extends Map<string, number> {
  static sum(all: Iterable<Slots>): SlotCounts {
    const sums = new SlotCounts()
    for (const each of all) sums.add(each)
    return sums
  }

  add({ priority, slots }: Slots) {
    this.set(priority, (this.get(priority) ?? 0) + slots)
  }

  of(members: readonly Priority[]): number {
    return members.reduce((sum, member) => sum + (this.get(member) ?? 0), 0)
  }
}

/** The registrar's sliding windows: the calls made and reserved in each, and when there is room for more. */
export class CallWindows {
  readonly #keepMs: number
  readonly #all: Share
  readonly #reads: Share
  readonly #shares: Record<string, Share[]>
  /** Slots that are reserved and not used yet. */
  held = new SlotCounts()

  constructor(limits: CallLimit[]) {
    this.#keepMs = Math.max(...limits.map(({ window }) => windowMs[window])) + marginMs
    const share = (members: readonly Priority[], of: (calls: number) => number) => {
      const parts = limits.map(({ calls, window }) => ({ calls: of(calls), window }))
      return new Share(members, parts, this.#keepMs)
    }
    const all = share(priorities, (calls) => calls)
    const reads = share(['read', 'background', 'sweep'], readShare)
    const background = [all, reads, share(['background', 'sweep'], backgroundShare)]
    this.#all = all
    this.#reads = reads
    this.#shares = {
      ...{ 'follow-up': [all], write: [all], read: [all, reads] },
      queued: [all, share(['queued'], queuedShare)],
      background,
      sweep: [...background, share(['sweep'], sweepShare)],
    }
  }

  count(priority: string, at: number) {
    for (const share of this.#sharesOf(priority)) share.add(at)
  }

  /** The most slots that can be held at once. */
  most(priority: Priority): number {
    const limits = this.#sharesOf(priority).flatMap((share) => share.limits)
    return Math.min(...limits.map(({ calls }) => calls))
  }

  /**
   * The earliest time at which every window has room for the slots; `ahead` further calls are made before them. Held
   * slots count as calls made now, or as free if `heldAreFree`.
   */
  earliest({ priority, slots }: Slots, ahead: SlotCounts, now: number, heldAreFree = false) {
    const times = this.#sharesOf(priority).map((share) => {
      const held = heldAreFree ? 0 : this.#heldOf(share)
      return share.earliest(slots + ahead.of(share.members), held, now)
    })
    return Math.max(now, ...times)
  }

  /** Upper estimate of when the last of `calls` calls is made, each as a slot comes free. */
  lastOf(priority: Priority, calls: number, now: number): number {
    const shares = this.#sharesOf(priority)
    return Math.max(...shares.map((share) => share.lastOf(calls, this.#heldOf(share), now)))
  }

  state(now: number): WindowState[] {
    const all = this.#all
    const held = this.#heldOf(all)
    return all.limits.map(({ calls, window }) => {
      const { count, oldest } = all.after(now - windowMs[window])
      const nextFreeAt = oldest === undefined ? undefined : oldest + windowMs[window]
      return {
        window,
        limit: calls,
        left: Math.max(0, calls - count - held),
        nextFreeAt,
        nextFreeMs: nextFreeAt === undefined ? 0 : nextFreeAt - now,
      }
    })
  }

  /** Calls made in each of the last 24 hours, oldest first; fewer hours where no window is that long. */
  hours(now: number): HourOfCalls[] {
    const count = Math.min(24, Math.max(1, Math.floor(this.#keepMs / windowMs.hour)))
    const within = (share: Share, from: number) =>
      share.after(from).count - share.after(from + windowMs.hour).count
    return Array.from({ length: count }, (_, at) => {
      const from = now - (count - at) * windowMs.hour
      return { from, calls: within(this.#all, from), reads: within(this.#reads, from) }
    })
  }

  /** Whether less than half of the readers' share of the shortest window is left. */
  readsAreScarce(now: number): boolean {
    const reads = this.#reads
    const [shortest] = reads.limits.toSorted((a, b) => windowMs[a.window] - windowMs[b.window])
    if (!shortest) return false
    const { calls, window } = shortest
    return calls - reads.after(now - windowMs[window]).count < calls / 2
  }

  // Another version of this service may have stored a priority that this one does not know.
  #sharesOf(priority: string): Share[] {
    return this.#shares[priority] ?? [this.#all]
  }

  #heldOf(share: Share): number {
    if (share !== this.#all) return this.held.of(share.members)
    return [...this.held.values()].reduce((sum, slots) => sum + slots, 0)
  }
}

/** The part of each window that some priorities may use together: the times of their calls, ascending. */
class Share {
  readonly members: readonly Priority[]
  readonly limits: CallLimit[]
  /** Calls older than this, the longest window, may be dropped. */
  readonly #keepMs: number
  #times: number[] = []

  constructor(members: readonly Priority[], limits: CallLimit[], keepMs: number) {
    this.members = members
    this.limits = limits
    this.#keepMs = keepMs
  }

  add(at: number) {
    this.#times.push(at)
    const [first] = this.#times
    if (first === undefined || first > at - 2 * this.#keepMs) return
    // Half of the span is outdated: one copy instead of one shift per call.
    this.#times = this.#times.slice(-this.after(at - this.#keepMs).count)
  }

  /** Calls made after `since`, without held slots: their number, and the time of the oldest. */
  after(since: number): { count: number; oldest: number | undefined } {
    let [low, high] = [0, this.#times.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#times[middle] ?? 0) > since) high = middle
      else low = middle + 1
    }
    return { count: this.#times.length - low, oldest: this.#times[low] }
  }

  /** The earliest time at which `calls` more calls, or a whole window of them, fit into each window. */
  earliest(calls: number, held: number, now: number): number {
    const times = this.limits.map((limit) =>
      this.#room(limit, held + Math.min(calls, limit.calls), now),
    )
    return Math.max(...times)
  }

  lastOf(calls: number, held: number, now: number): number {
    const times = this.limits.map((limit) => {
      const full = Math.floor((calls - 1) / limit.calls)
      const rest = this.#room(limit, held + calls - full * limit.calls, now)
      return rest + full * (windowMs[limit.window] + marginMs)
    })
    return Math.max(...times)
  }

  #room({ calls, window }: CallLimit, wanted: number, now: number): number {
    // All but the latest calls must have left the window by then; the call at this index leaves it last.
    const index = this.#times.length + wanted - calls - 1
    if (index < 0) return now
    return Math.max(now, (this.#times[index] ?? now) + windowMs[window] + marginMs)
  }
}
