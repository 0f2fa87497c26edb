import { type Clock, delay } from '@domains-and-files/http'
import { parseRow, type Row } from '../../dns/record.ts'
import { differenceOf, isParking, isSameRows, type Zone } from '../../dns/zone.ts'
import type { ChangeRequest, DomainSends, LateSend, QueuedChange, RecentSend } from '../../ledger/ledger.ts'

// Which of the zones that the registrar shows is the current one, and how zones are compared.

/** Pause before the zone is read again where the answer may be outdated. */
const lookAgainMs = 1_000

/** Where a zone is read. */
interface Reader {
  read(): Promise<Zone>
  clock: Clock
}

interface Seen {
  zone: Zone
  /** See `ageOf`. */
  age: number
  /** Whether the answer before was the same. */
  isRepeated: boolean
}

/**
 * Reads a zone until its answer counts, at most `maxReads` times, with pauses while it shows an old zone. The zone that
 * the newest send left counts at once, one that no recent send explains as soon as the next read repeats it. With
 * `mayEnd` there are no pauses: a repeated answer of which it is true counts, too.
 * @returns all answers, oldest first.
 */
export async function readUntilCurrent(
  { reader, recent, maxReads }: { reader: Reader; recent: RecentSend[]; maxReads: number },
  mayEnd?: (zone: Zone) => boolean,
): Promise<{ seen: Seen[]; last: Seen }> {
  for (const seen: Seen[] = []; ; ) {
    const zone = await reader.read()
    const isRepeated = seen.slice(-1).some((previous) => isSame(zone, previous.zone))
    const last = { zone, age: ageOf(zone, recent), isRepeated }
    seen.push(last)
    const isAccepted = last.age === 0 || (isRepeated && (last.age < 0 || mayEnd?.(zone)))
    if (isAccepted || seen.length === maxReads) return { seen, last }
    if (last.age > 0 && !mayEnd) await delay(reader.clock, lookAgainMs)
  }
}

/**
 * The zone to base a write on; every such zone is read here. The registrar's answer may be outdated, and a write based on
 * it would undo the write before. The zone before a send counts after four reads that show nothing newer.
 */
export async function readCurrent(
  reader: Reader,
  { recent, late }: Pick<DomainSends, 'recent' | 'late'>,
): Promise<Zone> {
  const { seen, last } = await readUntilCurrent({ reader, recent, maxReads: recent.length === 0 ? 1 : 4 })
  return last.age === 0 ? last.zone : choose(seen, late)
}

// The newest zone: older ones are outdated answers. Exception: an old zone that a late write has left is current; if that
// answer is outdated, too, the confirmed zone is still restored. A zone that no send explains has to be read twice.
function choose(seen: Seen[], late: LateSend[]): Zone {
  const [newest, ...older] = seen.filter(({ age }) => age > 0).sort((a, b) => a.age - b.age)
  const unexplained = seen.filter(({ age }) => age < 0)
  const latest = unexplained.at(-1)
  if (latest && (!newest || unexplained.length > 1)) return latest.zone
  if (!newest) throw new RangeError('no zone was read')
  return older.find(({ zone }) => findLateWrite(late, zone))?.zone ?? newest.zone
}

/**
 * How many sends ago this zone was replaced; 0: the newest send left it; -1: no recent send explains it. A zone may come
 * back, so the newest send that explains it decides; a send that may not be done yields to an earlier one.
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

/**
 * Whether a zone is as it was sent, as a multiset of records, modulo what the registrar normalizes. An answer without
 * email type says nothing about it.
 */
export function isSame(found: Zone, wanted: Zone): boolean {
  const { domain } = found
  // The registrar adds its parking records to an empty zone.
  const rows = wanted.rows.length === 0 ? found.rows.filter((row) => !isParking(row, domain)) : found.rows
  return isSameRows(rows, wanted.rows) && isSameEmailType(found.emailType, wanted.emailType)
}

const isSameEmailType = (found: string | undefined, wanted: string | undefined) =>
  found === undefined || wanted === undefined || found === wanted

/** One sentence for each way in which a zone differs from what was sent. */
export function describeDifference(found: Zone, wanted: Zone): string {
  const { added, removed } = differenceOf(found, wanted)
  const [missing, unexpected] = [describe(added), describe(removed)]
  return [
    'The change was sent, but the zone differs from it',
    missing && `missing: ${missing}`,
    unexpected && `unexpected: ${unexpected}`,
    !isSameEmailType(found.emailType, wanted.emailType) &&
      `email type ${found.emailType} instead of ${wanted.emailType}`,
  ]
    .filter(Boolean)
    .join('. ')
}

function describe(rows: Row[]): string {
  const records = rows.slice(0, 5).map((row) => {
    const { name, type, address, ttl, mx_pref } = parseRow(row).record
    const pref = mx_pref === undefined ? '' : `, mx_pref ${mx_pref}`
    return `${name} ${type} ${address.slice(0, 80)} (ttl ${ttl}${pref})`
  })
  return [...records, ...(rows.length > 5 ? [`${rows.length - 5} more`] : [])].join('; ')
}

/** The outdated given-up send that the registrar carried out late, if the zone is exactly as that send leaves it. */
export const findLateWrite = (sends: LateSend[], zone: Zone): LateSend | undefined =>
  sends.find((send) => isSame(zone, send.zone) && !isSame(zone, send.confirmed))

/** A late write to undo, by a change of the service itself before all others; its id is 0 until the ledger has it. */
export interface LateRepair {
  send: LateSend
  write: QueuedChange
}

/** The repair of this zone, if a late write left it, by the confirmed zone; `known`, where that is still to be made. */
export function findRepair(zone: Zone, late: LateSend[], known?: LateRepair) {
  if (known && isSame(zone, known.send.zone)) return known
  const send = findLateWrite(late, zone)
  if (!send) return undefined
  const request: ChangeRequest = {
    domain: zone.domain,
    by: 'domain-service',
    requestId: 'late-write',
    reason: 'late_write',
    edit: { kind: 'restore', emailType: send.confirmed.emailType, rows: send.confirmed.rows },
    force: true,
  }
  return { send, write: { id: known?.write.id ?? 0, request, isAsync: false } }
}
