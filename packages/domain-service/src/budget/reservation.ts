/** What a reservation asks of its quota. */
interface Slots {
  /** Counts one held slot as a call made now. */
  use: () => Promise<void>
  /** Takes a slot that was not reserved, before everything else. */
  followUp: () => Promise<void>
  release: (unused: number) => void
}

/** Slots held for the calls of one write round. */
export class Reservation {
  readonly #slots: Slots
  #unused: number

  constructor(calls: number, slots: Slots) {
    this.#slots = slots
    this.#unused = calls
  }

  /** Slots that no call has used yet. */
  get unused(): number {
    return this.#unused
  }

  /**
   * Resolves when the round's next call may be made, which is then counted. A call beyond the reserved ones goes before
   * everything else.
   * @throws 503 `registrar_busy` where a call beyond them finds no slot.
   */
  async use(): Promise<void> {
    if (this.#unused === 0) return this.#slots.followUp()
    this.#unused--
    await this.#slots.use()
  }

  /** Gives the unused slots back. Releasing twice does nothing; later calls are follow-ups. */
  release() {
    const unused = this.#unused
    this.#unused = 0
    if (unused > 0) this.#slots.release(unused)
  }

  [Symbol.dispose]() {
    this.release()
  }
}
