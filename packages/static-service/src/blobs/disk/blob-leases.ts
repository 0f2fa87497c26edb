/**
 * Reference counts of digests in use. A leased digest is not removed; a digest that is being removed cannot be leased
 * until the removal ends. In memory: a data directory belongs to one process.
 */
export class BlobLeases {
  readonly #leases = new Map<string, number>()
  readonly #removals = new Map<string, Promise<unknown>>()
  readonly #postponed = new Set<string>()
  readonly #onFree: (digest: string) => void

  /** `onFree` is called when the last lease of a digest ends that `whileFree` had found leased. */
  constructor(onFree: (digest: string) => void) {
    this.#onFree = onFree
  }

  /** Leases a digest; the returned function ends the lease, once. */
  async acquire(digest: string): Promise<() => void> {
    while (this.#removals.has(digest)) await this.#removals.get(digest)
    this.#leases.set(digest, (this.#leases.get(digest) ?? 0) + 1)
    let isLeased = true
    return () => {
      if (isLeased) this.#release(digest)
      isLeased = false
    }
  }

  /** The result of `remove` if the digest is not leased; otherwise true, and `onFree` is called later. */
  async whileFree(digest: string, remove: () => Promise<boolean>): Promise<boolean> {
    if (this.#leases.has(digest)) {
      this.#postponed.add(digest)
      return true
    }
    const before = this.#removals.get(digest)
    const removal = (before ?? Promise.resolve()).then(remove)
    const ended = removal.catch(() => undefined)
    this.#removals.set(digest, ended)
    try {
      return await removal
    } finally {
      if (this.#removals.get(digest) === ended) this.#removals.delete(digest)
    }
  }

  /** Leased digests. */
  get count(): number {
    return this.#leases.size
  }

  #release(digest: string) {
    const left = (this.#leases.get(digest) ?? 1) - 1
    if (left > 0) {
      this.#leases.set(digest, left)
      return
    }
    this.#leases.delete(digest)
    if (this.#postponed.delete(digest)) this.#onFree(digest)
  }
}
