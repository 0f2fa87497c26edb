/** One of the registrar's limits: at most `calls` in any sliding window of this length. */
export interface CallLimit {
  calls: number
  window: keyof typeof windowMs
}

export const windowMs = { minute: 60_000, hour: 3_600_000, day: 86_400_000 }

/**
 * Added to each window. The registrar counts a call on arrival, this service counts it before sending it: a call that
 * arrived late must have left the registrar's window, too, before its slot is used again.
 */
export const marginMs = 500

/** Parses `20/minute,700/hour,8000/day`; undefined for anything else. */
export function parseRate(text: string): CallLimit[] | undefined {
  const limits = text.split(',').map((part) => /^([1-9][0-9]{0,6})\/(minute|hour|day)$/.exec(part.trim()))
  if (!limits.every((match) => match !== null)) return undefined
  // The expression admits only these windows.
  return limits.map(([, calls, window]) => ({ calls: Number(calls), window: window as CallLimit['window'] }))
}

/**
 * Priorities, highest first. `follow-up`: a later call of a batch of writes under way. `write`: a batch with a waiting
 * client. `read`: a client's read. `queued`: an asynchronous batch. `background`: reading ahead. `sweep`: the search for
 * changes made outside.
 */
export const priorities = ['follow-up', 'write', 'read', 'queued', 'background', 'sweep'] as const
export type Priority = (typeof priorities)[number]

// The parts of each window that some priorities use together. Readers never stop writers, reading ahead leaves calls to
// readers, and asynchronous batches leave calls to batches with a waiting client.
type Part = [members: readonly string[], of: (calls: number) => number]
const half = (calls: number) => Math.max(1, Math.floor(calls / 2))
const whole: Part = [priorities, (calls) => calls]
const ofReaders: Part = [['read', 'background', 'sweep'], half]
const smaller: Part[] = [
  [['background', 'sweep'], (calls) => Math.max(1, Math.floor(half(calls) * 0.7))],
  [['sweep'], (calls) => Math.max(1, Math.floor(half(calls) / 6))],
  [['queued'], (calls) => Math.max(1, Math.floor((calls * 2) / 3))],
]

/** Slots that a process holds, or waits for. */
export interface Slots {
  readonly priority: Priority
  /** To take, or held and not used yet; 0 for a call whose slot is held already. */
  slots: number
}

/** Adds slots to sums by priority. */
export function addSlots(sums: Slots[], { priority, slots }: Slots) {
  const known = sums.find((each) => each.priority === priority)
  if (known) known.slots += slots
  else sums.push({ priority, slots })
}

/** The registrar's sliding windows: the calls made and reserved in each, and when there is room for more. */
export class CallWindows {
  readonly #keepMs: number
  readonly #all: Share
  readonly #reads: Share
  readonly #shares: Share[]
  /** Slots that are reserved and not used yet. */
  held: Slots[] = []

  constructor(limits: CallLimit[]) {
    this.#keepMs = Math.max(...limits.map(({ window }) => windowMs[window])) + marginMs
    const share = ([members, of]: Part): Share => ({
      members,
      limits: limits.map(({ calls, window }) => ({ calls: of(calls), window })),
      times: [],
    })
    this.#all = share(whole)
    this.#reads = share(ofReaders)
    this.#shares = [this.#all, this.#reads, ...smaller.map(share)]
  }

  count(priority: string, at: number) {
    for (const share of this.#sharesOf(priority)) {
      share.times.push(at)
      // Once half of the span is outdated: one copy instead of one shift per call.
      if (at - (share.times[0] ?? at) >= 2 * this.#keepMs)
        share.times = share.times.slice(-countAfter(share, at - this.#keepMs))
    }
  }

  /** Forgets the calls, not the slots that are held. */
  clear() {
    for (const share of this.#shares) share.times = []
  }

  /** The most slots that can be held at once. */
  most(priority: Priority): number {
    const limits = this.#sharesOf(priority).flatMap((share) => share.limits)
    return Math.min(...limits.map(({ calls }) => calls))
  }

  /**
   * The earliest time at which every window has room for the slots, or a whole window of them; those `ahead` are taken
   * before them. `held` slots count as calls made now. `groupSize`: the slots are taken in groups, each as soon as it is
   * free; the time of the last group, an upper estimate.
   */
  earliest(
    { priority, slots }: Slots,
    now: number,
    { ahead = [] as Slots[], held = this.held, groupSize = 0 } = {},
  ): number {
    const times = this.#sharesOf(priority).flatMap((share) => {
      const wanted = slots + this.#sum(ahead, share)
      return share.limits.map(({ calls, window }) => {
        const lengthMs = windowMs[window] + marginMs
        const usable = groupSize ? calls - (calls % groupSize) : calls
        const full = groupSize ? Math.floor((wanted - 1) / usable) : 0
        const last = this.#sum(held, share) + Math.min(wanted - full * usable, calls)
        // All but the latest calls must have left the window by then; the call at this index leaves it last.
        const index = share.times.length + last - calls - 1
        const freeAt = index < 0 ? now : (share.times[index] ?? now) + lengthMs
        return Math.max(now, freeAt) + full * lengthMs
      })
    })
    return Math.max(...times)
  }

  /** `left`: calls neither made nor reserved. `nextFreeAt`: when the oldest counted call leaves the window. */
  state(now: number) {
    const all = this.#all
    return all.limits.map(({ calls, window }) => {
      const count = countAfter(all, now - windowMs[window])
      const oldest = count === 0 ? undefined : all.times.at(-count)
      const nextFreeAt = oldest === undefined ? undefined : oldest + windowMs[window]
      return { window, limit: calls, left: Math.max(0, calls - count - this.#sum(this.held, all)), nextFreeAt }
    })
  }

  /**
   * Calls made in each of the last 24 hours, which begin at `from`, oldest first; as far back as the longest window.
   * `reads`: reads, reading ahead and sweeps.
   */
  hours(now: number) {
    const within = (share: Share, from: number) => countAfter(share, from) - countAfter(share, from + windowMs.hour)
    return Array.from({ length: 24 }, (_, at) => {
      const from = now - (24 - at) * windowMs.hour
      return { from, calls: within(this.#all, from), reads: within(this.#reads, from) }
    })
  }

  /** Whether less than half of the readers' share of the shortest window is left. */
  readsAreScarce(now: number): boolean {
    const shortest = this.#reads.limits.toSorted((a, b) => windowMs[a.window] - windowMs[b.window]).slice(0, 1)
    return shortest.some(({ calls, window }) => calls - countAfter(this.#reads, now - windowMs[window]) < calls / 2)
  }

  // Another version of this service may have stored a priority that this one does not know: it counts among all.
  #sharesOf(priority: string): Share[] {
    return this.#shares.filter((share) => share === this.#all || share.members.includes(priority))
  }

  #sum(all: Slots[], share: Share): number {
    let sum = 0
    for (const { priority, slots } of all) if (share === this.#all || share.members.includes(priority)) sum += slots
    return sum
  }
}

/** A part of each window, and the times of the calls of its members, ascending. */
interface Share {
  members: readonly string[]
  limits: CallLimit[]
  times: number[]
}

function countAfter({ times }: Share, since: number): number {
  let [low, high] = [0, times.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((times[middle] ?? 0) > since) high = middle
    else low = middle + 1
  }
  return times.length - low
}
