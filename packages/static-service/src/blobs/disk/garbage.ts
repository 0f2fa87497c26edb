import { allEnded, BackgroundTask } from '@domains-and-files/persistence'

interface GarbageOptions {
  /** Removes a blob unless it is in use; false: to be retried. */
  remove: (digest: string) => Promise<boolean>
  /** Called for the first failed removal; again only after removals have worked. */
  onError: (error: unknown) => void
}

/** Collects blobs that may be unreferenced, and removes them in the background. */
export class Garbage {
  readonly #found = new Set<string>()
  /** Blobs whose removal waits for a later attempt. */
  readonly postponed = new Set<string>()
  readonly #removing: BackgroundTask
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor({ remove, onError }: GarbageOptions) {
    this.#removing = new BackgroundTask({ run: () => this.#removeFound(remove), onError })
  }

  /** Queues these blobs; the unreferenced ones are removed. */
  collect(digests: Iterable<string>): void {
    for (const digest of digests) this.#found.add(digest)
    if (this.#found.size === 0) return
    void this.#removing.run()
    if (this.#isClosed) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      const postponed = [...this.postponed]
      this.postponed.clear()
      this.collect(postponed)
    }, retryMs).unref()
  }

  /** Resolves when the blobs that were queued before have been removed, or wait for a later attempt. */
  async settle(): Promise<void> {
    await this.#removing.running
    this.collect([]) // Some may have been queued as the run ended. Not by `run`: an empty one would count as a success.
    await this.#removing.running
  }

  /** Waits for running removals. The next start collects postponed digests. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#removing.close()
  }

  async #removeFound(remove: GarbageOptions['remove']) {
    while (this.#found.size > 0) {
      const digests: string[] = []
      for (const digest of this.#found) if (digests.push(digest) === maxRemovals) break
      const removed = digests.map(async (digest) => {
        this.#found.delete(digest)
        this.postponed.add(digest)
        if (await remove(digest)) this.postponed.delete(digest)
      })
      await allEnded(removed) // On a full disk the others would fail as well.
    }
  }
}

// The size of a group commit.
const maxRemovals = 64

const retryMs = 1000
