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
 * of them left. Else four reads decide, with pauses while they show the zone before a send. A zone that no recent send
 * explains counts as soon as the next read repeats it.
 */
export async function readCurrent(
  { clock, lookAgainMs, recent }: Options,
  calls: Pick<BatchCalls, 'read'>,
): Promise<Zone> {
  const seen: Seen[] = []
  for (let look = 1; ; look++) {
    const zone = await calls.read()
    const age = ageOf(zone, recent)
    if (age === 0 || recent.length === 0) return zone
    const previous = seen.at(-1)
    seen.push({ zone, age })
    if (age === -1 && previous && isSame(zone, previous.zone)) return zone
    if (look === looks) return mostFrequent(seen)
    if (age > 0) await delay(clock, lookAgainMs)
  }
}

interface Seen {
  zone: Zone
  age: number
}

// Of equally frequent zones the newest: the older one must be outdated. The frequent one may be a late write, which is old.
function mostFrequent(seen: Seen[]): Zone {
  const countOf = ({ age }: Seen) => seen.filter((each) => each.age === age).length
  const [first] = seen.toReversed().sort((a, b) => countOf(b) - countOf(a) || a.age - b.age)
  if (!first) throw new RangeError('no zone was read')
  return first.zone
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
