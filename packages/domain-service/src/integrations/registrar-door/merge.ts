import type { EnsureEdit } from '../../dns/edits/zone-edit.ts'
import { keyOf } from '../../dns/record.ts'
import type { ClientRecord, ClientZone, Comparison, GivenZone } from '../../ledger/given-zones.ts'

/**
 * The zone that a submitted list is compared with, of those that the client was given, oldest first. The processes that
 * share a token cannot be told apart: what one has added, the list of another one must not remove.
 * A list that seems to come again may be that of another process where others read or wrote meanwhile.
 */
export function chooseGiven(given: GivenZone[], submitted: ClientZone): Comparison | undefined {
  const list = byKey(submitted)
  const zones = given.map(keyedZoneOf)
  const live = latest(zones)
  const best = findExplanation(zones, { list, live, text: JSON.stringify(submitted) })
  if (!best) return undefined
  const { zone, isRepeat, age } = best
  const before = latest(zones.slice(0, zones.indexOf(zone)))
  const isGone = (key: string) => isRepeat && zone.keys.has(key) && !live.has(key) && !before.has(key)
  // A list that was refused as unclear adds what it has, and removes nothing.
  const rest = select(live, (key) => list.has(key))
  const base =
    zone.used.copies < 0
      ? { emailType: submitted.emailType, records: [...rest.values()] }
      : certainPart(zone, list, { zones, isGone })
  const after = withDifference(live, compare(byKey(base), list))
  const mayRepeat = isRepeat && age > 0
  return {
    used: zone.used,
    base,
    mayRepeat,
    isUnclear: mayRepeat && zone.used.copies > 0 && [...list.keys()].some((key) => !after.has(key)),
  }
}

/** The zone that explains the list best, whether the list repeats it, and how many were given after it. */
function findExplanation(zones: KeyedZone[], { list, live, text }: { list: Keyed; live: Keyed; text: string }) {
  const later = new Set<string>()
  const explanations = zones.toReversed().flatMap((zone, age) => {
    const { used, keys, change } = zone
    const { present, absent } = compare(keys, list)
    const isRepeat = (used.kind === 'unfinished' || used.kind === 'unanswered') && JSON.stringify(used.zone) === text
    // A list with a record, or a value of an RRset, of a later zone was made from that zone or a newer one.
    const own = marksOf(keys)
    const isOutdated = [...marksOf(present)].some((mark) => !own.has(mark) && later.has(mark))
    for (const mark of used.kind === 'read' ? own : marksOf(change.present)) later.add(mark)
    if (used.copies === 0 || (isOutdated && !isRepeat)) return []
    const effect = compare(live, withDifference(live, { present, absent }))
    const values = new Set([...present].map(setOf))
    const removed = [...absent].filter((each) => !values.has(setOf(each)))
    // The first rank that differs decides. Tools write to change something, most read before, and few remove.
    const ranks = [
      isRepeat ? 0 : 1,
      effect.present.size + effect.absent.size > 0 ? 0 : 1,
      used.kind === 'read' ? 0 : 1,
      removed.length,
      present.size,
      age,
    ]
    return [{ zone, isRepeat, age, rank: ranks.map((each) => String(each).padStart(9)).join() }]
  })
  return explanations.sort((one, other) => (one.rank < other.rank ? -1 : 1))[0]
}

/** Keys of the records and of their RRsets; at `_acme-challenge`, where processes share an RRset, of the records alone. */
const marksOf = (keyed: Keyed) => new Set([...keyed].flatMap((each) => [each[0], setOf(each)]))

const setOf = ([key, { name, type }]: [string, ClientRecord]) =>
  /^_acme-challenge/i.test(name) ? key : `${name} ${type}`.toLowerCase()

interface KeyedZone {
  used: GivenZone
  keys: Keyed
  /** What a list has changed, or writes that a zone shows. */
  change: Difference
}

function keyedZoneOf(used: GivenZone): KeyedZone {
  const keys = byKey(used.zone)
  return { used, keys, change: compare(used.base ? byKey(used.base) : keys, keys) }
}

/** The zone of the newest read, with the changes of the lists since. */
function latest(zones: KeyedZone[]): Keyed {
  const read = zones.findLastIndex(({ used }) => used.kind === 'read')
  const lists = zones.slice(read + 1)
  return lists.reduce((live, { change }) => withDifference(live, change), zones[Math.max(read, 0)]?.keys ?? new Map())
}

/** Records by key. Of records with one key the registrar keeps the first. */
type Keyed = ReadonlyMap<string, ClientRecord>

function byKey({ records }: ClientZone): Keyed {
  const keyed = new Map<string, ClientRecord>()
  for (const record of records) {
    const key = keyOf(record)
    if (!keyed.has(key)) keyed.set(key, record)
  }
  return keyed
}

const select = (keyed: Keyed, isIn: (key: string, record: ClientRecord) => boolean): Keyed =>
  new Map([...keyed].filter(([key, record]) => isIn(key, record)))

interface Difference {
  present: Keyed
  absent: Keyed
}

const compare = (before: Keyed, after: Keyed): Difference => ({
  present: select(after, (key, record) => !isUnchanged(before.get(key), record)),
  absent: select(before, (key) => !after.has(key)),
})

const withDifference = (keyed: Keyed, { present, absent }: Difference): Keyed =>
  new Map([...select(keyed, (key) => !absent.has(key)), ...present])

/**
 * Without what an unfinished write changes: what the list has of that is added again, what it lacks is removed; also
 * without what a repeated list had added, and is gone. Where a later list went back, the zone is as that list made it.
 */
function certainPart(
  { used: { kind, zone, base }, keys, change }: KeyedZone,
  list: Keyed,
  { zones, isGone }: { zones: KeyedZone[]; isGone: (key: string) => boolean },
): ClientZone {
  const changed = [...change.present.keys(), ...change.absent.keys()]
  if (!base || (isDone(kind) && !changed.some(isGone))) return zone
  const isDoneNow = (key: string) => {
    const last = zones.findLast(
      ({ used, change: { present, absent } }) => used.kind !== 'read' && (present.has(key) || absent.has(key)),
    )
    return last && (isDone(last.used.kind) || last.keys.has(key) !== keys.has(key))
  }
  const certain = new Map([...byKey(base), ...keys])
  for (const key of changed) if (isDoneNow(key) && !isGone(key) ? !keys.has(key) : list.has(key)) certain.delete(key)
  const emailType = zone.emailType === base.emailType ? zone.emailType : undefined
  return { emailType, records: [...certain.values()] }
}

const isDone = (kind: GivenZone['kind']) => kind === 'unanswered' || kind === 'done'

/** The edit that turns `base` into `submitted`, and the indexes of its `present` records in `submitted`. */
export function differenceOf(base: ClientZone, submitted: ClientZone) {
  const difference = compare(byKey(base), byKey(submitted))
  const [present, absent] = [[...difference.present.values()], [...difference.absent.values()]]
  const { emailType, records } = submitted
  const edit: EnsureEdit = {
    kind: 'ensure',
    present: present.map(({ spelling: _, ...record }) => record),
    absent: absent.map(({ name, type, address }) => ({ name, type, address })),
    ...(emailType !== undefined && emailType !== base.emailType && { emailType }),
  }
  return { edit, indexes: present.map((record) => records.indexOf(record)) }
}

// An absent TTL or preference stays as it is.
const isUnchanged = (known: ClientRecord | undefined, { ttl, mx_pref }: ClientRecord) =>
  known !== undefined && (ttl ?? known.ttl) === known.ttl && (mx_pref ?? known.mx_pref) === known.mx_pref
