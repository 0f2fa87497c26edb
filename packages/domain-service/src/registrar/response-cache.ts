import { steadyNow } from '@domains-and-files/http'

interface Entry<Value> {
  value: Value
  at: number
}

export interface Cached<Value> {
  value: Value
  /** Milliseconds since it was read. */
  age: number
  /** Expired; served because the reload failed. */
  stale: boolean
}

/** What other processes have written, by key. */
export interface Versions {
  /** False once after each write of another process. @throws where that cannot be known. */
  isCurrent(key: string): Promise<boolean>
  /** This process has cached the value as its own write left it. */
  recordPut(key: string): void
  recordDrop(key: string): void
}

export interface CacheOptions {
  ttlMs: number
  /** The oldest value that a reader who wants a fresh one gets; 0 unless calls are scarce. */
  freshAgeMs?: () => number
  /** The oldest value that serves while loading fails. */
  maxStaleMs?: number
  maxEntries?: number
  now?: () => number
  /** With these, a write of another process is seen by every later read. */
  versions?: Versions | undefined
}

/**
 * Answers of the registrar by key, in least-recently-loaded order; concurrent loads of a key are one load. A load that
 * began before `put` or `drop` neither overwrites what they did nor is joined after them.
 */
export class ResponseCache<Value> {
  readonly #options: Required<Omit<CacheOptions, 'versions'>>
  readonly #versions: Versions | undefined
  readonly #entries = new Map<string, Entry<Value>>()
  readonly #loads = new Map<string, Promise<Value>>()
  readonly counts = { hit: 0, miss: 0, stale: 0 }

  constructor({ versions, ...options }: CacheOptions) {
    const defaults = { freshAgeMs: () => 0, maxStaleMs: 300_000, maxEntries: 2_000, now: steadyNow }
    this.#options = { ...defaults, ...options }
    this.#versions = versions
  }

  /**
   * The cached value up to `ttlMs` old, or up to `freshAgeMs` if `fresh`; otherwise a loaded one. If loading fails with
   * an error that `mayBeStale` accepts, an expired value up to `maxStaleMs` old, but never if `fresh`.
   */
  async read(
    key: string,
    load: () => Promise<Value>,
    options: { fresh: boolean; mayBeStale: (error: unknown) => boolean },
  ): Promise<Cached<Value>> {
    if (this.#versions && !(await this.#versions.isCurrent(key))) this.#remove(key)
    const { ttlMs, freshAgeMs, maxStaleMs, now } = this.#options
    const entry = this.#entries.get(key)
    const age = entry ? Math.max(0, now() - entry.at) : Number.POSITIVE_INFINITY
    const isYoung = (!options.fresh && age < ttlMs) || age < freshAgeMs()
    if (entry && isYoung) {
      this.counts.hit++
      return { value: entry.value, age, stale: false }
    }
    this.counts.miss++
    try {
      return { value: await this.#load(key, load), age: 0, stale: false }
    } catch (error) {
      if (!entry || age > maxStaleMs || options.fresh || !options.mayBeStale(error)) throw error
      this.counts.stale++
      return { value: entry.value, age, stale: true }
    }
  }

  put(key: string, value: Value) {
    this.#store(key, value)
    this.#versions?.recordPut(key)
  }

  drop(key: string) {
    this.#remove(key)
    this.#versions?.recordDrop(key)
  }

  #store(key: string, value: Value) {
    const { maxEntries, now } = this.#options
    this.#remove(key)
    this.#entries.set(key, { value, at: now() })
    const [oldest] = this.#entries.keys()
    if (this.#entries.size > maxEntries && oldest !== undefined) this.#entries.delete(oldest)
  }

  #remove(key: string) {
    this.#loads.delete(key)
    this.#entries.delete(key)
  }

  #load(key: string, load: () => Promise<Value>): Promise<Value> {
    const running = this.#loads.get(key)
    if (running) return running
    const started = load().then(
      (value) => {
        if (this.#loads.get(key) === started) this.#store(key, value)
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
