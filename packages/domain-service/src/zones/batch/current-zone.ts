import { type Clock, delay, HttpError } from '@domains-and-files/http'
import type { Reservation } from '../../budget/waiting-calls.ts'
import type { Domain } from '../../dns/domain-name.ts'
import { type Row, toRecord } from '../../dns/record.ts'
import { differenceOf, isParking, isSameRows, type Zone } from '../../dns/zone.ts'
import type { ChangeRequest, LateSend, Ledger, RecentSend } from '../../ledger/ledger.ts'
import type { RegistrarClient } from '../../registrar/client.ts'

// The zone at the registrar as a batch reads, compares and replaces it.

// Maximum age of a read that a write is based on: the write undoes what other tools have written since. Under a second
// from the first byte of the read's request to that of the write's, with a margin for the resolution of clocks.
const maxReadAgeMs = 980

/** Thrown at the moment of sending: the zone was read too long ago. Nothing was sent. */
export class StaleRead extends HttpError {
  constructor() {
    const detail = 'The registrar answers so slowly that its zones are outdated at once'
    super(503, 'registrar_busy', `${detail}: try again later`, { headers: { 'retry-after': '10' } })
  }
}

interface CallOptions {
  registrar: RegistrarClient
  clock: Clock
  domain: Domain
  /** `checkLease` is called right before a zone is sent. @throws {HttpError} where this process may not send it any more. */
  queue: { checkLease(): void }
}

/** The registrar calls of one batch, with the slots reserved for them and the age of the last read. */
export class BatchCalls implements Disposable {
  readonly #options: CallOptions
  #reservation: Reservation
  #readAt = Number.NEGATIVE_INFINITY
  #hasSent = false
  #readBacks: [zone: Zone, readAt: number][] = []

  constructor(options: CallOptions, reservation: Reservation) {
    this.#options = options
    this.#reservation = reservation
  }

