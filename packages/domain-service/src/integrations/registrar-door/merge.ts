import type { EnsureEdit } from '../../dns/edits/zone-edit.ts'
import { keyOf, toRow } from '../../dns/record.ts'
import type { Comparison, GivenZone, KnownRecord, KnownZone } from '../../ledger/given-zones.ts'

/**
 * The zone that a submitted list is compared with, of those that the client was given, oldest first. The processes that
 * share a token cannot be told apart: what one has added, the list of another one must not remove.
 * A list that seems to come again may be that of another process where others read or wrote meanwhile.
 */
export function chooseGiven(
  given: GivenZone[],
  submitted: KnownZone,
  domain: string,
): Comparison | undefined {
  const list = byKey(submitted, domain)
  const zones = given.map((used) => keyedZoneOf(used, domain))
  const live = latest(zones)
  const best = findExplanation(zones, { list, live, text: JSON.stringify(submitted) })
  if (!best) return undefined
  const { zone, isRepeat, age } = best
  const before = latest(zones.slice(0, zones.indexOf(zone)))
  const isGone = (key: string) =>
    isRepeat && zone.keys.has(key) && !live.has(key) && !before.has(key)
  // A list that was refused as unclear adds what it has, and removes nothing.
  const rest = [...live.values()].filter(({ key }) => list.has(key))
  const base =
    zone.used.copies < 0
      ? { emailType: submitted.emailType, records: rest.map(({ record }) => record) }
      : certainPart(zone, list, { zones, domain, isGone })
  const after = withDifference(live, compare(byKey(base, domain), list))
  const mayRepeat = isRepeat && age > 0
  return {
    used: zone.used,
    base,
    mayRepeat,
    isUnclear: mayRepeat && zone.used.copies > 0 && [...list.keys()].some((key) => !after.has(key)),
  }
}

/** The zone that explains the list best, whether the list repeats it, and how many were given after it. */
function findExplanation(
  zones: KeyedZone[],
  { list, live, text }: { list: Keyed; live: Keyed; text: string },
) {
  const later = new Set<string>()
  const explanations = zones.toReversed().flatMap((zone, age) => {
    const { used, keys, change } = zone
    const { present, absent } = compare(keys, list)
    const isRepeat =
      (used.kind === 'unfinished' || used.kind === 'unanswered') &&
      JSON.stringify(used.zone) === text
    // A list with a record, or a value of an RRset, of a later zone was made from that zone or a newer one.
    const own = marksOf(keys.values())
    const isOutdated = [...marksOf(present)].some((mark) => !own.has(mark) && later.has(mark))
    for (const mark of used.kind === 'read' ? own : marksOf(change.present)) later.add(mark)
    if (used.copies === 0 || (isOutdated && !isRepeat)) return []
    const effect = compare(live, withDifference(live, { present, absent }))
    const values = new Set(present.map(setOf))
    const removed = absent.filter((each) => !values.has(setOf(each)))
    // The first rank that differs decides. Tools write to change something, most read before, and few remove.
    const ranks = [
      isRepeat ? 0 : 1,
      effect.present.length + effect.absent.length > 0 ? 0 : 1,
      used.kind === 'read' ? 0 : 1,
      removed.length,
      present.length,
      age,
    ]
    return [{ zone, isRepeat, age, rank: ranks.map((each) => String(each).padStart(9)).join() }]
  })
  return explanations.sort((one, other) => (one.rank < other.rank ? -1 : 1))[0]
}

/** Keys of the records and of their RRsets; at `_acme-challenge`, where processes share an RRset, of the records alone. */
const marksOf = (records: Iterable<KeyedRecord>) =>
  new Set([...records].flatMap((each) => [each.key, setOf(each)]))

const setOf = ({ key, record: { name, type } }: KeyedRecord) =>
  /^_acme-challenge/i.test(name) ? key : `${name} ${type}`.toLowerCase()

interface KeyedZone {
  used: GivenZone
  keys: Keyed
  /** What a list has changed, or writes that a zone shows. */
  change: Difference
}

