import { hash } from 'node:crypto'
import { name, now, type Sql, type SqlTransaction, sql } from '@domains-and-files/persistence'
import {
  contentOf,
  type Delta,
  differenceOf,
  filterDelta,
  isEmptyDelta,
  isParking,
  keyOf,
  type Row,
  subtract,
  withDelta,
  type Zone,
} from '../dns/record.ts'
import { lateMs, outsideReason, type SendOutcome } from './change.ts'
import { storeEffects } from './changes.ts'
import { findKnown, type KnownRow, KnownZoneReads } from './known-zone-reads.ts'
import { possibleZones, recentMs, type SentZone } from './sends.ts'
import { appendChangeEvents } from './stored-change.ts'
import { getZones, putZones, zoneDigest } from './zone-snapshots.ts'

// The known zone of each domain: the first read, and all changes since, our own and those made outside. What a read shows
// beyond it was changed outside.

const knownZones = name('known_zones')
const changes = name('changes')

/** A difference counts as a change made outside once two reads at least this far apart show it. */
const confirmMs = 1_000

/** By `+` or `-` and a row's content: when a read first showed this difference, and when a read last did not. */
type Pending = Record<string, { first: number; since: number }>

/**
 * When keys of rows, or the email type, were last changed outside, within `lateMs`. What our own sends changed is stored
 * in the rows of `sends`.
 */
type Touched = Record<string, number>

const emailTypeKey = 'email type'
/** Key of the time when a late write was found: outdated answers may show any row that it undid. */
const lateWriteKey = 'late write'

/** The known zones: every read of the registrar is compared with them. */
export class KnownZones extends KnownZoneReads {
  readonly #unsynced: Sql

  /** `unsynced`: commits without fsync, for writes that a power cut may undo. */
  constructor(database: Sql, unsynced = database) {
    super(database)
    this.#unsynced = unsynced
  }

