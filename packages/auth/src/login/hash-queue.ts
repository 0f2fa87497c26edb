/** Lets few jobs run at a time and few wait, so that hashing cannot take the whole machine. */
export class HashQueue {
  readonly #atOnce = 2
  readonly #longest = 32
  readonly #waiting: (() => void)[] = []
  #running = 0

  /** Says whether too many wait already: nothing may be run now. */
  get isFull(): boolean {
    return this.#waiting.length >= this.#longest
  }

  /** How many jobs wait for their turn. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Runs the job when its turn comes. */
  async run<T>(job: () => Promise<T>): Promise<T> {
    await this.#takeTurn()
    try {
      return await job()
    } finally {
      this.#passTurn()
    }
  }

  async #takeTurn() {
    if (this.#running < this.#atOnce) {
      this.#running += 1
      return
    }
    const turn = Promise.withResolvers<void>()
    this.#waiting.push(turn.resolve)
    await turn.promise
  }

  // The turn goes to the next in line without being given up, so that nobody slips in between.
  #passTurn() {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#running -= 1
  }
}
