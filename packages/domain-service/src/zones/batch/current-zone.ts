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
  /** Whether the registrar may have carried out a given-up send that leaves this zone. */
  isLate: (zone: Zone) => Promise<boolean>
}

const looks = 4

/**
 * The zone to base a write on; every such zone is read here. The registrar's answer may be outdated, and a write based on
 * it would undo the write before. So after our own sends an answer counts at once only if it is the zone that the newest
 * of them left. The zone before a send counts after four reads, with pauses, that show nothing newer. A zone that no
 * recent send explains counts as soon as the next read repeats it.
 */
export async function readCurrent(
  { clock, lookAgainMs, recent, isLate }: Options,
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
    if (look === looks) return choose(seen, isLate)
    if (age > 0) await delay(clock, lookAgainMs)
  }
}

interface Seen {
  zone: Zone
  age: number
}

// The newest, for the older ones must be outdated; but for a late write, which is old and yet current. Where that is an
// outdated answer, too, the confirmed zone is put back all the same. What no send explains has to be shown twice.
async function choose(seen: Seen[], isLate: Options['isLate']): Promise<Zone> {
  const [newest, ...older] = seen.filter(({ age }) => age > 0).sort((a, b) => a.age - b.age)
  const unexplained = seen.filter(({ age }) => age < 0)
  const latest = unexplained.at(-1)
  if (latest && (!newest || unexplained.length > 1)) return latest.zone
  if (!newest) throw new RangeError('no zone was read')
  for (const { zone } of older) if (await isLate(zone)) return zone
  return newest.zone
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
