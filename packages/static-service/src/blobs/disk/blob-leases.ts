/**
 * Who holds which digest. What is held is not removed; what is being removed is not held before that has ended.
 * Within this process only: a data folder belongs to one.
 */
export class BlobLeases {
  readonly #held = new Map<string, number>()
  readonly #going = new Map<string, Promise<unknown>>()
  readonly #postponed = new Set<string>()
  readonly #onFree: (digest: string) => void

  /** `onFree` is told when a digest is let go of that `whileFree` had found held. */
  constructor(onFree: (digest: string) => void) {
    this.#onFree = onFree
  }

  /** Holds a digest until the function that it returns is called; calling that again does nothing. */
  async acquire(digest: string): Promise<() => void> {
    for (let going = this.#going.get(digest); going; going = this.#going.get(digest)) await going
    this.#held.set(digest, (this.#held.get(digest) ?? 0) + 1)
    let isHeld = true
    return () => {
      if (isHeld) this.#letGo(digest)
      isHeld = false
    }
  }

  /** Runs `remove` while nobody holds the digest, or else does nothing until `onFree` is told. */
  async whileFree(digest: string, remove: () => Promise<void>): Promise<void> {
    if (this.#held.has(digest)) {
      this.#postponed.add(digest)
      return
    }
    const before = this.#going.get(digest)
    const going = (before ?? Promise.resolve()).then(remove)
    const ended = going.catch(() => undefined)
    this.#going.set(digest, ended)
    try {
      await going
    } finally {
      if (this.#going.get(digest) === ended) this.#going.delete(digest)
    }
  }

  get count(): number {
    return this.#held.size
  }

  #letGo(digest: string) {
    const left = (this.#held.get(digest) ?? 1) - 1
    if (left > 0) {
      this.#held.set(digest, left)
      return
    }
    this.#held.delete(digest)
    if (this.#postponed.delete(digest)) this.#onFree(digest)
  }
}
