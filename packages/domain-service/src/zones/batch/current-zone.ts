import { type Clock, delay } from '../../clock.ts'
import type { Zone } from '../../dns/record.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { BatchCalls } from './batch-calls.ts'
import { isSame } from './zone-comparison.ts'

interface Options {
  ledger: Ledger
  clock: Clock
  lookAgainMs: number
}

const looks = 3

/**
 * The zone to base a write on. Soon after our own write a zone that differs may be an outdated answer of the registrar,
 * and a write based on it would undo that one: then the zone is read again, after a pause if it is the former zone.
 */
export async function readCurrent(
  { ledger, clock, lookAgainMs }: Options,
  calls: BatchCalls,
  domain: string,
): Promise<Zone> {
  const last = await ledger.lastSend(domain)
  for (let look = 1; ; look++) {
    const zone = await calls.read()
    if (!last || look === looks || isSame(zone, last.found)) return zone
    const isFormer = isSame(zone, last.base)
    if (!isFormer && look > 1) return zone
    if (isFormer) await delay(clock, lookAgainMs)
  }
}
