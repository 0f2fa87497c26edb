const lengths = { second: 1000, minute: 60_000, hour: 3_600_000, day: 86_400_000 }

/** `20/minute,700/hour,8000/day`, or `off`. */
export const ratePattern = /^(off|\d+\/(second|minute|hour|day)(, *\d+\/(second|minute|hour|day))*)$/

/** Counts the calls of one account in sliding windows. Refused calls are not counted. */
export class RateLimit {
  readonly #limits: { calls: number; window: number }[]
  #taken: number[] = []

  constructor(text: string) {
    if (!ratePattern.test(text)) throw new SyntaxError(`Not a rate: ${text}`)
    const limits = text === 'off' ? [] : text.split(',')
    this.#limits = limits.map((each) => {
      const [calls, unit] = each.trim().split('/')
      // The pattern admits only these.
      return { calls: Number(calls), window: lengths[unit as keyof typeof lengths] }
    })
  }

  /** Counts one call; false if any window is full. */
  take(now: number): boolean {
    if (this.#limits.length === 0) return true
    this.#taken = this.#taken.filter((at) => at > now - lengths.day)
    const isFull = this.#limits.some(
      ({ calls, window }) => this.#taken.filter((at) => at > now - window).length >= calls,
    )
    if (!isFull) this.#taken.push(now)
    return !isFull
  }
}
