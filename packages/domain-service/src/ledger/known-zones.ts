import { hash } from 'node:crypto'
import {
  forUpdate,
  name,
  now,
  type Sql,
  type SqlTransaction,
  type Statement,
  sql,
} from '@domains-and-files/persistence'
import { parseRow, type Row } from '../dns/record.ts'
import {
  type Delta,
  differenceOf,
  filterDelta,
  hasDelta,
  isEmptyDelta,
  isParking,
  subtract,
  withDelta,
  type Zone,
} from '../dns/zone.ts'
import { lateMs, type SendOutcome } from './change.ts'
import { isGivenUp, isOpen, recentMs } from './change-history.ts'
import { insertOutsideChange } from './changes.ts'
import { decodeZone, getZones, putZones, zoneDigest } from './zone-snapshots.ts'

// The known zone of each domain: the first read, and all changes since, our own and those made outside. What a read shows
// beyond it was changed outside.

const knownZones = name('known_zones')

/** A change made outside is a difference that two reads at least this far apart show. */
const confirmMs = 1_000

interface KnownRow {
  domain: string
  zone: string
  read_at: number
  /** JSON. By `+` or `-` and a row's content: when a read first showed this difference, and when a read last did not. */
  pending: string
  /** JSON. When keys of rows, or the email type, were last changed outside, within `lateMs`; `sends` has our own changes. */
  touched: string
  now: number
}

const emailTypeKey = 'email type'
/** Key of the time when a late write was found: outdated answers may show any row that it undid. */
const lateWriteKey = 'late write'

/** Every read of the registrar is compared with these. Times are milliseconds since 1970. */
export class KnownZones {
  readonly #sql: Sql
  readonly #unsynced: Sql

  /** `unsynced`: commits without fsync, for writes that a power cut may undo. */
  constructor(database: Sql, unsynced = database) {
    this.#sql = database
    this.#unsynced = unsynced
  }

