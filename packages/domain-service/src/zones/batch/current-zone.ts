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
 * of them left. The zone before a send has to be seen four times, with pauses; any other zone twice.
 */
export async function readCurrent(
  { clock, lookAgainMs, recent }: Options,
  calls: Pick<BatchCalls, 'read'>,
): Promise<Zone> {
  let previous: Zone | undefined
  for (let look = 1; ; look++) {
    const zone = await calls.read()
    const origin = originOf(zone, recent)
    const isRepeated = previous !== undefined && isSame(zone, previous)
    if (recent.length === 0 || origin === 'sent' || look === looks) return zone
    if (origin === 'elsewhere' && isRepeated) return zone
    if (origin === 'replaced') await delay(clock, lookAgainMs)
    previous = zone
  }
}

/**
 * Which recent sends explain a zone. The newest one that knows it decides, since a zone may come back: `sent`, it left
 * this zone; `replaced`, it replaced it. A send that may not be done proves nothing that an earlier one contradicts.
 */
export function originOf(zone: Zone, recent: RecentSend[]): 'sent' | 'replaced' | 'elsewhere' {
  let mayBeSent = false
  for (const send of recent) {
    if (isSame(zone, send.zone)) {
      if (send.isDone) return 'sent'
      mayBeSent = true
    } else if (isSame(zone, send.base)) return 'replaced'
  }
  return mayBeSent ? 'sent' : 'elsewhere'
}
