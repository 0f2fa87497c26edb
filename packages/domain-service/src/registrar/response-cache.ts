import { HttpError } from '@domains-and-files/http'
import { LRUCache } from 'lru-cache'

export interface Cached<Value> {
  value: Value
  /** Milliseconds since it was read. */
  age: number
  /** Expired; served because the reload failed. */
  stale: boolean
}

export interface CacheOptions {
  ttlMs: number
  /** Maximum age of a value that counts as fresh; 0 unless calls are scarce. */
  freshAgeMs: () => number
  now: () => number
  /** The version, which each write of any process raises: an answer of another version is outdated. */
  versionOf?: ((key: string) => Promise<number>) | undefined
}

const maxStaleMs = 300_000

/**
 * Answers of the registrar by key; concurrent loads of a key are one load. A load that began before `put`
 * or `drop` neither overwrites what they did nor is joined after them.
 */
export class ResponseCache<Value> {
  readonly #options: CacheOptions
  readonly #entries = new LRUCache<string, { value: Value; at: number; version: number }>({ max: 2_000 })
  readonly #loads = new Map<string, { loaded: Promise<Value>; version: number }>()
  readonly counts = { hit: 0, miss: 0, stale: 0 }

  constructor(options: CacheOptions) {
    this.#options = options
  }

  /**
   * The cached value up to `ttlMs` old, or up to `freshAgeMs` if `fresh`; otherwise a loaded one. If loading fails for a
   * reason that may pass, an expired value up to five minutes old, but never if `fresh`.
   */
  async read(key: string, load: () => Promise<Value>, fresh = false): Promise<Cached<Value>> {
    const { ttlMs, freshAgeMs, now, versionOf } = this.#options
    const version = versionOf ? await versionOf(key) : 0
    const known = this.#entries.get(key)
    const entry = known?.version === version ? known : undefined
    const age = entry ? Math.max(0, now() - entry.at) : Infinity
    if (entry && ((!fresh && age < ttlMs) || age < freshAgeMs())) {
      this.counts.hit++
      return { value: entry.value, age, stale: false }
    }
    this.counts.miss++
    try {
      return { value: await this.#load(key, version, load), age: 0, stale: false }
    } catch (error) {
      // Such a failure may pass by itself: an older value serves better than none.
      const isTransient = error instanceof HttpError && error.status >= 500 && error.code.startsWith('registrar_')
      if (!entry || age > maxStaleMs || fresh || !isTransient) throw error
      this.counts.stale++
      return { value: entry.value, age, stale: true }
    }
  }

  /** `version`: what `versionOf` gave when the value was current. */
  put(key: string, value: Value, version = 0) {
    this.drop(key)
    this.#entries.set(key, { value, at: this.#options.now(), version })
  }

  drop(key: string) {
    this.#loads.delete(key)
    this.#entries.delete(key)
  }

  async #load(key: string, version: number, load: () => Promise<Value>): Promise<Value> {
    const running = this.#loads.get(key)
    if (running?.version === version) return running.loaded
    const loading = { loaded: load(), version }
    const isLatest = () => this.#loads.get(key) === loading
    this.#loads.set(key, loading)
    try {
      const value = await loading.loaded
      if (isLatest()) this.put(key, value, version)
      return value
    } finally {
      if (isLatest()) this.#loads.delete(key)
    }
  }
}
