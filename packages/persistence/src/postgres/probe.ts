interface ProbeOptions {
  /** Rejects if the system is not available. */
  check: () => Promise<unknown>
  /** Undefined: only `run` checks. */
  intervalMs: number | undefined
  onLost: (error: unknown) => void
}

/** Checks a system in the background, so that /health can report it without calling anything. */
export class Probe {
  readonly #options: ProbeOptions
  readonly #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  isAvailable = true

  constructor(options: ProbeOptions) {
    this.#options = options
    if (options.intervalMs !== undefined) this.#timer = setInterval(() => void this.run(), options.intervalMs).unref()
  }

  /** Checks now, or joins the running check. Does not throw. */
  run(): Promise<void> {
    this.#running ??= this.#check()
    return this.#running
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#running
  }

  async #check() {
    try {
      await this.#options.check()
      this.isAvailable = true
    } catch (error) {
      if (this.isAvailable) this.#options.onLost(error)
      this.isAvailable = false
    }
    this.#running = undefined
  }
}
