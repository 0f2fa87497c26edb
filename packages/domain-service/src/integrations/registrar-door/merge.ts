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
  const list = byKey(submitted, domain)
  const zones = given.map((used) => ({ used, keys: byKey(used.zone, domain) }))
  let best: Explanation | undefined
  for (const each of zones) {
    if (isOutdated(each, zones, list)) continue
    const removals = without(each.keys, list).length
    const additions = without(list, each.keys).length
    const explanation = { ...each, removals, additions }
    if (!best || !isBetter(best, explanation)) best = explanation
  }
  return best && { used: best.used, base: certainPart(best, list, domain) }
}

/** Records by what identifies them, with their places in the zone. Of equal ones the registrar keeps the first. */
type Keyed = ReadonlyMap<string, { record: KnownRecord; index: number }>

function byKey({ records }: KnownZone, domain: string): Keyed {
  const keyed = new Map<string, { record: KnownRecord; index: number }>()
  for (const [index, record] of records.entries()) {
    const key = keyOf(toRow(record, domain).row, domain)
    if (!keyed.has(key)) keyed.set(key, { record, index })
  }
  return keyed
}

const without = (keys: Keyed, others: Keyed) => [...keys.keys()].filter((key) => !others.has(key))

interface KeyedZone {
  used: GivenZone
  keys: Keyed
}

interface Explanation extends KeyedZone {
  removals: number
  additions: number
}

/** Without what an unfinished write changes: what the list has of that is added again, what it lacks is removed. */
function certainPart(
  { used: { zone, base }, keys }: KeyedZone,
  list: Keyed,
  domain: string,
): KnownZone {
  if (!base) return zone
  const before = byKey(base, domain)
  const records = [...new Set([...keys.keys(), ...before.keys()])].flatMap((key) => {
    const [was, now] = [before.get(key)?.record, keys.get(key)?.record]
    const isCertain = now && was && isUnchanged(was, now)
    return isCertain || !list.has(key) ? (now ?? was ?? []) : []
  })
  return { emailType: zone.emailType === base.emailType ? zone.emailType : undefined, records }
}

// Processes that share a token: what one of them has removed, or is about to, is not added again by the list of another.
function isBetter(older: Explanation, newer: Explanation): boolean {
  if (older.removals !== newer.removals) return older.removals < newer.removals
  const { isSubmitted, base } = newer.used
  return (isSubmitted || base !== undefined) && older.additions < newer.additions
}

function isOutdated(zone: KeyedZone, zones: KeyedZone[], list: Keyed): boolean {
  const { used, keys } = zone
  const later = zones.slice(zones.indexOf(zone) + 1)
  // The list has records of a later zone which this one has not.
  const added = without(list, keys)
  if (later.some((each) => added.some((key) => each.keys.has(key)))) return true
  // The token has gone on from its own list, and the list only takes back records of its lists.
  const last = later.at(-1)
  if (!last || !used.isSubmitted || used.base || added.length > 0) return false
  const hasReadSince = later.some((each) => !each.used.isSubmitted)
  if (!hasReadSince && list.size < keys.size) return false
  const own = zones.filter((each) => each.used.isSubmitted)
  return without(last.keys, list).every((key) => own.some((each) => each.keys.has(key)))
}

/** The edit that makes of one zone the other, and which records of the other its `present` are. */
export function differenceOf(base: KnownZone, submitted: KnownZone, domain: string) {
  const before = byKey(base, domain)
  const after = byKey(submitted, domain)
  const changed = [...after]
    .filter(([key, { record }]) => {
      const known = before.get(key)?.record
      return !(known && isUnchanged(known, record))
    })
    .map(([, each]) => each)
  const { emailType } = submitted
  const edit: EnsureEdit = {
    kind: 'ensure',
    present: changed.map(({ record: { spelling: _, ...record } }) => record),
    absent: without(before, after)
      .flatMap((key) => before.get(key)?.record ?? [])
      .map(({ name, type, address }) => ({ name, type, address })),
    ...(emailType !== undefined && emailType !== base.emailType && { emailType }),
  }
  return { edit, indexes: changed.map(({ index }) => index) }
}

// An absent TTL or preference stays as it is.
const isUnchanged = (known: KnownRecord, { ttl, mx_pref }: KnownRecord) =>
  (ttl ?? known.ttl) === known.ttl && (mx_pref ?? known.mx_pref) === known.mx_pref
