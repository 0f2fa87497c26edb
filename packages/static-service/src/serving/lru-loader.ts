import { LRUCache } from 'lru-cache'

/**
 * LRU cache bounded in bytes; coalesces concurrent loads. After `invalidate` it never returns what was loaded before: a
 * load that began earlier resolves for its callers only.
 */
export class LruLoader<Value extends object> {
  readonly #cached: LRUCache<string, Value>
  readonly #loading = new Map<string, Promise<Value | undefined>>()
  /** Cache hits, and misses that had to load. */
  readonly counts = { hit: 0, miss: 0 }

  constructor(maxBytes: number, sizeOf: (value: Value) => number) {
    this.#cached = new LRUCache({
      maxSize: Math.max(maxBytes, 1),
      sizeCalculation: (value, key) => entryBytes + key.length + sizeOf(value),
    })
  }

  /** The cached or loaded value. A missing one is not cached. */
  get(
    key: string,
    load: () => Value | undefined | Promise<Value | undefined>,
  ): Value | undefined | Promise<Value | undefined> {
    const cached = this.#cached.get(key)
    if (cached) {
      this.counts.hit += 1
      return cached
    }
    this.counts.miss += 1
    return this.#loading.get(key) ?? this.#load(key, load())
  }

  readonly peek = (key: string): Value | undefined => {
    const cached = this.#cached.get(key)
    if (cached) this.counts.hit += 1
    return cached
  }

  /** As `peek`, but not counted as a hit: the caller may not use the value. */
  inspect(key: string): Value | undefined {
    return this.#cached.get(key)
  }

  set(key: string, value: Value) {
    this.#cached.set(key, value)
  }

  /** Estimated memory of all entries. */
  get bytes(): number {
    return this.#cached.calculatedSize
  }

  /** Drops the values of these keys, or of all. */
  readonly invalidate = (keys: readonly string[] | 'all'): void => {
    if (keys === 'all') {
      this.#cached.clear()
      this.#loading.clear()
      return
    }
    for (const key of keys) {
      this.#cached.delete(key)
      this.#loading.delete(key)
    }
  }

  #load(key: string, loaded: Value | undefined | Promise<Value | undefined>) {
    if (!(loaded instanceof Promise)) {
      if (loaded) this.#cached.set(key, loaded)
      return loaded
    }
    const isLatest = () => this.#loading.get(key) === loading
    const loading: Promise<Value | undefined> = loaded
      .then((value) => {
        if (value && isLatest()) this.#cached.set(key, value)
        return value
      })
      .finally(() => {
        if (isLatest()) this.#loading.delete(key)
      })
    this.#loading.set(key, loading)
    return loading
  }
}

// Estimated overhead of an entry: its objects, its place in the list.
const entryBytes = 512
