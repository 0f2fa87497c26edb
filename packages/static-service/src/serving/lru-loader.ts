import { LRUCache } from 'lru-cache'

/**
 * A bounded memory of what is slow to look up. What was looked up before `forget` is never returned after it: a value
 * that arrives late, from a look-up that began before, goes to who asked then and to nobody else.
 */
export class LruLoader<Value extends object> {
  readonly #kept: LRUCache<string, Value>
  readonly #loading = new Map<string, Promise<Value | undefined>>()
  /** Look-ups that memory answered, and those that it could not. */
  readonly counts = { hit: 0, miss: 0 }

  /** `bytes` bounds the memory, by what `sizeOf` says of each value. */
  constructor(bytes: number, sizeOf: (value: Value) => number) {
    this.#kept = new LRUCache({
      maxSize: Math.max(bytes, 1),
      sizeCalculation: (value, key) => entryBytes + key.length + sizeOf(value),
    })
  }

  /** The value, kept or looked up; many who ask at once share one look-up. What does not exist is not remembered. */
  get(
    key: string,
    load: () => Promise<Value | undefined>,
  ): Value | Promise<Value | undefined> | undefined {
    const kept = this.peek(key)
    if (kept) return kept
    this.counts.miss += 1
    return this.#loading.get(key) ?? this.#load(key, load)
  }

  /** The value where it is kept; nothing is looked up. */
  peek(key: string): Value | undefined {
    const kept = this.#kept.get(key)
    if (kept) this.counts.hit += 1
    return kept
  }

  /** The memory that it takes, by its own reckoning. */
  get bytes(): number {
    return this.#kept.calculatedSize
  }

  forget(key: string) {
    this.#kept.delete(key)
    this.#loading.delete(key)
  }

  async #keep(key: string, loaded: Promise<Value | undefined>, isLatest: () => boolean) {
    try {
      const value = await loaded
      if (value && isLatest()) this.#kept.set(key, value)
      return value
    } finally {
      if (isLatest()) this.#loading.delete(key)
    }
  }

  #load(key: string, load: () => Promise<Value | undefined>): Promise<Value | undefined> {
    const loading: Promise<Value | undefined> = this.#keep(
      key,
      load(),
      () => this.#loading.get(key) === loading,
    )
    this.#loading.set(key, loading)
    return loading
  }
}

// What an entry costs beside its value: its objects, its place in the list.
const entryBytes = 512
