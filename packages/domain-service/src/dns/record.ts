import { hash } from 'node:crypto'
import { toAscii } from './domain-name.ts'
import { recordTypeOf, recordTypes } from './record-types.ts'

/** Whether setHosts accepts the type. Rows of other types (SRV made in the panel) can be read, not written. */
export const isWritable = (type: string) => recordTypes.includes(type)

/** One row of a zone as the registrar returned it. Unchanged rows are sent back byte for byte. */
export interface Row {
  name: string
  type: string
  address: string
  mxPref: string
  ttl: string
  /** Has the dynamic-DNS flag, which setHosts clears. */
  dynamic: boolean
}

/** A record in the API's form: `@` for the apex, targets without their trailing dot, MX preferences on MX only. */
export interface HostRecord {
  id: string
  name: string
  type: string
  address: string
  ttl: number
  mx_pref?: number
}

/** A zone as it was read, never mutated. `emailType` is undefined where the registrar's answer has none: unknown. */
export interface Zone {
  readonly domain: string
  readonly usesRegistrarDns: boolean
  readonly emailType: string | undefined
  readonly rows: Row[]
}

export const defaultTtl = 1800
export const defaultMxPref = 10

/** A row in the API's form. */
export function toRecord(row: Row, domain: string): HostRecord {
  const type = row.type.toUpperCase()
  const record = {
    name: nameOf(row, domain),
    type,
    address: recordTypeOf(type).show(row.address),
    ttl: toInteger(row.ttl, defaultTtl),
    ...(type === 'MX' ? { mx_pref: toInteger(row.mxPref, defaultMxPref) } : {}),
  }
  return { id: idOf(record), ...record }
}

/** The records of a zone by name (`@` first), type, address. Cached by zone object. */
export function toRecords(zone: Zone): HostRecord[] {
  const known = sortedRecords.get(zone)
  if (known) return known
  const records = zone.rows.map((row) => toRecord(row, zone.domain)).sort(compareRecords)
  sortedRecords.set(zone, records)
  return records
}

// Caches by object: zones and rows are never mutated, and a row belongs to one domain.
const sortedRecords = new WeakMap<Zone, HostRecord[]>()
const etags = new WeakMap<Zone, string>()

/**
 * A row's identity, modulo the registrar's known normalisations: the case of names and targets, a target's trailing
 * dot, the form of an IPv6 address, the quotes of a CAA value. The registrar keeps only one row of each key.
 */
export function keyOf(row: Row, domain: string): string {
  const type = row.type.toUpperCase()
  return `${nameOf(row, domain)} ${type} ${recordTypeOf(type).canonicalize(row.address)}`
}

/** A row's key, TTL and MX preference: all that a client can set. */
export function contentOf(row: Row, domain: string): string {
  const known = contents.get(row)
  if (known !== undefined) return known
  const mxPref = row.type.toUpperCase() === 'MX' ? toInteger(row.mxPref, defaultMxPref) : ''
  const content = `${keyOf(row, domain)} ${toInteger(row.ttl, defaultTtl)} ${mxPref}`
  contents.set(row, content)
  return content
}

const contents = new WeakMap<Row, string>()

/** The strong ETag of a zone, over all records and the email type. */
export function etagOf(zone: Zone): string {
  const known = etags.get(zone)
  if (known) return known
  const state = [zone.usesRegistrarDns, zone.emailType ?? null, toRecords(zone)]
  const digest = hash('sha256', JSON.stringify(state), 'base64url')
  const etag = `"${digest.slice(0, 32)}"`
  etags.set(zone, etag)
  return etag
}

/** Multiset difference by content: `rows` without one row for each equal row of `others`. */
export function subtract(rows: Row[], others: Row[], domain: string): Row[] {
  const counts = new Map<string, number>()
  for (const row of others) {
    const content = contentOf(row, domain)
    counts.set(content, (counts.get(content) ?? 0) + 1)
  }
  return rows.filter((row) => {
    const content = contentOf(row, domain)
    const left = counts.get(content) ?? 0
    counts.set(content, left - 1)
    return left <= 0
  })
}

