const lengths = { second: 1000, minute: 60_000, hour: 3_600_000, day: 86_400_000 }

interface Limit {
  calls: number
  window: number
}

/** Parses `20/minute,700/hour,8000/day` or `off`; throws a SyntaxError on anything else. */
export function parseRate(text: string): Limit[] {
  if (text === 'off') return []
  return text.split(',').map((part) => {
    const [, calls, unit] = /^(\d+)\/(second|minute|hour|day)$/.exec(part.trim()) ?? []
    if (!calls || !unit) throw new SyntaxError(`Not a rate: ${part}`)
    // The pattern admits only these four units.
    return { calls: Number(calls), window: lengths[unit as keyof typeof lengths] }
  })
}

/** Counts the calls of one account in sliding windows. Refused calls are not counted. */
export class RateLimit {
  readonly #limits: Limit[]
  readonly #keepMs: number
  #taken: number[] = []

  constructor(text: string) {
    this.#limits = parseRate(text)
    this.#keepMs = Math.max(0, ...this.#limits.map(({ window }) => window))
  }

  /** Counts one call; false if any window is full. */
  take(now: number): boolean {
    this.#taken = this.#taken.filter((at) => at > now - this.#keepMs)
    const isFull = this.#limits.some(({ calls, window }) => this.#count(now - window) >= calls)
    if (!isFull && this.#limits.length > 0) this.#taken.push(now)
    return !isFull
  }

  #count(since: number): number {
    return this.#taken.filter((at) => at > since).length
  }
}
