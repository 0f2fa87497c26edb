interface Tally {
  /** Times of failed attempts, oldest first. */
  failures: number[]
  running: number
}

interface CounterOptions {
  max: number
  windowMs: number
  now: () => number
}

const maxTallies = 10_000

/**
 * Counts failed attempts by key in a sliding window. Remembers 10,000 keys; the one unused for longest is dropped first.
 * A running attempt counts as failed, so that concurrent attempts cannot pass the limit together.
 */
export class AttemptCounter {
  readonly #options: CounterOptions
  // Ordered by last use.
  readonly #tallies = new Map<string, Tally>()

  constructor(options: CounterOptions) {
    this.#options = options
  }

  /** Milliseconds until an attempt is allowed; 0 if it is allowed now. */
  waitMs(key: string): number {
    const tally = this.#tallies.get(key)
    if (!tally) return 0
    this.#dropExpired(tally)
    const excess = tally.failures.length + tally.running - this.#options.max
    if (excess < 0) return 0
    const expires = tally.failures[excess]
    // Only running attempts are in the way: they finish soon.
    if (expires === undefined) return 1000
    return expires + this.#options.windowMs - this.#options.now()
  }

  begin(key: string) {
    const tally = this.#tallies.get(key) ?? { failures: [], running: 0 }
    tally.running += 1
    this.#tallies.delete(key)
    this.#tallies.set(key, tally)
    for (const [oldest, { failures, running }] of this.#tallies) {
      const isOver = running === 0 && !failures.some((time) => this.#isRecent(time))
      if (!isOver && this.#tallies.size <= maxTallies) break
      this.#tallies.delete(oldest)
    }
    return {
      end: () => {
        tally.running -= 1
      },
      /** Records a failure. @returns whether it reached the limit. */
      fail: () => {
        this.#dropExpired(tally)
        tally.failures.push(this.#options.now())
        return tally.failures.length === this.#options.max
      },
    }
  }

  reset(key: string) {
    const tally = this.#tallies.get(key)
    if (tally) tally.failures = []
  }

  #dropExpired(tally: Tally) {
    tally.failures = tally.failures.filter((time) => this.#isRecent(time))
  }

  #isRecent = (time: number) => time + this.#options.windowMs > this.#options.now()
}