  /** Holds slots for `calls` further calls, ahead of other priorities, so that none of these calls waits. */
  async ensure(calls: number): Promise<void> {
    if (this.#reservation.slots >= calls) return
    const { quota } = this.#options.registrar
    quota.release(this.#reservation)
    this.#reservation = await quota.reserve(calls, { priority: 'follow-up' })
  }

  get isFresh(): boolean {
    return this.#options.clock.now() - this.#readAt <= maxReadAgeMs
  }

  async read(): Promise<Zone> {
    const { registrar, domain } = this.#options
    return registrar.zone(domain, this.#reservation, (zone, readAt) => {
      this.#readAt = readAt
      if (this.#hasSent) this.#readBacks.push([zone, readAt])
      else registrar.onZone(zone, readAt)
    })
  }

  // Compared late: changes made outside can be told from our own send only once its outcome is recorded.
  #compareReadBacks() {
    for (const [zone, readAt] of this.#readBacks.splice(0))
      this.#options.registrar.onZone(zone, readAt)
  }

  /** The email type by getInfo; undefined where that does not say. */
  emailType(): Promise<string | undefined> {
    const { registrar, domain } = this.#options
    return registrar.emailType(domain, this.#reservation)
  }

  /** @throws {CallFailed}, {StaleRead} if the zone was read more than a second before the moment of sending. */
  replace(zone: Zone): Promise<void> {
    const { registrar, domain, queue } = this.#options
    this.#compareReadBacks()
    return registrar.replaceZone(domain, zone, this.#reservation, () => {
      if (!this.isFresh) throw new StaleRead()
      queue.checkLease()
      this.#hasSent = true
    })
  }

  [Symbol.dispose]() {
    this.#compareReadBacks()
    this.#options.registrar.quota.release(this.#reservation)
  }
}

/** Pause before the zone is read again where the answer may be outdated. */
export const lookAgainMs = 1_000

interface ReadOptions {
  clock: Clock
  /** Newest first. */
  recent: RecentSend[]
  /** Whether the registrar may have carried out a given-up send that leaves this zone. */
  isLate: (zone: Zone) => Promise<boolean>
}

const maxReads = 4

/**
 * The zone to base a write on; every such zone is read here. The registrar's answer may be outdated, and a write based on
 * it would undo the write before. So after our own sends an answer counts at once only if it is the zone that the newest
 * of them left. The zone before a send counts after four reads, with pauses, that show nothing newer. A zone that no
 * recent send explains counts as soon as the next read repeats it.
 */
export async function readCurrent(
  { clock, recent, isLate }: ReadOptions,
  calls: Pick<BatchCalls, 'read'>,
): Promise<Zone> {
  const seen: Seen[] = []
  for (let reads = 1; ; reads++) {
    const zone = await calls.read()
    const age = ageOf(zone, recent)
    if (age === 0 || recent.length === 0) return zone
    const previous = seen.at(-1)
    seen.push({ zone, age })
    if (age === -1 && previous && isSame(zone, previous.zone)) return zone
    if (reads === maxReads) return choose(seen, isLate)
    if (age > 0) await delay(clock, lookAgainMs)
  }
}

interface Seen {
  zone: Zone
  age: number
}

// The newest zone: older ones are outdated answers. Exception: an old zone that a late write has left is current; if that
// answer is outdated, too, the confirmed zone is still restored. A zone that no send explains has to be read twice.
async function choose(seen: Seen[], isLate: ReadOptions['isLate']): Promise<Zone> {
  const [newest, ...older] = seen.filter(({ age }) => age > 0).sort((a, b) => a.age - b.age)
  const unexplained = seen.filter(({ age }) => age < 0)
  const latest = unexplained.at(-1)
  if (latest && (!newest || unexplained.length > 1)) return latest.zone
  if (!newest) throw new RangeError('no zone was read')
  for (const { zone } of older) if (await isLate(zone)) return zone
  return newest.zone
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
  const rows =
    wanted.rows.length === 0 ? found.rows.filter((row) => !isParking(row, domain)) : found.rows
  return isSameRows(rows, wanted.rows, domain) && isSameEmailType(found.emailType, wanted.emailType)
}

const isSameEmailType = (found: string | undefined, wanted: string | undefined) =>
  found === undefined || wanted === undefined || found === wanted

/** One sentence for each way in which a zone differs from what was sent. */
export function describeDifference(found: Zone, wanted: Zone): string {
  const { domain } = wanted
  const { added, removed } = differenceOf(found, wanted)
  const missing = describe(added, domain)
  const unexpected = describe(removed, domain)
  return [
    'The registrar accepted the change, but the zone differs from what was sent',
    missing && `missing: ${missing}`,
    unexpected && `unexpected: ${unexpected}`,
    !isSameEmailType(found.emailType, wanted.emailType) &&
      `email type ${found.emailType} instead of ${wanted.emailType}`,
  ]
    .filter(Boolean)
    .join('. ')
}

function describe(rows: Row[], domain: string): string {
  const records = rows.slice(0, 5).map((row) => {
    const { name, type, address, ttl, mx_pref } = toRecord(row, domain)
    const pref = mx_pref === undefined ? '' : `, mx_pref ${mx_pref}`
    return `${name} ${type} ${address.slice(0, 80)} (ttl ${ttl}${pref})`
  })
  return [...records, ...(rows.length > 5 ? [`${rows.length - 5} more`] : [])].join('; ')
}

/** The outdated given-up send that the registrar carried out late, if the zone is exactly as that send leaves it. */
export async function findLateWrite(ledger: Ledger, zone: Zone): Promise<LateSend | undefined> {
  const sends = await ledger.lateSends(zone.domain)
  return sends.find((send) => isSame(zone, send.zone) && !isSame(zone, send.confirmed))
}

/** The request by which the service itself puts the confirmed zone back. */
export const repairRequest = (domain: string, { confirmed }: LateSend): ChangeRequest => ({
  domain,
  by: 'domain-service',
  requestId: 'late-write',
  reason: 'late_write',
  edit: { kind: 'restore', emailType: confirmed.emailType, rows: confirmed.rows },
  force: false,
})