function keyedZoneOf(used: GivenZone, domain: string): KeyedZone {
  const keys = byKey(used.zone, domain)
  return { used, keys, change: compare(used.base ? byKey(used.base, domain) : keys, keys) }
}

/** The zone of the newest read, with the changes of the lists since. */
function latest(zones: KeyedZone[]): Keyed {
  const read = zones.findLastIndex(({ used }) => used.kind === 'read')
  const lists = zones.slice(read + 1)
  return lists.reduce(
    (live, { change }) => withDifference(live, change),
    zones[Math.max(read, 0)]?.keys ?? new Map(),
  )
}

/** Records by key, with their indexes in the zone. Of records with one key the registrar keeps the first. */
type Keyed = ReadonlyMap<string, KeyedRecord>

interface KeyedRecord {
  key: string
  record: KnownRecord
  index: number
}

function byKey({ records }: KnownZone, domain: string): Keyed {
  const keyed = new Map<string, KeyedRecord>()
  for (const [index, record] of records.entries()) {
    const key = keyOf(toRow(record, domain).row, domain)
    if (!keyed.has(key)) keyed.set(key, { key, record, index })
  }
  return keyed
}

interface Difference {
  present: KeyedRecord[]
  absent: KeyedRecord[]
}

const compare = (before: Keyed, after: Keyed): Difference => ({
  present: [...after.values()].filter(({ key, record }) => {
    const known = before.get(key)?.record
    return !(known && isUnchanged(known, record))
  }),
  absent: [...before.values()].filter(({ key }) => !after.has(key)),
})

function withDifference(keyed: Keyed, { present, absent }: Difference): Keyed {
  const changed = new Map(keyed)
  for (const { key } of absent) changed.delete(key)
  for (const each of present) changed.set(each.key, each)
  return changed
}

/**
 * Without what an unfinished write changes: what the list has of that is added again, what it lacks is removed; also
 * without what a repeated list had added, and is gone. Where a later list went back, the zone is as that list made it.
 */
function certainPart(
  { used: { kind, zone, base }, keys, change }: KeyedZone,
  list: Keyed,
  context: { zones: KeyedZone[]; domain: string; isGone: (key: string) => boolean },
): KnownZone {
  const { zones, domain, isGone } = context
  const changed = [...change.present, ...change.absent].map(({ key }) => key)
  if (!base || (isDone(kind) && !changed.some(isGone))) return zone
  const isDoneNow = (key: string) => {
    const last = zones.findLast(({ used, change: { present, absent } }) =>
      [...present, ...absent].some((each) => used.kind !== 'read' && each.key === key),
    )
    return last && (isDone(last.used.kind) || last.keys.has(key) !== keys.has(key))
  }
  const certain = new Map([...byKey(base, domain), ...keys])
  for (const key of changed)
    if (isDoneNow(key) && !isGone(key) ? !keys.has(key) : list.has(key)) certain.delete(key)
  const records = [...certain.values()].map(({ record }) => record)
  return { emailType: zone.emailType === base.emailType ? zone.emailType : undefined, records }
}

const isDone = (kind: GivenZone['kind']) => kind === 'unanswered' || kind === 'done'

/** The edit that turns `base` into `submitted`, and the indexes of its `present` records in `submitted`. */
export function differenceOf(base: KnownZone, submitted: KnownZone, domain: string) {
  const { present, absent } = compare(byKey(base, domain), byKey(submitted, domain))
  const { emailType } = submitted
  const edit: EnsureEdit = {
    kind: 'ensure',
    present: present.map(({ record: { spelling: _, ...record } }) => record),
    absent: absent.map(({ record: { name, type, address } }) => ({ name, type, address })),
    ...(emailType !== undefined && emailType !== base.emailType && { emailType }),
  }
  return { edit, indexes: present.map(({ index }) => index) }
}

// An absent TTL or preference stays as it is.
const isUnchanged = (known: KnownRecord, { ttl, mx_pref }: KnownRecord) =>
  (ttl ?? known.ttl) === known.ttl && (mx_pref ?? known.mx_pref) === known.mx_pref
