import type { Clock, Logger } from '@domains-and-files/http'
import { BackgroundTask } from '@domains-and-files/persistence'
import type { Ledger } from './ledger.ts'

interface Options {
  ledger: Pick<Ledger, 'proposals' | 'prune'>
  clock: Clock
  log: Logger
  /** Changes that ended longer ago are deleted; 0: none. */
  days: number
}

export const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** Cancels proposals that have expired, and deletes old changes in the first run of each day. */
export function pruneHistory({ ledger, clock, log, days }: Options): BackgroundTask {
  let prunedAt = -Infinity
  const run = async () => {
    await ledger.proposals.expire()
    if (days === 0 || clock.now() - prunedAt < dayMs) return
    prunedAt = clock.now()
    await ledger.prune(new Date(Date.now() - days * dayMs))
  }
  return new BackgroundTask({ run, clock, onError: (error) => log.error({ err: error }, 'history not pruned') })
}
