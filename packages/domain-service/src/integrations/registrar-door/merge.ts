import type { EnsureEdit } from '../../dns/edits/zone-edit.ts'
import { keyOf } from '../../dns/record.ts'
import { toRow } from '../../dns/record-validation.ts'
import type { GivenZone, KnownRecord, KnownZone } from '../../ledger/given-zones.ts'

/**
 * The zone that a submitted list is compared with, of those that the client was given, oldest first. The processes that
 * share a token cannot be told apart: none may remove what another one has added.
 */
export function chooseGiven(
  given: GivenZone[],
  submitted: KnownZone,
  domain: string,
): { used: GivenZone; base: KnownZone } | undefined {
  const list = byKey(submitted, domain)
  const zones = given.map((used) => ({ used, keys: byKey(used.zone, domain) }))
  const lists = zones.filter(({ used }) => used.state !== 'read')
  const isOfLists = (key: string) => lists.some(({ keys }) => keys.has(key))
  const isLeftOut = (key: string) => {
    const since = zones.find(({ keys }) => keys.has(key))?.used.id ?? Infinity
    return lists.some(({ used, keys }) => used.id > since && !keys.has(key))
  }
  const text = JSON.stringify(submitted)
  const explanations = zones.flatMap(({ used, keys }, index) => {
    const added = without(list, keys)
    const later = zones.slice(index + 1)
    // The list has records of a later zone, which is then known to the client.
    if (later.some((each) => added.some((key) => each.keys.has(key)))) return []
    const removed = without(keys, list)
    const isRepeat =
      ['submitted', 'stopped'].includes(used.state) && JSON.stringify(used.zone) === text
    // The first that differs decides: clients read before they write, and add or remove, what is new or of their lists.
    const rank = [
      isRepeat ? 0 : 1,
      removed.filter((key) => !isOfLists(key)).length,
      added.filter(isLeftOut).length,
      Math.min(1, added.length * removed.length),
      ['read', 'stopped'].includes(used.state) ? 0 : 1,
      removed.length,
      later.length,
    ]
    return [{ used, rank }]
  })
  const [best] = explanations.sort((one, other) => compare(one.rank, other.rank))
  return best && { used: best.used, base: certainPart(best.used, list, { given, domain }) }
}

function compare(one: number[], other: number[]): number {
  const at = one.findIndex((value, index) => value !== other[index])
  return (one[at] ?? 0) - (other[at] ?? 0)
}

/** Records by what identifies them, with their places in the zone. Of equal ones the registrar keeps the first. */
type Keyed = ReadonlyMap<string, { record: KnownRecord; index: number }>

function byKey({ records }: Pick<KnownZone, 'records'>, domain: string): Keyed {
  const keyed = new Map<string, { record: KnownRecord; index: number }>()
  for (const [index, record] of records.entries()) {
    const key = keyOf(toRow(record, domain).row, domain)
    if (!keyed.has(key)) keyed.set(key, { record, index })
  }
  return keyed
}

const without = (keys: Keyed, others: Keyed) => [...keys.keys()].filter((key) => !others.has(key))

/** Without what an unfinished write changes: what the list has of that is added again, what it lacks is removed. */
function certainPart(
  { zone, base }: GivenZone,
  list: Keyed,
  { given, domain }: { given: GivenZone[]; domain: string },
): KnownZone {
  if (!base) return zone
  const changed = (zones: Pick<GivenZone, 'zone' | 'base'>[]) =>
    zones.flatMap((each) => {
      const { present, absent } = differenceOf(each.base ?? each.zone, each.zone, domain).edit
      return [...byKey({ records: [...present, ...absent] }, domain).keys()]
    })
  const unfinished = new Set(changed(given.filter((each) => each.base && each.state !== 'read')))
  const uncertain = changed([{ zone, base }]).filter((key) => list.has(key) && unfinished.has(key))
  const known = new Map([...byKey(base, domain), ...byKey(zone, domain)])
  for (const key of uncertain) known.delete(key)
  const records = [...known.values()].map(({ record }) => record)
  return { emailType: zone.emailType === base.emailType ? zone.emailType : undefined, records }
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
