interface Waiting {
  bytes: number
  resolve: () => void
}

/** Bounds the memory of concurrent tasks: each takes so many bytes of a common budget, first come, first served. */
export class ByteBudget {
  readonly #maxBytes: number
  readonly #waiting: Waiting[] = []
  #used = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Runs a task once its bytes are free. More bytes than the whole budget count as the whole budget. */
  async run<T>(bytes: number, task: () => Promise<T>): Promise<T> {
    const share = Math.min(bytes, this.#maxBytes)
    await this.#acquire(share)
    try {
      return await task()
    } finally {
      this.#used -= share
      this.#admit()
    }
  }

  async #acquire(bytes: number) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.push({ bytes, resolve })
    this.#admit()
    await promise
  }

  #admit() {
    for (let [next] = this.#waiting; next; [next] = this.#waiting) {
      if (this.#used + next.bytes > this.#maxBytes) return
      this.#used += next.bytes
      this.#waiting.shift()
      next.resolve()
    }
  }
}
