import { hash } from 'node:crypto'
import { toAscii } from './domain-name.ts'
import { recordTypeOf, recordTypes } from './record-types.ts'

/** Rows of other types (SRV made in the panel) can be read, not written. */
export const isWritable = ({ type }: { type: string }) => recordTypes.includes(type.toUpperCase())

/** The name is relative to its domain. */
export interface NamedRrset {
  name: string
  type: string
}

/** Identifies a record of a zone without its id. */
export interface RecordKey extends NamedRrset {
  address: string
}

/** One row of a zone as the registrar returned it. Unchanged rows are sent back byte for byte. */
export interface Row extends RecordKey {
  mxPref: string
  ttl: string
  /** Has the dynamic-DNS flag, which setHosts clears. */
  dynamic: boolean
}

/** A record in the API's form: `@` for the apex, targets without their trailing dot, MX preferences on MX only. */
export interface HostRecord extends RecordKey {
  id: string
  ttl: number
  mx_pref?: number
}

export const defaultTtl = 1800
export const defaultMxPref = 10

/** What a row says, whatever its spelling. */
export interface ParsedRow {
  record: HostRecord
  /**
   * A row's identity, modulo the registrar's known normalisations: the case of names and targets, a target's trailing
   * dot, the form of an IPv6 address, the quotes of a CAA value. A second row of a key cannot be added.
   */
  key: string
  /** The key, TTL and MX preference: all that a client can set. */
  content: string
}

/** Cached by row: rows are never mutated. */
export const parseRow = (row: Row): ParsedRow => parsedRows.get(row) ?? parse(row)

// Apart, since an edit of a full zone looks rows up 20,000 times: a closure for each would cost a fifth of it.
function parse(row: Row): ParsedRow {
  const type = row.type.toUpperCase()
  const { show, canonicalize } = recordTypeOf(type)
  const owner = ownerOf(row.name)
  // The registrar names an MXE row after the domain.
  const name = owner === '' || (type === 'MXE' && owner.includes('.')) ? '@' : owner
  const address = show(row.address)
  const ttl = toInteger(row.ttl, defaultTtl)
  const mxPref = type === 'MX' ? toInteger(row.mxPref, defaultMxPref) : undefined
  const id = hash('sha256', JSON.stringify([name, type, address, mxPref ?? null]), 'hex').slice(0, 12)
  const key = `${name} ${type} ${canonicalize(row.address)}`
  const parsed = {
    record: { id, name, type, address, ttl, ...(mxPref === undefined ? {} : { mx_pref: mxPref }) },
    key,
    content: `${key} ${ttl} ${mxPref ?? ''}`,
  }
  parsedRows.set(row, parsed)
  return parsed
}

const parsedRows = new WeakMap<Row, ParsedRow>()

const toInteger = (text: string, fallback: number) => (/^[0-9]{1,9}$/.test(text) ? Number(text) : fallback)

/** A name as records have it: in A-labels and lower case. */
export const ownerOf = (name: string) => toAscii(name) ?? name.toLowerCase()

/** A record as a client wrote it. Without `ttl` or `mx_pref`, it takes those of the live record, else the defaults. */
export interface RecordInput extends RecordKey {
  ttl?: number | undefined
  mx_pref?: number | undefined
}

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

/** The row to send for a record. */
export function toRow({ name, address, ttl = defaultTtl, mx_pref, ...input }: RecordInput): Row {
  const type = input.type.toUpperCase()
  // Ignored beside other types: every other row carries the registrar's default.
  const mxPref = (type === 'MX' ? mx_pref : undefined) ?? defaultMxPref
  return {
    name: ownerOf(name) || '@',
    type,
    address: recordTypeOf(type).normalize(address),
    ttl: String(ttl),
    mxPref: String(mxPref),
    dynamic: false,
  }
}

/** The key of a record. `domain`: whose MXE record a client may name as the registrar does. */
export function keyOf(input: RecordKey, domain?: string): string {
  const { name, type, address } = toRow(input)
  return `${type === 'MXE' && name === domain ? '@' : name} ${type} ${recordTypeOf(type).canonicalize(address)}`
}

/** All faults in the fields of a record: with one, its row must not be sent. */
export function faultsOf(input: RecordInput, domain: string): FieldFault[] {
  const row = toRow(input)
  const name = ownerOf(input.name)
  const rules = recordTypeOf(row.type)
  const [ttl, mxPref] = [Number(row.ttl), Number(row.mxPref)]
  const isKnown = isWritable(row)
  const owner = row.name === '@' ? domain : `${name}.${domain}`
  const example = Number.isNaN(mxPref) ? ', as in 10 mx1.example.net' : ''
  const checks = [
    ['name', validateName(name, domain)],
    ['type', isKnown ? undefined : `must be one of ${recordTypes.join(', ')}`],
    ['address', rules.validate(row.address, owner)],
    ['ttl', ttl >= 60 && ttl <= 60_000 ? undefined : 'must be between 60 and 60000'],
    ['mx_pref', mxPref >= 0 && mxPref <= 65_535 ? undefined : `must be between 0 and 65535${example}`],
    ['name', rules.validateName?.(name)],
  ] as const
  return checks.flatMap(([field, message]) => (message ? [[field, message]] : []))
}

export function validateName(name: string, domain: string): string | undefined {
  if (name === '@') return undefined
  if (name === '') return 'is required: write @ for the domain itself'
  const bare = name.replace(/\.$/, '')
  if (bare === domain) return `is the domain itself: write @`
  if (bare.endsWith(`.${domain}`)) return `must not end in the domain: write ${bare.slice(0, -domain.length - 1)}`
  const labels = name.split('.')
  if (labels[0] === '*') labels.shift()
  if (!labels.every((label) => /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/.test(label))) {
    return 'must be labels of a-z, 0-9, _ and - (1 to 63 each, no - at an end), * only as the whole first one'
  }
  if (name.length > 60) return 'must have at most 60 characters'
  return name.length + 1 + domain.length > 253 ? 'must have at most 253 characters with the domain' : undefined
}
