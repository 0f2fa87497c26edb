import type { EnsureEdit } from '../../dns/edits/zone-edit.ts'
import { keyOf } from '../../dns/record.ts'
import { toRow } from '../../dns/record-validation.ts'
import type { GivenZone, KnownRecord, KnownZone } from '../../ledger/given-zones.ts'

/**
 * The zone that a submitted list is compared with: of those that the client was given, oldest first, the one that
 * explains the list with the fewest removals, and of several the newest. A zone is no explanation where the client
 * evidently knows a later one.
 */
export function chooseGiven(
  given: GivenZone[],
  submitted: KnownZone,
  domain: string,
): { used: GivenZone; base: KnownZone } | undefined {
  const list = keysOf(submitted, domain)
  const zones = given.map((used) => ({ used, keys: keysOf(used.zone, domain) }))
  let best: Explanation | undefined
  for (const [index, { used, keys }] of zones.entries()) {
    if (isOutdated({ used, keys }, zones.slice(index + 1), list)) continue
    const removals = without(keys, list).length
    const additions = without(list, keys).length
    const explanation = { used, removals, additions }
    if (!best || !isBetter(best, explanation)) best = explanation
  }
  return best && { used: best.used, base: certainPart(best.used, list, domain) }
}

/** Without what an unfinished write changes: what the list has of that is added again, what it lacks is removed. */
function certainPart({ zone, base }: GivenZone, list: Set<string>, domain: string): KnownZone {
  if (!base) return zone
  const shown = byKey(zone, domain)
  const before = byKey(base, domain)
  const records = [...new Set([...shown.keys(), ...before.keys()])].flatMap((key) => {
    const now = zone.records[shown.get(key) ?? -1]
    const was = base.records[before.get(key) ?? -1]
    const isCertain = now && was && isUnchanged(was, now)
    return isCertain || !list.has(key) ? (now ?? was ?? []) : []
  })
  return { emailType: zone.emailType === base.emailType ? zone.emailType : undefined, records }
}

interface Explanation {
  used: GivenZone
  removals: number
  additions: number
}

// Processes that share a token: what one of them has removed, or is about to, is not added again by the list of another.
function isBetter(older: Explanation, newer: Explanation): boolean {
  if (older.removals !== newer.removals) return older.removals < newer.removals
  const { isSubmitted, base } = newer.used
  return (isSubmitted || base !== undefined) && older.additions < newer.additions
}

interface KeyedZone {
  used: GivenZone
  keys: Set<string>
}

function isOutdated({ used, keys }: KeyedZone, later: KeyedZone[], list: Set<string>): boolean {
  // The list has records of a later zone which this one has not.
  const added = without(list, keys)
  if (later.some((each) => added.some((key) => each.keys.has(key)))) return true
  // The token has gone on from its own list, and the list only takes back records that it has added itself.
  const last = later.at(-1)
  if (!last || !used.isSubmitted || used.base || added.length > 0) return false
  const hasReadSince = later.some((each) => !each.used.isSubmitted)
  if (!hasReadSince && list.size < keys.size) return false
  const own = [keys, ...later.flatMap((each) => (each.used.isSubmitted ? [each.keys] : []))]
  return without(last.keys, list).every((key) => own.some((known) => known.has(key)))
}

const without = (keys: Set<string>, others: Set<string>) =>
  [...keys].filter((key) => !others.has(key))

/** The edit that makes of one zone the other, and which records of the other its `present` are. */
export function differenceOf(base: KnownZone, submitted: KnownZone, domain: string) {
  const before = byKey(base, domain)
  const after = byKey(submitted, domain)
  const changed = [...after].filter(([key, index]) => {
    const record = submitted.records[index]
    const known = base.records[before.get(key) ?? -1]
    return record && !(known && isUnchanged(known, record))
  })
  const indexes = changed.map(([, index]) => index)
  const removed = [...before].filter(([key]) => !after.has(key))
  const { emailType } = submitted
  const edit: EnsureEdit = {
    kind: 'ensure',
    present: recordsAt(submitted, indexes).map(({ spelling: _, ...record }) => record),
    absent: recordsAt(
      base,
      removed.map(([, index]) => index),
    ).map(({ name, type, address }) => ({ name, type, address })),
    ...(emailType !== undefined && emailType !== base.emailType && { emailType }),
  }
  return { edit, indexes }
}

const recordsAt = ({ records }: KnownZone, indexes: number[]): KnownRecord[] =>
  indexes.flatMap((index) => records[index] ?? [])

// An absent TTL or preference stays as it is.
const isUnchanged = (known: KnownRecord, { ttl, mx_pref }: KnownRecord) =>
  (ttl ?? known.ttl) === known.ttl && (mx_pref ?? known.mx_pref) === known.mx_pref

const keysOf = (zone: KnownZone, domain: string) => new Set(byKey(zone, domain).keys())

// Of equal records the registrar keeps the first.
function byKey({ records }: KnownZone, domain: string): Map<string, number> {
  const keys = new Map<string, number>()
  for (const [index, record] of records.entries()) {
    const key = keyOf(toRow(record, domain).row, domain)
    if (!keys.has(key)) keys.set(key, index)
  }
  return keys
}
