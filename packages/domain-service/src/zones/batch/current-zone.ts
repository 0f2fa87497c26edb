import { type Clock, delay } from '../../clock.ts'
import type { Zone } from '../../dns/record.ts'
import type { RecentSend } from '../../ledger/ledger.ts'
import type { BatchCalls } from './batch-calls.ts'
import { isSame } from './zone-comparison.ts'

interface Options {
  clock: Clock
  /** Pause before the zone is read again. */
  lookAgainMs: number
  /** Newest first. */
  recent: RecentSend[]
}

const looks = 4

/**
 * The zone to base a write on; every such zone is read here. The registrar's answer may be outdated, and a write based on
 * it would undo the write before. So after our own sends an answer counts at once only if it is the zone that the newest
 * of them left. The zone before a send counts after four reads, with pauses, that show nothing newer; any other zone
 * counts when the next read repeats it.
 */
export async function readCurrent(
  { clock, lookAgainMs, recent }: Options,
  calls: Pick<BatchCalls, 'read'>,
): Promise<Zone> {
  let newest: { zone: Zone; age: number } | undefined
  let previous: Zone | undefined
  for (let look = 1; ; look++) {
    const zone = await calls.read()
    const age = ageOf(zone, recent)
    if (age === 0 || recent.length === 0) return zone
    if (age === -1 && previous && isSame(zone, previous)) return zone
    if (!newest || age <= newest.age) newest = { zone, age }
    if (look === looks) return newest.zone
    if (age > 0) await delay(clock, lookAgainMs)
    previous = zone
  }
}

/**
 * How many sends ago this zone was replaced; 0: the newest send left it; -1: no recent send explains it. The newest send
 * that knows a zone decides, since a zone may come back, but one that may not be done proves nothing against an earlier.
 */
export function ageOf(zone: Zone, recent: RecentSend[]): number {
  let unproven = -1
  for (const [index, send] of recent.entries()) {
    if (isSame(zone, send.zone)) {
      if (send.isDone) return index
      if (unproven < 0) unproven = index
    } else if (isSame(zone, send.base)) return index + 1
  }
  return unproven
}
