interface ProbeOptions {
  /** Rejects if the system is not available. */
  check: () => Promise<unknown>
  intervalMs: number
  onChange: (isAvailable: boolean, error?: unknown) => void
}

/** Checks a system in the background, so that /health can report it without calling anything. */
export class Probe {
  readonly #options: ProbeOptions
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> = Promise.resolve()
  #isClosed = false
  /** What the last check saw. */
  isAvailable = true

  constructor(options: ProbeOptions) {
    this.#options = options
    this.#schedule()
  }

  /** Resolves when a running check has ended. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#running
  }

  #schedule() {
    if (this.#isClosed) return
    this.#timer = setTimeout(() => {
      this.#running = this.#check().finally(() => this.#schedule())
    }, this.#options.intervalMs)
    this.#timer.unref()
  }

  async #check() {
    try {
      await this.#options.check()
      this.#report(true)
    } catch (error) {
      this.#report(false, error)
    }
  }

  #report(isAvailable: boolean, error?: unknown) {
    if (isAvailable === this.isAvailable) return
    this.isAvailable = isAvailable
    this.#options.onChange(isAvailable, error)
  }
}
