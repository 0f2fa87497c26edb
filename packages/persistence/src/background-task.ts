import { type Clock, systemClock, type Timer } from './clock.ts'

interface Options {
  /** Rejects if it failed: the next run tries again. */
  run: () => Promise<unknown>
  /** Receives the first of consecutive failures. */
  onError: (error: unknown) => void
  /** Milliseconds between runs from the beginning. Undefined: they begin with `start`, or only calls of `run` run it. */
  intervalMs?: number | undefined
  clock?: Clock
}

/** The results, after all tasks have settled. @throws the first error. */
export async function allEnded<T>(tasks: Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(tasks)
  return Promise.all(tasks)
}

/** Work in the background: one run at a time, and regularly until it is closed. */
export class BackgroundTask {
  readonly #options: Options
  #timer: Timer | undefined
  /** The run under way. */
  running: Promise<void> | undefined
  /** Whether the last run succeeded. */
  isAvailable = true

  constructor(options: Options) {
    this.#options = options
    if (options.intervalMs !== undefined) this.#schedule(options.intervalMs)
  }

  /** Runs now, and from now on regularly; does nothing where it has been started before. */
  async start(intervalMs: number): Promise<void> {
    if (this.#timer) return
    this.#schedule(intervalMs)
    await this.run()
  }

  /** Runs now, or joins the run under way. Does not throw. */
  run(): Promise<void> {
    this.running ??= this.#run().finally(() => {
      this.running = undefined
    })
    return this.running
  }

  /** Runs after the run under way, which may have begun too early to see what is new. Does not throw. */
  async runAgain(): Promise<void> {
    await this.running
    await this.run()
  }

  async close(): Promise<void> {
    this.#timer?.cancel()
    while (this.running) await this.running // `runAgain` may have begun another one.
  }

  #schedule(intervalMs: number) {
    const { clock = systemClock } = this.#options
    this.#timer = clock.setTimer(() => {
      this.#schedule(intervalMs)
      void this.run()
    }, intervalMs)
  }

  async #run() {
    const { run, onError } = this.#options
    try {
      await run()
      this.isAvailable = true
    } catch (error) {
      if (this.isAvailable) onError(error)
      this.isAvailable = false
    }
  }
}
