import type { Clock } from '../clock.ts'

const windowMs = 300_000
const maxUpdates = 30
const maxKeys = 10_000

/** Counts updates by key: at most 30 in 5 minutes. */
export class UpdateLimit {
  readonly #clock: Clock
  readonly #windows = new Map<string, { endsAt: number; count: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Counts an update. @returns whether it is within the limit. */
  admit(key: string): boolean {
    const now = this.#clock.now()
    const known = this.#windows.get(key)
    const window = known && known.endsAt > now ? known : this.#open(key, now)
    window.count += 1
    return window.count <= maxUpdates
  }

  #open(key: string, now: number) {
    const window = { endsAt: now + windowMs, count: 0 }
    this.#windows.delete(key)
    this.#windows.set(key, window)
    const [oldest] = this.#windows.keys()
    if (this.#windows.size > maxKeys && oldest !== undefined) this.#windows.delete(oldest)
    return window
  }
}
