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
  readonly #postponed = new Set<string>()
  #running: Promise<void> | undefined
  #isFailing = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: GarbageOptions) {
    this.#options = options
  }

  /** Looks at these contents, and removes those without a reference. */
  collect(digests: Iterable<string>): void {
    for (const digest of digests) this.#found.add(digest)
    if (this.#found.size > 0) this.#running ??= this.#removeFound()
  }

  /** Resolves when no removal is running. */
  async settle(): Promise<void> {
    await this.#running
  }

  /** Digests that still wait are collected by the next start. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#running
    clearTimeout(this.#timer)
  }

  async #removeFound() {
    while (this.#found.size > 0) {
      const digests: string[] = []
      for (const digest of this.#found) if (digests.push(digest) === maxRemovals) break
      for (const digest of digests) this.#found.delete(digest)
      const ends = await Promise.allSettled(digests.map(this.#options.remove))
      const failed = ends.find((end) => end.status === 'rejected')
      if (failed && !this.#isFailing) this.#options.onError(failed.reason)
      this.#isFailing = failed !== undefined
      const kept = digests.filter((_, at) => ends[at]?.status !== 'fulfilled' || !ends[at].value)
      this.#postpone(kept)
      if (!failed) continue
      // The others would fail as well, on a full disk.
      this.#postpone(this.#found)
      this.#found.clear()
    }
    this.#running = undefined
  }

  #postpone(digests: Iterable<string>) {
    for (const digest of digests) this.#postponed.add(digest)
    if (this.#postponed.size === 0) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      const digests = [...this.#postponed]
      this.#postponed.clear()
      this.collect(digests)
    }, retryMs).unref()
  }
}

// As many removals as one group commit takes.
const maxRemovals = 64

const retryMs = 1000

/**
 * Which digests uploads use, and the order of what changes their bytes: one task of a digest at a time. In memory: a data
 * directory belongs to one process.
 */
export class BlobLeases {
  readonly #leases = new Map<string, number>()
  readonly #tasks = new Map<string, Promise<unknown>>()

  /** Leases a digest, so that its bytes stay; the returned function ends the lease, once. */
  acquire(digest: string): () => void {
    this.#leases.set(digest, (this.#leases.get(digest) ?? 0) + 1)
    let isLeased = true
    return () => {
      if (!isLeased) return
      isLeased = false
      const left = (this.#leases.get(digest) ?? 1) - 1
      if (left > 0) this.#leases.set(digest, left)
      else this.#leases.delete(digest)
    }
  }

  isLeased(digest: string): boolean {
    return this.#leases.has(digest)
  }

  get count(): number {
    return this.#leases.size
  }

  /** Runs a task of this digest when the ones before have ended. */
  run<T>(digest: string, task: () => Promise<T>): Promise<T> {
    const result = this.#tasks.get(digest)?.then(task) ?? task()
    const ended = result.then(
      () => undefined,
      () => undefined,
    )
    this.#tasks.set(digest, ended)
    void ended.then(() => this.#tasks.get(digest) === ended && this.#tasks.delete(digest))
    return result
  }
}
