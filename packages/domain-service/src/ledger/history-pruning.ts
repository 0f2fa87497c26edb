import type { Logger } from '@domains-and-files/http'
import type { Clock, Timer } from '../clock.ts'
import type { Ledger } from './ledger.ts'

interface Options {
  ledger: Ledger
  clock: Clock
  log: Logger
  /** Changes that ended longer ago are deleted; 0: none. */
  days: number
}

const dayMs = 86_400_000

/** Deletes old changes at start and once a day. */
export class HistoryPruning {
  readonly #options: Options
  #timer: Timer | undefined

  constructor(options: Options) {
    this.#options = options
  }

  /** Does nothing where it has been started before. */
  async start(): Promise<void> {
    if (this.#options.days > 0 && !this.#timer) await this.#prune()
  }

  async #prune(): Promise<void> {
    const { ledger, clock, log, days } = this.#options
    this.#timer = clock.setTimer(() => void this.#prune(), dayMs)
    try {
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
