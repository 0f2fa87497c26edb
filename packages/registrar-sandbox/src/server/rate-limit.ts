const lengths = { second: 1000, minute: 60_000, hour: 3_600_000, day: 86_400_000 }

interface Limit {
  calls: number
  window: number
}

/** `20/minute,700/hour,8000/day`, or `off`. */
export const ratePattern =
  /^(off|\d+\/(second|minute|hour|day)(, *\d+\/(second|minute|hour|day))*)$/

function parseRate(text: string): Limit[] {
  if (!ratePattern.test(text)) throw new SyntaxError(`Not a rate: ${text}`)
  if (text === 'off') return []
  return text.split(',').map((each) => {
    const [calls, unit] = each.trim().split('/')
    // The pattern admits only these.
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