  /**
   * Records what a zone read `ageMs` ago shows as changed outside. Rows that `isIgnored` are adopted without a change.
   * @returns the id of the recorded change, if there is one.
   */
  async compare(
    zone: Zone,
    { ageMs, isIgnored }: { ageMs: number; isIgnored: (row: Row, domain: string) => boolean },
  ): Promise<number | undefined> {
    const { domain } = zone
    const seen = await findKnown(this.sql, domain, sql``)
    // Most reads show the known zone: they need no lock, and at most one commit a second.
    if (seen?.zone === zoneDigest(zone)) {
      const readAt = seen.now - ageMs
      if (seen.pending !== '{}' || readAt - seen.read_at >= confirmMs)
        await this.#unsynced.run(sql`update ${knownZones} set read_at = ${readAt}, pending = '{}'
          where domain = ${domain} and zone = ${seen.zone} and read_at < ${readAt}`)
      return undefined
    }
    return this.sql.transaction(async (transaction) => {
      const row = await findKnown(transaction, domain)
      if (!row) {
        await insertKnown(transaction, zone, ageMs)
        return undefined
      }
      const readAt = row.now - ageMs
      if (readAt <= row.read_at) return undefined
      const snapshot = (await getZones(transaction, [row.zone]))(row.zone)
      const known = { ...zone, ...snapshot, emailType: snapshot.emailType ?? zone.emailType }
      const found = differenceOf(known, zone, domain)
      if (isEmptyDelta(found)) {
        await transaction.run(sql`update ${knownZones} set read_at = ${readAt}, pending = '{}'
          where domain = ${domain}`)
        return undefined
      }
      const isForeign = (each: Row) => !isIgnored(each, domain)
      const relevant = filterDelta(found, isForeign)
      if (!(await isCurrent(transaction, relevant, { domain, row }))) return undefined
      const pending: Pending = {}
      const seen = settledPart(relevant, { domain, row, readAt, pending })
      const ignored = filterDelta({ ...found, emailType: undefined }, (each) => !isForeign(each))
      const changed = withDelta(withDelta(known, ignored, domain), seen.outside, domain)
      await putZones(transaction, [changed])
      const touched = touch(row, seen.outside, domain)
      await transaction.run(sql`update ${knownZones} set zone = ${zoneDigest(changed)}, read_at = ${readAt},
        pending = ${JSON.stringify(pending)}, touched = ${JSON.stringify(touched)} where domain = ${domain}`)
      if (isEmptyDelta(seen.outside)) return undefined
      const after = { ...known, ...withDelta(known, seen.outside, domain) }
      return insertEntry(transaction, { before: known, after, ...seen })
    })
  }
}

/** Adds the effect of our own send to the known zone, so that no read takes it for a change made outside. */
export async function recordOwnSend(
  transaction: SqlTransaction,
  { send, known: row }: { send: SentZone; known: KnownRow | undefined },
  { state, found, latest: later }: SendOutcome,
): Promise<void> {
  const latest = later ?? found
  if (!latest || (state !== 'settled' && state !== 'closed')) return
  const { domain } = latest
  if (!row) return insertKnown(transaction, latest, 0)
  // Changes that a late write undid, and no repair restored, leave the known zone, too: nothing was changed outside.
  const lateSince = send.late_since ?? (later ? send.started_at : undefined)
  const isAlone = row.zone === send.base && send.zone === zoneDigest(latest)
  if (isAlone && lateSince === undefined) return setKnown(transaction, domain, latest)
  const zoneOf = await getZones(transaction, [send.base, send.zone, row.zone])
  const sent = differenceOf(zoneOf(send.base), zoneOf(send.zone), domain)
  const known = zoneOf(row.zone)
  const emptied = zoneOf(send.zone).rows.length === 0
  const done: Delta = {
    added: [
      ...subtract(sent.added, subtract(sent.added, latest.rows, domain), domain),
      ...latest.rows.filter((each) => emptied && isParking(each, domain)),
    ],
    removed: subtract(sent.removed, latest.rows, domain),
    emailType: sent.emailType === latest.emailType ? sent.emailType : undefined,
  }
  const own = { ...latest, ...withDelta(known, done, domain) }
  if (lateSince === undefined) {
    // In the registrar's spelling, so that the next read has the same digest.
    const isAll = latest.emailType !== undefined && isEmptyDelta(differenceOf(own, latest, domain))
    const now = isAll ? latest : own
    await putZones(transaction, [now])
    return setKnown(transaction, domain, now)
  }
  const touched = await touchedSince(transaction, lateSince, { domain, row, except: send.id })
  const undone = filterDelta(differenceOf(own, latest, domain), (each) =>
    touched.has(touchedKey(each, domain)),
  )
  const after = { ...own, ...withDelta(own, { ...undone, emailType: undefined }, domain) }
  await putZones(transaction, [after])
  await setKnown(transaction, domain, after)
  const late = JSON.stringify({ ...JSON.parse(row.touched), [lateWriteKey]: row.now })
  await transaction.run(sql`update ${knownZones} set touched = ${late} where domain = ${domain}`)
}

async function setKnown(transaction: SqlTransaction, domain: string, zone: Zone) {
  await transaction.run(
    sql`update ${knownZones} set zone = ${zoneDigest(zone)} where domain = ${domain}`,
  )
}

async function insertKnown(transaction: SqlTransaction, zone: Zone, ageMs: number) {
  await putZones(transaction, [zone])
  await transaction.run(sql`insert into ${knownZones} (domain, zone, read_at, pending, touched)
    values (${zone.domain}, ${zoneDigest(zone)}, ${now} - ${ageMs}, '{}', '{}')
    on conflict (domain) do nothing`)
}

/**
 * Whether a difference proves a change made outside. It may be an outdated answer: rows as they were before a change or a
 * late write of the last minute. Or it may be our own send, without a final outcome or carried out late.
 */
async function isCurrent(
  transaction: SqlTransaction,
  { added, removed, emailType }: Delta,
  { domain, row }: { domain: string; row: KnownRow },
): Promise<boolean> {
  const touched = await touchedSince(transaction, row.now - recentMs, { domain, row, except: 0 })
  const keys = [lateWriteKey, ...keysOf({ added, removed, emailType }, domain)]
  if (keys.some((key) => touched.has(key))) return false
  const possible = await possibleZones(transaction, domain)
  return possible.every(
    (zone) =>
      subtract(added, zone.rows, domain).length === added.length &&
      subtract(removed, subtract(removed, zone.rows, domain), domain).length === removed.length &&
      (emailType === undefined || emailType !== zone.emailType),
  )
}

interface Reading {
  domain: string
  row: KnownRow
  readAt: number
  /** Receives the differences that a later read has to confirm. */
  pending: Pending
}

/** The confirmed part of a difference, when it was first seen, and when the zone was last seen without it. */
function settledPart(found: Delta, { domain, row, readAt, pending }: Reading) {
  const before: Pending = JSON.parse(row.pending)
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
  const { added, removed, emailType } = found
  const isNew = emailType !== undefined && isSettled(`${emailTypeKey} ${emailType}`)
  const outside: Delta = {
    added: added.filter((each) => isSettled(`+${contentOf(each, domain)}`)),
    removed: removed.filter((each) => isSettled(`-${contentOf(each, domain)}`)),
    emailType: isNew ? emailType : undefined,
  }
  return { outside, first, since }
}

// Hashed: a record can be long, and many can change in ten minutes.
const touchedKey = (each: Row, domain: string) =>
  hash('sha256', keyOf(each, domain), 'base64url').slice(0, 22)

const keysOf = ({ added, removed, emailType }: Delta, domain: string) => [
  ...[...added, ...removed].map((each) => touchedKey(each, domain)),
  ...(emailType === undefined ? [] : [emailTypeKey]),
]

function touch(row: KnownRow, outside: Delta, domain: string): Touched {
  const before: Touched = JSON.parse(row.touched)
  const recent = Object.entries(before).filter(([, at]) => at > row.now - lateMs)
  return Object.fromEntries([...recent, ...keysOf(outside, domain).map((key) => [key, row.now])])
}

/** Keys that were changed since a time, outside or by our own sends, without the send `except`. */
async function touchedSince(
  transaction: SqlTransaction,
  since: number,
  { domain, row, except }: { domain: string; row: KnownRow; except: number },
): Promise<Set<string>> {
  const own = await transaction.all<{ base: string; zone: string }>(sql`
    select base, zone from ${name('sends')} where domain = ${domain} and ended_at >= ${since} and id <> ${except}
      and state in ('settled', 'closed') and found is not null`)
  const zoneOf = await getZones(
    transaction,
    own.flatMap(({ base, zone }) => [base, zone]),
  )
  const outside = Object.entries(JSON.parse(row.touched) as Touched) // `touch` wrote it.
  return new Set([
    ...own.flatMap(({ base, zone }) =>
      keysOf(differenceOf(zoneOf(base), zoneOf(zone), domain), domain),
    ),
    ...outside.filter(([, at]) => at >= since).map(([key]) => key),
  ])
}

async function insertEntry(
  transaction: SqlTransaction,
  { before, after, first, since }: { before: Zone; after: Zone; first: number; since: number },
): Promise<number> {
  const row = await transaction.get<{ id: number }>(sql`
    insert into ${changes} (domain, by, caller, request_id, reason, status, is_async, verified, created_at, sent_at,
      ended_at, seen_since, warnings)
    values (${before.domain}, '', '', ${outsideReason}, ${outsideReason}, 'confirmed', 0, 1, ${first}, ${first},
      ${now}, ${since}, '[]') returning id`)
  if (!row) throw new Error('change was not inserted')
  await storeEffects(transaction, [{ id: row.id, before, after, warnings: [] }])
  await appendChangeEvents(transaction, [row.id])
  return row.id
}
