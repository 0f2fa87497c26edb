import { hash } from 'node:crypto'
import { isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'

export const recordTypes = [
  'A',
  'AAAA',
  'ALIAS',
  'CAA',
  'CNAME',
  'MX',
  'MXE',
  'NS',
  'TXT',
  'URL',
  'URL301',
  'FRAME',
] as const

/** What the registrar takes back. Rows of other types (SRV made in its panel) can be read but never written. */
export const isWritable = (type: string) => recordTypes.some((known) => known === type)

/** One row of a zone exactly as the registrar gave it: what is not changed goes back as it came. */
export interface Row {
  name: string
  type: string
  address: string
  mxPref: string
  ttl: string
  /** Has the dynamic-DNS flag, which no write can keep. */
  dynamic: boolean
}

/** A record as callers see it: `@` for the apex, targets without their trailing dot, MX preferences on MX only. */
export interface HostRecord {
  id: string
  name: string
  type: string
  address: string
  ttl: number
  mx_pref?: number
}

/** A zone as it was read. `emailType` is undefined where the registrar did not say. */
export interface Zone {
  readonly domain: string
  readonly usesRegistrarDns: boolean
  readonly emailType: string | undefined
  readonly rows: Row[]
}

export const defaultTtl = 1800
export const defaultMxPref = 10

/** A row as callers see it. */
export function toRecord(row: Row, domain: string): HostRecord {
  const type = row.type.toUpperCase()
  const record = {
    name: nameOf(row, domain),
    type,
    address: hasTarget(type) ? row.address.replace(/\.$/, '') : row.address,
    ttl: toInteger(row.ttl, defaultTtl),
    ...(type === 'MX' ? { mx_pref: toInteger(row.mxPref, defaultMxPref) } : {}),
  }
  return { id: idOf(record), ...record }
}

/** The records of a zone in the one order in which they are always told: name (`@` first), type, address. */
export function toRecords(zone: Zone): HostRecord[] {
  const known = told.get(zone)
  if (known) return known
  const records = zone.rows.map((row) => toRecord(row, zone.domain)).sort(compareRecords)
  told.set(zone, records)
  return records
}

// A zone is never changed, only replaced: what was told of a cached one is told again.
const told = new WeakMap<Zone, HostRecord[]>()
const etags = new WeakMap<Zone, string>()

/**
 * A row's identity, modulo what the registrar is known to change: the case of names and targets, a target's trailing
 * dot, the form of an IPv6 address, the quotes of a CAA value. Two rows of one key cannot stand in one zone.
 */
export const keyOf = (row: Row, domain: string) =>
  [nameOf(row, domain), row.type.toUpperCase(), canonicalAddress(row)].join(' ')

/** A row's key with all that a caller can set: rows of equal content are the same row. */
export function contentOf(row: Row, domain: string): string {
  const known = contents.get(row)
  if (known !== undefined) return known
  const mxPref = row.type.toUpperCase() === 'MX' ? toInteger(row.mxPref, defaultMxPref) : ''
  const content = `${keyOf(row, domain)} ${toInteger(row.ttl, defaultTtl)} ${mxPref}`
  contents.set(row, content)
  return content
}

// A row is never changed and stands in one zone only.
const contents = new WeakMap<Row, string>()

/** The strong ETag of a zone: covers every record and the email type. */
export function etagOf(zone: Zone): string {
  const known = etags.get(zone)
  if (known) return known
  const state = [zone.usesRegistrarDns, zone.emailType ?? null, toRecords(zone)]
  const digest = hash('sha256', JSON.stringify(state), 'base64url')
  const etag = `"${digest.slice(0, 32)}"`
  etags.set(zone, etag)
  return etag
}

/** Takes from `rows` what stands in `others` too, each row once (multisets). */
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

/** The rows that the registrar puts into an empty zone by itself. */
export const isParking = (row: Row, domain: string) =>
  (row.type === 'CNAME' &&
    row.name === 'www' &&
    /^parkingpage\.namecheap\.com\.?$/i.test(row.address)) ||
  (row.type === 'URL' &&
    row.name === '@' &&
    [`http://www.${domain}/?from=@`, `http://www.${domain}?from=@`].includes(
      row.address.toLowerCase(),
    ))

export const hasTarget = (type: string) => ['CNAME', 'ALIAS', 'NS', 'MX'].includes(type)

export const caaParts =
  /^\s*([0-9]{1,3})\s+([a-zA-Z0-9]+)\s+(?:"([^"]*)"|([^"\s](?:[^"]*[^"\s])?))\s*$/

function canonicalAddress(row: Row): string {
  const type = row.type.toUpperCase()
  if (hasTarget(type)) return row.address.toLowerCase().replace(/\.$/, '')
  if (type === 'AAAA' && isIPv6(row.address) && !row.address.includes('%')) {
    return ipaddr.IPv6.parse(row.address).toRFC5952String()
  }
  const caa = type === 'CAA' ? caaParts.exec(row.address) : null
  return caa ? `${Number(caa[1])} ${caa[2]?.toLowerCase()} "${caa[3] ?? caa[4]}"` : row.address
}

/** The name of a row as callers see it. The registrar names an MXE row after the domain itself. */
export function nameOf(row: Row, domain: string): string {
  const name = row.name.toLowerCase()
  return name === '' || (row.type.toUpperCase() === 'MXE' && name === domain) ? '@' : name
}

function idOf(record: Omit<HostRecord, 'id' | 'ttl'>): string {
  const facts = [record.name, record.type, record.address, record.mx_pref ?? null]
  return hash('sha256', JSON.stringify(facts), 'hex').slice(0, 12)
}

function compareRecords(a: HostRecord, b: HostRecord): number {
  if (a.name !== b.name)
    return a.name === '@' ? -1 : b.name === '@' ? 1 : compareText(a.name, b.name)
  return (
    compareText(a.type, b.type) ||
    (a.mx_pref ?? 0) - (b.mx_pref ?? 0) ||
    compareText(a.address, b.address) ||
    a.ttl - b.ttl
  )
}

const compareText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

const toInteger = (text: string, fallback: number) =>
  /^[0-9]{1,9}$/.test(text) ? Number(text) : fallback
