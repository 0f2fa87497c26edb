import type { EnsureEdit } from '../../dns/edits/zone-edit.ts'
import { keyOf } from '../../dns/record.ts'
import { toRow } from '../../dns/record-validation.ts'
import type { Explanation, GivenZone, KnownRecord, KnownZone } from '../../ledger/given-zones.ts'

/**
 * Chooses the zone that a submitted list was most likely made from, and is compared with. `given` is oldest first.
 * Processes that share a token cannot be told apart, and the list of one must not remove what another has added. A list
 * that looks like a repeat may come from another process, if others read or wrote meanwhile.
 */
export function chooseGiven(
  given: GivenZone[],
  submitted: KnownZone,
  domain: string,
): Explanation | undefined {
  const list = byKey(submitted, domain)
  const zones = given.map((used) => keyedZoneOf(used, domain))
  const ranked = explain(list, zones)
  const [first] = ranked
  if (!first) return undefined
  // A list made from an earlier list of the token lacks the records that others have added since.
  const goesOn = (one: Candidate) => !one.isRead && one.isChange && one.foreign < first.foreign
  const best = ranked.find(goesOn) ?? first
  const { zone, isRead, isRepeat, removed } = best
  const rivals = ranked.filter((one) => one.isChange && !isSame(one.zone.keys, zone.keys))
  const live = latest(zones)
  // Doubtful removals: another read, without these records, explains the list by the removal of other live records.
  const doubtful = rivals
    .filter((one) => isRead && one.isRead && one.removed.every(({ key }) => live.has(key)))
    .flatMap((one) => removed.map(({ key }) => key).filter((key) => !one.zone.keys.has(key)))
  // A repeat adds its records again that are gone, unless a read has shown them: its process may have made the list.
  const gone = (isRepeat ? goneOf(zones, list, live) : []).filter(
    (key) => !rivals.some((one) => one.isRead && one.zone.keys.has(key)),
  )
  const left = new Set([...doubtful, ...gone])
  const base = [...certainPart(zone, list, zones).values()].filter(({ key }) => !left.has(key))
  return {
    used: zone.used,
    base: { emailType: certainTypeOf(zone.used), records: base.map(({ record }) => record) },
    isCertain: rivals.length === 0,
    mayRepeat: isRepeat && zone !== zones.at(-1),
  }
}

interface Candidate {
  zone: KeyedZone
  isRead: boolean
  /** Whether the list changes anything in the zone. */
  isChange: boolean
  /** Whether the zone is this same list, and its client got no response. */
  isRepeat: boolean
  removed: KeyedRecord[]
  /** How many of the removed records were not added by lists of the token. */
  foreign: number
}

/** The zones that a list may have been made from, the likeliest first. */
function explain(list: Keyed, zones: KeyedZone[]): Candidate[] {
  const foreign = addedByOthers(zones)
  const later = new Set<string>()
  const ranked = zones.toReversed().flatMap((zone, age) => {
    const { used, keys, change } = zone
    const isRead = used.kind === 'read'
    const { present, absent } = compare(keys, list)
    // A list that adds a record which a later read or list has was made from that later one.
    const isOutdated = present.some(({ key }) => !keys.has(key) && later.has(key))
    for (const { key } of isRead ? keys.values() : change.present) later.add(key)
    if (used.copies === 0 || isOutdated) return []
    const isChange = present.length + absent.length > 0
    const isRepeat = !isChange && isUnanswered(used)
    const values = new Set(present.map(setOf))
    const removed = absent.filter((each) => !values.has(setOf(each)))
    const ofOthers = removed.filter(({ key }) => foreign.has(key)).length
    // The first rank that differs decides. Tools write to change something, and most of them read first.
    const ranks = [!isRepeat, !isChange, !isRead, removed.length, present.length, age]
    const rank = ranks.map((each) => String(Number(each)).padStart(9)).join()
    return [{ zone, isRead, isChange, isRepeat, removed, foreign: ofOthers, rank }]
  })
  return ranked.sort((one, other) => (one.rank < other.rank ? -1 : 1))
}

const isUnanswered = ({ kind }: GivenZone) => kind === 'unfinished' || kind === 'unanswered'

// A new value at a name and type replaces the old one: no removal. Challenges of several processes share a name.
const setOf = ({ key, record: { name, type } }: KeyedRecord) =>
  /^_acme-challenge/i.test(name) ? key : `${name} ${type}`.toLowerCase()

/** Records of later reads that the first read lacks and no list of the token has added. */
function addedByOthers(zones: KeyedZone[]) {
  const first = zones.findIndex(({ used }) => used.kind === 'read')
  const known = new Set(zones[first]?.keys.keys())
  for (const { change } of zones) for (const { key } of change.present) known.add(key)
  const shown = zones.slice(first + 1).filter(({ used }) => used.kind === 'read')
  return new Set(shown.flatMap(({ keys }) => [...keys.keys()].filter((key) => !known.has(key))))
}

/** The records that a repeated list added the first time, and that are gone now. */
function goneOf(zones: KeyedZone[], list: Keyed, live: Keyed) {
  const first = zones.findIndex(({ used, keys }) => isUnanswered(used) && isSame(keys, list))
  const before = latest(zones.slice(0, first))
  const added = zones[first]?.change.present ?? []
  return added.map(({ key }) => key).filter((key) => !live.has(key) && !before.has(key))
}

interface KeyedZone {
  used: GivenZone
  keys: Keyed
  base?: Keyed | undefined
  /** The changes of a list, or the unfinished writes that a read shows. */
  change: Difference
}

function keyedZoneOf(used: GivenZone, domain: string): KeyedZone {
  const keys = byKey(used.zone, domain)
  const base = used.base && byKey(used.base, domain)
  return { used, keys, base, change: compare(base ?? keys, keys) }
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

const isSame = (one: Keyed, other: Keyed) =>
  one.size === other.size && [...one.keys()].every((key) => other.has(key))

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
 * The zone without the changes of unfinished writes: the list adds those of their records again that it has, and removes
 * those that it lacks. Where a later list reverted such a change, the record stays as that list left it.
 */
function certainPart({ used, keys, base, change }: KeyedZone, list: Keyed, zones: KeyedZone[]) {
  if (!base || isDone(used)) return keys
  const isDoneNow = (key: string) => {
    const last = zones.findLast(({ used, change: { present, absent } }) =>
      [...present, ...absent].some((each) => used.kind !== 'read' && each.key === key),
    )
    return last && (isDone(last.used) || last.keys.has(key) !== keys.has(key))
  }
  const certain = new Map([...base, ...keys])
  for (const { key } of [...change.present, ...change.absent])
    if (isDoneNow(key) ? !keys.has(key) : list.has(key)) certain.delete(key)
  return certain
}

const certainTypeOf = ({ zone, base, kind }: GivenZone) =>
  !base || isDone({ kind }) || base.emailType === zone.emailType ? zone.emailType : undefined

const isDone = ({ kind }: Pick<GivenZone, 'kind'>) => kind === 'unanswered' || kind === 'done'

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
