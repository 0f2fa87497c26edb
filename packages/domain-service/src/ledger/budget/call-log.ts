import type { CallLimit } from './call-rate.ts'
import { windowMs } from './call-rate.ts'

/** Times of calls in ascending order, and the slots held for calls to come: what a sliding window counts. */
export class CallLog {
  readonly #keepMs: number
  #times: number[]
  /** Slots that are reserved and not used yet. */
  held = 0

  /** Calls older than `keepMs`, the longest window, may be dropped. */
  constructor(keepMs: number, times: number[] = []) {
    this.#keepMs = keepMs
    this.#times = times
  }

  add(at: number) {
    this.#times.push(at)
    const [first] = this.#times
    if (first === undefined || first > at - 2 * this.#keepMs) return
    // Half of the span is outdated: one copy instead of one shift per call.
    this.#times = this.#times.slice(this.#firstAfter(at - this.#keepMs))
  }

  /** Calls made after `since`, without held slots. */
  countAfter(since: number): number {
    return this.#times.length - this.#firstAfter(since)
  }

  /** The oldest call made after `since`. */
  oldestAfter(since: number): number | undefined {
    return this.#times[this.#firstAfter(since)]
  }

  /**
   * The earliest time, not before `now`, at which `extra` more calls fit into the window of `limit`. Held slots count as
   * calls made now, or as free if `heldAreFree`. Infinity if they never fit.
   */
  earliest(extra: number, limit: CallLimit, now: number, heldAreFree = false): number {
    const taken = extra + (heldAreFree ? 0 : this.held)
    if (extra > limit.calls) return Number.POSITIVE_INFINITY
    // All but the latest calls must have left the window by then; the call at this index leaves it last.
    const index = this.#times.length + taken - limit.calls - 1
    if (index < 0) return now
    const last = this.#times[index] ?? now
    return Math.max(now, last + windowMs[limit.window])
  }

  #firstAfter(since: number): number {
    let [low, high] = [0, this.#times.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#times[middle] ?? 0) > since) high = middle
      else low = middle + 1
    }
    return low
  }
}
