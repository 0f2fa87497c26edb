import type { Clock, Logger, Timer } from '@domains-and-files/http'
import type { Ledger } from './ledger.ts'

interface Options {
  ledger: Ledger
  clock: Clock
  log: Logger
  /** Changes that ended longer ago are deleted; 0: none. */
  days: number
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** Deletes old changes at start and once a day, and cancels proposals that have expired, every hour. */
export class HistoryPruning {
  readonly #options: Options
  #timer: Timer | undefined
  #prunedAt = -Infinity

  constructor(options: Options) {
    this.#options = options
  }

  /** Does nothing where it has been started before. */
  async start(): Promise<void> {
    if (!this.#timer) await this.#run()
  }

  async #run(): Promise<void> {
    const { ledger, clock, log, days } = this.#options
    this.#timer = clock.setTimer(() => void this.#run(), hourMs)
    try {
      await ledger.proposals.expire()
      if (days === 0 || clock.now() - this.#prunedAt < dayMs) return
      this.#prunedAt = clock.now()
      const deleted = await ledger.prune(new Date(Date.now() - days * dayMs))
      if (deleted > 0) log.info({ deleted }, 'history pruned')
    } catch (error) {
      log.error({ err: error }, 'history not pruned')
    }
  }

  close() {
    this.#timer?.cancel()
  }
}
