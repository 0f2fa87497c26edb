import { steadyNow } from '../clock.ts'

interface Entry<Value> {
  value: Value
  at: number
}

export interface Cached<Value> {
  value: Value
  /** Milliseconds since it was read. */
  age: number
  /** Older than its time, given because a fresh one could not be had. */
  stale: boolean
}

/**
 * Answers by key for `ttl` milliseconds; equal loads at once are one load. What was put or dropped while a load ran
 * outlives it: a load that began before a write neither overwrites what the write put, nor is joined after it.
 */
export class ResponseCache<Value> {
  readonly #ttl: number
  readonly #maxStale: number
  readonly #maxEntries: number
  readonly #now: () => number
  readonly #entries = new Map<string, Entry<Value>>()
  readonly #loads = new Map<string, Promise<Value>>()
  readonly counts = { hit: 0, miss: 0, stale: 0 }

  constructor(options: {
    ttl: number
    maxStale?: number
    maxEntries?: number
    now?: () => number
  }) {
    this.#ttl = options.ttl
    this.#maxStale = options.maxStale ?? 300_000
    this.#maxEntries = options.maxEntries ?? 2_000
    this.#now = options.now ?? steadyNow
  }

  /**
   * The cached value while it is young enough, else a loaded one. Where loading fails in a way that `mayBeStale` lets
   * pass, a value up to `maxStale` milliseconds old. `fresh` asks for no older one than now.
   */
  async read(
    key: string,
    load: () => Promise<Value>,
    options: { fresh: boolean; mayBeStale: (error: unknown) => boolean },
  ): Promise<Cached<Value>> {
    const entry = this.#entries.get(key)
    const age = entry ? Math.max(0, this.#now() - entry.at) : Number.POSITIVE_INFINITY
    if (entry && age < this.#ttl && !options.fresh) {
      this.counts.hit++
      return { value: entry.value, age, stale: false }
    }
    this.counts.miss++
    try {
      return { value: await this.#load(key, load), age: 0, stale: false }
    } catch (error) {
      if (!entry || age > this.#maxStale || options.fresh || !options.mayBeStale(error)) throw error
      this.counts.stale++
      return { value: entry.value, age, stale: true }
    }
  }

  put(key: string, value: Value) {
    this.#loads.delete(key)
    this.#entries.delete(key)
    this.#entries.set(key, { value, at: this.#now() })
    const [oldest] = this.#entries.keys()
    if (this.#entries.size > this.#maxEntries && oldest !== undefined) this.#entries.delete(oldest)
  }

  drop(key: string) {
    this.#loads.delete(key)
    this.#entries.delete(key)
  }

  #load(key: string, load: () => Promise<Value>): Promise<Value> {
    const running = this.#loads.get(key)
    if (running) return running
    const started = load().then(
      (value) => {
        if (this.#loads.get(key) === started) this.put(key, value)
        return value
      },
      (error) => {
        if (this.#loads.get(key) === started) this.#loads.delete(key)
        throw error
      },
    )
    this.#loads.set(key, started)
    return started
  }
}
