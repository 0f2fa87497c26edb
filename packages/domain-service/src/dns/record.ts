import { hash } from 'node:crypto'
import { toAscii } from './domain-name.ts'
import { recordTypeOf, recordTypes } from './record-types.ts'

/** Whether setHosts accepts the type. Rows of other types (SRV made in the panel) can be read, not written. */
export const isWritable = ({ type }: { type: string }) => recordTypes.includes(type.toUpperCase())

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

/** The name of a row in the API's form. The registrar names an MXE row after the domain itself. */
export function nameOf(row: Row, domain: string): string {
  const name = row.name.toLowerCase()
  return name === '' || (row.type.toUpperCase() === 'MXE' && name === domain) ? '@' : name
}

function idOf(record: Omit<HostRecord, 'id' | 'ttl'>): string {
  const identity = [record.name, record.type, record.address, record.mx_pref ?? null]
  return hash('sha256', JSON.stringify(identity), 'hex').slice(0, 12)
}

const toInteger = (text: string, fallback: number) =>
  /^[0-9]{1,9}$/.test(text) ? Number(text) : fallback

/** A name as records have it: in A-labels and lower case. */
export const ownerOf = (name: string) => toAscii(name) ?? name.toLowerCase()

/** A record as a client wrote it. Without `ttl` or `mx_pref`, it takes those of the live record, else the defaults. */
export interface RecordInput {
  name: string
  type: string
  address: string
  ttl?: number | undefined
  mx_pref?: number | undefined
}

/** Identifies a record of a zone without its id. */
export type RecordKey = Pick<RecordInput, 'name' | 'type' | 'address'>

/** A JSON merge patch (RFC 7396) of one record: null resets `ttl` and `mx_pref` to their defaults. */
export interface RecordPatch {
  name?: string | undefined
  /** Accepted only if it is the type that the record has. */
  type?: string | undefined
  address?: string | undefined
  ttl?: number | null | undefined
  mx_pref?: number | null | undefined
}

export type Field = 'name' | 'type' | 'address' | 'ttl' | 'mx_pref'

export type FieldFault = [field: Field, message: string]

/** The row to send for a record, and all faults of its fields; with a fault, the row must not be sent. */
export function toRow(input: RecordInput, domain: string): { row: Row; faults: FieldFault[] } {
  const type = input.type.toUpperCase()
  const name = toAscii(input.name) ?? input.name.toLowerCase()
  const rules = recordTypeOf(type)
  const row = {
    name: name === '' ? '@' : name,
    type,
    address: rules.normalize(input.address),
    ttl: String(input.ttl ?? defaultTtl),
    // Ignored beside other types: every other row carries the registrar's default.
    mxPref: String((type === 'MX' ? input.mx_pref : undefined) ?? defaultMxPref),
    dynamic: false,
  }
  const checks = [
    ['name', validateName(name, domain)],
    ['type', isWritable(row) ? undefined : `must be one of ${recordTypes.join(', ')}`],
    ['address', validateAddress(row, domain)],
    ['ttl', isBetween(input.ttl, 60, 60_000) ? undefined : 'must be between 60 and 60000'],
    [
      'mx_pref',
      type !== 'MX' || isBetween(input.mx_pref, 0, 65_535)
        ? undefined
        : 'must be between 0 and 65535',
    ],
    ['name', rules.validateName?.(name)],
  ] as const
  return {
    row,
    faults: checks.flatMap(([field, message]) => (message ? [[field, message]] : [])),
  }
}

/** The fault of a record's name, if there is one. */
export function validateName(name: string, domain: string): string | undefined {
  if (name === '@') return undefined
  if (name === '') return 'is required: write @ for the domain itself'
  const bare = name.replace(/\.$/, '')
  if (bare === domain) return `is the domain itself: write @`
  if (bare.endsWith(`.${domain}`))
    return `must not end in the domain: write ${bare.slice(0, -domain.length - 1)}`
  const labels = name.split('.')
  if (labels[0] === '*') labels.shift()
  if (!labels.every((label) => /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/.test(label))) {
    return 'must be labels of a-z, 0-9, _ and - (1 to 63 each, no - at an end), * only as the whole first one'
  }
  if (name.length > 60) return 'must have at most 60 characters'
  return name.length + 1 + domain.length > 253
    ? 'must have at most 253 characters with the domain'
    : undefined
}

function validateAddress(row: Row, domain: string): string | undefined {
  const { name, type, address } = row
  if (isWritable(row) && (address === '' || address === '.')) return 'is required'
  return recordTypeOf(type).validate(address, name === '@' ? domain : `${name}.${domain}`)
}

const isBetween = (value: number | undefined, min: number, max: number) =>
  value === undefined || (value >= min && value <= max)