/** Whether two lists have the same rows by content, in any order. */
export const isSameRows = (rows: Row[], others: Row[], domain: string) =>
  rows.length === others.length && subtract(rows, others, domain).length === 0

/** Whether a row is one of those with which the registrar fills an empty zone. */
export const isParking = (row: Row, domain: string) =>
  (row.type === 'CNAME' &&
    row.name === 'www' &&
    /^parkingpage\.namecheap\.com\.?$/i.test(row.address)) ||
  (row.type === 'URL' &&
    row.name === '@' &&
    [`http://www.${domain}/?from=@`, `http://www.${domain}?from=@`].includes(
      row.address.toLowerCase(),
    ))

/** The name of a row in the API's form. The registrar names an MXE row after the domain itself. */
export function nameOf(row: Row, domain: string): string {
  const name = row.name.toLowerCase()
  return name === '' || (row.type.toUpperCase() === 'MXE' && name === domain) ? '@' : name
}

function idOf(record: Omit<HostRecord, 'id' | 'ttl'>): string {
  const identity = [record.name, record.type, record.address, record.mx_pref ?? null]
  return hash('sha256', JSON.stringify(identity), 'hex').slice(0, 12)
}

function compareRecords(a: HostRecord, b: HostRecord): number {
  if (a.name !== b.name)
    return a.name === '@' ? -1 : b.name === '@' ? 1 : compareText(a.name, b.name)
  return (
    compareText(a.type, b.type) ||
    compareText(a.address, b.address) ||
    (a.mx_pref ?? 0) - (b.mx_pref ?? 0) ||
    a.ttl - b.ttl
  )
}

const compareText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

const toInteger = (text: string, fallback: number) =>
  /^[0-9]{1,9}$/.test(text) ? Number(text) : fallback

/** The difference between two zones. */
export interface Delta {
  added: Row[]
  removed: Row[]
  /** The new email type, if it changes. */
  emailType?: string | undefined
}

type ZoneContent = Pick<Zone, 'emailType' | 'rows'>

/** The delta from `before` to `after`. A zone without email type says nothing about it. */
export const differenceOf = (before: ZoneContent, after: ZoneContent, domain: string): Delta => ({
  added: subtract(after.rows, before.rows, domain),
  removed: subtract(before.rows, after.rows, domain),
  emailType: after.emailType === before.emailType ? undefined : after.emailType,
})

/** The records of a delta. */
export const recordsOf = (
  { added, removed }: Pick<Delta, 'added' | 'removed'>,
  domain: string,
) => ({
  added: added.map((row) => toRecord(row, domain)),
  removed: removed.map((row) => toRecord(row, domain)),
})

export const isEmptyDelta = ({ added, removed, emailType }: Delta) =>
  added.length + removed.length === 0 && emailType === undefined

export const isSameDelta = (one: Delta, other: Delta, domain: string) =>
  isSameRows(one.added, other.added, domain) &&
  isSameRows(one.removed, other.removed, domain) &&
  one.emailType === other.emailType

/** The part of a delta that concerns these rows; the email type stays. */
export const filterDelta = (
  { added, removed, emailType }: Delta,
  isIn: (row: Row) => boolean,
): Delta => ({ added: added.filter(isIn), removed: removed.filter(isIn), emailType })

/** The registrar keeps one row of each key, so an added row takes the place of one that differs in its TTL. */
export function withDelta(zone: ZoneContent, delta: Delta, domain: string): ZoneContent {
  const keys = new Set(delta.added.map((row) => keyOf(row, domain)))
  const kept = subtract(zone.rows, delta.removed, domain)
  return {
    emailType: delta.emailType ?? zone.emailType,
    rows: [...kept.filter((row) => !keys.has(keyOf(row, domain))), ...delta.added],
  }
}

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

/** A name as records have it: in A-labels and lower case. */
export const ownerOf = (name: string) => toAscii(name) ?? name.toLowerCase()
