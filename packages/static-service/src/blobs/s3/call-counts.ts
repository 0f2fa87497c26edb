interface Counts {
  calls: number
  failures: number
  seconds: number
}

/** Calls to the object store by operation, for the metrics. */
export class CallCounts {
  readonly #counts = new Map<string, Counts>()

  /** Runs a call and counts it, its time, and whether it failed. */
  async measure<T>(operation: string, call: () => Promise<T>): Promise<T> {
    const counts = this.#of(operation)
    const start = performance.now()
    counts.calls += 1
    try {
      return await call()
    } catch (error) {
      counts.failures += 1
      throw error
    } finally {
      counts.seconds += (performance.now() - start) / 1000
    }
  }

  /** One figure by operation. */
  by(figure: keyof Counts): Record<string, number> {
    return Object.fromEntries([...this.#counts].map(([name, counts]) => [name, counts[figure]]))
  }

  #of(operation: string): Counts {
    const known = this.#counts.get(operation)
    if (known) return known
    const counts = { calls: 0, failures: 0, seconds: 0 }
    this.#counts.set(operation, counts)
    return counts
  }
}
