export interface GarbageOptions {
  /** Removes a content unless it is in use; false: not now, to be tried again. */
  remove: (digest: string) => Promise<boolean>
  /** Called when contents cannot be removed, once until the removals work again. */
  onError: (error: unknown) => void
}

/** Contents that may have no reference any more, and their removal in the background. */
export class Garbage {
  readonly #options: GarbageOptions
  readonly #found = new Set<string>()
  readonly #removals = new Set<Promise<void>>()
  readonly #postponed = new Set<string>()
  #isFailing = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: GarbageOptions) {
    this.#options = options
  }

  /** Looks at these contents, and removes those without a reference. */
  collect(digests: Iterable<string>): void {
    for (const digest of digests) this.#found.add(digest)
    while (this.#found.size > 0 && this.#removals.size < maxRemovals) {
      const removal = this.#removeFound()
      this.#removals.add(removal)
      void removal.finally(() => this.#removals.delete(removal))
    }
  }

  /** Resolves when no removal is running. */
  async settle(): Promise<void> {
    while (this.#removals.size > 0) await Promise.all(this.#removals)
  }

  /** Digests that still wait are collected by the next start. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.settle()
    clearTimeout(this.#timer)
  }

  async #removeFound() {
    for (const digest of this.#found) {
      this.#found.delete(digest)
      try {
        if (!(await this.#options.remove(digest))) this.#postpone([digest])
        else if (this.#postponed.size === 0) this.#isFailing = false
      } catch (error) {
        if (!this.#isFailing) this.#options.onError(error)
        this.#isFailing = true
        // The others would fail as well, on a full disk. This one is last, lest it always come first.
        this.#postpone([...this.#found, digest])
        this.#found.clear()
      }
    }
  }

  #postpone(digests: string[]) {
    for (const digest of digests) this.#postponed.add(digest)
    this.#timer ??= setTimeout(() => {
      const postponed = [...this.#postponed]
      this.#postponed.clear()
      this.#timer = undefined
      this.collect(postponed)
    }, retryMs).unref()
  }
}

// As many removals as one group commit takes.
const maxRemovals = 64

const retryMs = 1000

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
