import { toAscii } from './domain-name.ts'
import { type HostRecord, toRecords, type Zone } from './record.ts'

/** All records of one name and type. `ttl` is the lowest of theirs. */
export interface Rrset {
  name: string
  type: string
  ttl: number
  values: string[]
  mixed_ttl?: true
}

/** The RRsets of a zone, in the order of its records. */
export function toRrsets(zone: Zone): Rrset[] {
  const groups = Map.groupBy(toRecords(zone), ({ name, type }) => JSON.stringify([name, type]))
  return [...groups.values()].flatMap(toRrset)
}

/** The RRset of that name and type, if the zone has one. */
export function findRrset(zone: Zone, name: string, type: string): Rrset | undefined {
  const key = { name: ownerOf(name), type: type.toUpperCase() }
  return toRrsets(zone).find((each) => each.name === key.name && each.type === key.type)
}

function toRrset(records: HostRecord[]): Rrset[] {
  const [first] = records
  if (!first) return []
  const ttls = new Set(records.map(({ ttl }) => ttl))
  return [
    {
      name: first.name,
      type: first.type,
      ttl: Math.min(...ttls),
      values: records.map(textOf),
      ...(ttls.size > 1 ? { mixed_ttl: true } : {}),
    },
  ]
}

const textOf = ({ address, mx_pref }: HostRecord) =>
  mx_pref === undefined ? address : `${mx_pref} ${address}`

/** A name in the form in which records have it. */
export const ownerOf = (name: string) => toAscii(name) ?? name.toLowerCase()