  /** The zone as it was seen last, with our own changes since. */
  async find(domain: string): Promise<Zone | undefined> {
    const row = await findKnown(this.#sql, domain, sql``)
    return row && (await getZones(this.#sql, domain, [row.zone]))(row.zone)
  }

  /** When each domain was last seen, and whether a difference waits for a second read (1). */
  async sightings() {
    const rows = await this.#sql.all<{ domain: string; readAt: number; isPending: number }>(sql`
      select domain, read_at as "readAt", case when pending = '{}' then 0 else 1 end as "isPending" from ${knownZones}`)
    return new Map(rows.map((row) => [row.domain, row]))
  }

  /** Zones, and when they were last read; few at once: there may be 10,000 of 400 KB. */
  async *select(isWanted: (domain: string) => boolean): AsyncGenerator<{ zone: Zone; readAt: number }> {
    for (let last: string | undefined = ''; last !== undefined; ) {
      const rows: { domain: string; readAt: number; snapshot: Buffer }[] = await this.#sql.all(sql`
        select domain, read_at as "readAt", snapshot from ${knownZones} join ${name('zones')} on digest = zone
          where domain > ${last} order by domain limit 50`)
      for (const { domain, readAt, snapshot } of rows)
        if (isWanted(domain)) yield { zone: decodeZone(snapshot, domain), readAt }
      last = rows.at(-1)?.domain
    }
  }

  /**
   * Records what a zone read `ageMs` ago shows as changed outside. Rows that `isIgnored` are adopted without a change.
   * @returns the id of the recorded change, if there is one.
   */
  async compare(
    zone: Zone,
    { ageMs, isIgnored }: { ageMs: number; isIgnored: (row: Row) => boolean },
  ): Promise<number | undefined> {
    const { domain } = zone
    const seen = await findKnown(this.#sql, domain, sql``)
    // Most reads show the known zone: they need no lock, and at most one commit a second.
    if (seen?.zone === zoneDigest(zone)) {
      const readAt = seen.now - ageMs
      if (seen.pending !== '{}' || readAt - seen.read_at >= confirmMs)
        await this.#unsynced.run(sql`update ${knownZones} set read_at = ${readAt}, pending = '{}'
          where domain = ${domain} and zone = ${seen.zone} and read_at < ${readAt}`)
      return undefined
    }
    return this.#sql.transaction(async (transaction) => {
      const row = await findKnown(transaction, domain)
      if (!row) {
        await insertKnown(transaction, zone, ageMs)
        return undefined
      }
      const readAt = row.now - ageMs
      if (readAt <= row.read_at) return undefined
      const stored = (await getZones(transaction, domain, [row.zone]))(row.zone)
      const known = { ...stored, emailType: stored.emailType ?? zone.emailType }
      const found = differenceOf(known, zone)
      if (isEmptyDelta(found)) {
        await update(transaction, domain, sql`read_at = ${readAt}, pending = '{}'`)
        return undefined
      }
      const relevant = filterDelta(found, (each) => !isIgnored(each))
      if (!(await isCurrent(transaction, relevant, row))) return undefined
      const { pending, ...settled } = settle(relevant, row, readAt)
      const ignored = filterDelta({ ...found, emailType: undefined }, isIgnored)
      const changed = withDelta(withDelta(known, ignored), settled.outside)
      await putZones(transaction, [changed])
      const set = sql`zone = ${zoneDigest(changed)}, read_at = ${readAt}, pending = ${JSON.stringify(pending)},
        touched = ${touch(row, settled.outside)}`
      await update(transaction, domain, set)
      if (isEmptyDelta(settled.outside)) return undefined
      const after = withDelta(known, settled.outside)
      return insertOutsideChange(transaction, { before: known, after, ...settled })
    })
  }
}

/** Locks the row, unless `lock` is empty. */
export const findKnown = (database: SqlTransaction, domain: string, lock: Statement = forUpdate) =>
  database.get<KnownRow>(sql`select domain, zone, read_at, pending, touched, ${now} as now from ${knownZones}
    where domain = ${domain} ${lock}`)

const update = (transaction: SqlTransaction, domain: string, set: Statement) =>
  transaction.run(sql`update ${knownZones} set ${set} where domain = ${domain}`)

async function insertKnown(transaction: SqlTransaction, zone: Zone, ageMs: number) {
  await putZones(transaction, [zone])
  await transaction.run(sql`insert into ${knownZones} (domain, zone, read_at, pending, touched)
    values (${zone.domain}, ${zoneDigest(zone)}, ${now} - ${ageMs}, '{}', '{}')
    on conflict (domain) do nothing`)
}

/** Zones are digests, times are milliseconds since 1970. */
export interface SentZone {
  id: number
  base: string
  zone: string
  started_at: number
  /** The start of the first late write that this send repairs. */
  late_since: number | null
}

/** Adds the effect of our own send to the known zone, so that no read takes it for a change made outside. */
export async function recordOwnSend(
  transaction: SqlTransaction,
  { send, known: row }: { send: SentZone; known: KnownRow | undefined },
  { state, found, latest: later }: SendOutcome,
): Promise<void> {
  const latest = later ?? found
  if (!latest || (state !== 'settled' && state !== 'closed')) return
  if (!row) return insertKnown(transaction, latest, 0)
  const lateSince = send.late_since ?? (later ? send.started_at : undefined)
  const isAlone = lateSince === undefined && row.zone === send.base && send.zone === zoneDigest(latest)
  const { zone, touched } = isAlone
    ? { zone: latest, touched: row.touched }
    : await addOwnSend(transaction, { send, row, latest, lateSince })
  if (zone !== found) await putZones(transaction, [zone]) // The end of the send has stored that.
  await update(transaction, latest.domain, sql`zone = ${zoneDigest(zone)}, touched = ${touched}`)
}

/** The known zone with what `latest` shows of a send. `lateSince`: the start of a late write that was found or repaired. */
async function addOwnSend(
  transaction: SqlTransaction,
  { send, row, latest, lateSince }: { send: SentZone; row: KnownRow; latest: Zone; lateSince: number | undefined },
): Promise<{ zone: Zone; touched: string }> {
  const zoneOf = await getZones(transaction, latest.domain, [send.base, send.zone, row.zone])
  const sent = differenceOf(zoneOf(send.base), zoneOf(send.zone))
  const emptied = zoneOf(send.zone).rows.length === 0
  const done: Delta = {
    added: [
      ...subtract(sent.added, subtract(sent.added, latest.rows)),
      ...latest.rows.filter((each) => emptied && isParking(each, latest.domain)),
    ],
    removed: subtract(sent.removed, latest.rows),
    emailType: sent.emailType === latest.emailType ? sent.emailType : undefined,
  }
  const own = withDelta(zoneOf(row.zone), done)
  if (lateSince === undefined) {
    // In the registrar's spelling, so that the next read has the same digest.
    const isAll = latest.emailType !== undefined && isEmptyDelta(differenceOf(own, latest))
    return { zone: isAll ? latest : own, touched: row.touched }
  }
  // Changes that a late write undid, and no repair restored, leave the known zone, too: nothing was changed outside.
  const touched = await touchedSince(transaction, row, { since: lateSince, except: send.id })
  const isTouched = (each: Row) => touched.has(touchedKey(each))
  const undone = filterDelta(differenceOf(own, latest), isTouched)
  const late = JSON.stringify({ ...JSON.parse(row.touched), [lateWriteKey]: row.now })
  return { zone: withDelta(own, { ...undone, emailType: undefined }), touched: late }
}

/**
 * Whether a difference proves a change made outside. It may be an outdated answer: rows as they were before a change or a
 * late write of the last minute. Or it may be our own send, without a final outcome or carried out late.
 */
async function isCurrent(transaction: SqlTransaction, found: Delta, row: KnownRow) {
  const { added, removed, emailType } = found
  const touched = await touchedSince(transaction, row, { since: row.now - recentMs, except: 0 })
  if ([lateWriteKey, ...keysOf(found)].some((key) => touched.has(key))) return false
  const undone = { added: removed, removed: added }
  // The registrar may have carried them out, or may still do so.
  const sends = await transaction.all<{ zone: string }>(sql`select zone from ${name('sends')}
    where domain = ${row.domain} and ${isOpen}
    union select zone from ${name('sends')} where domain = ${row.domain} and ${isGivenUp}`)
  const zones = sends.map(({ zone }) => zone)
  const possible = zones.map(await getZones(transaction, row.domain, zones))
  return possible.every((zone) => hasDelta(zone, undone) && (emailType === undefined || emailType !== zone.emailType))
}

/**
 * The confirmed part of a difference, when it was first seen, and when the zone was last seen without it. `pending`: the
 * differences that a later read has to confirm.
 */
function settle({ added, removed, emailType }: Delta, row: KnownRow, readAt: number) {
  const before: typeof pending = JSON.parse(row.pending)
  const pending: Record<string, { first: number; since: number }> = {}
  let [first, since] = [readAt, readAt]
  const isSettled = (id: string) => {
    const known = before[id] ?? { first: readAt, since: row.read_at }
    if (readAt - known.first < confirmMs) {
      pending[id] = known
      return false
    }
    first = Math.min(first, known.first)
    since = Math.min(since, known.since)
    return true
  }
  const isNew = emailType !== undefined && isSettled(`${emailTypeKey} ${emailType}`)
  const outside: Delta = {
    added: added.filter((each) => isSettled(`+${parseRow(each).content}`)),
    removed: removed.filter((each) => isSettled(`-${parseRow(each).content}`)),
    emailType: isNew ? emailType : undefined,
  }
  return { outside, first, since, pending }
}

// Hashed: a record can be long, and many can change in ten minutes.
const touchedKey = (each: Row) => hash('sha256', parseRow(each).key, 'base64url').slice(0, 22)

const keysOf = ({ added, removed, emailType }: Delta) => [
  ...[...added, ...removed].map(touchedKey),
  ...(emailType === undefined ? [] : [emailTypeKey]),
]

function touch(row: KnownRow, outside: Delta): string {
  const before: Record<string, number> = JSON.parse(row.touched)
  const recent = Object.entries(before).filter(([, at]) => at > row.now - lateMs)
  const added = keysOf(outside).map((key) => [key, row.now])
  return JSON.stringify(Object.fromEntries([...recent, ...added]))
}

/** Keys that were changed since a time, outside or by our own sends, without the send `except`. */
async function touchedSince(
  transaction: SqlTransaction,
  { domain, touched }: KnownRow,
  { since, except }: { since: number; except: number },
): Promise<Set<string>> {
  const own = await transaction.all<{ base: string; zone: string }>(sql`
    select base, zone from ${name('sends')} where domain = ${domain} and ended_at >= ${since} and id <> ${except}
      and state in ('settled', 'closed') and found is not null`)
  const digests = own.flatMap(({ base, zone }) => [base, zone])
  const zoneOf = await getZones(transaction, domain, digests)
  const deltas = own.map(({ base, zone }) => differenceOf(zoneOf(base), zoneOf(zone)))
  const outside = Object.entries<number>(JSON.parse(touched))
  return new Set([...deltas.flatMap(keysOf), ...outside.filter(([, at]) => at >= since).map(([key]) => key)])
}
