import { toAscii } from './domain-name.ts'
import { defaultMxPref, defaultTtl, isWritable, type Row } from './record.ts'
import { recordTypeOf, recordTypes } from './record-types.ts'

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
    ['type', isWritable(type) ? undefined : `must be one of ${recordTypes.join(', ')}`],
    ['address', validateAddress(row, domain)],
    ['ttl', isBetween(input.ttl, 60, 60_000) ? undefined : 'must be between 60 and 60000'],
    ['mx_pref', type === 'MX' ? validateMxPref(input.mx_pref) : undefined],
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
  if (!labels.every((label, index) => isLabel(label) || (label === '*' && index === 0))) {
    return 'must be labels of a-z, 0-9, _ and - (1 to 63 each, no - at an end), * only as the whole first one'
  }
  if (name.length > 60) return 'must have at most 60 characters'
  return name.length + 1 + domain.length > 253
    ? 'must have at most 253 characters with the domain'
    : undefined
}

function validateAddress({ name, type, address }: Row, domain: string): string | undefined {
  if (isWritable(type) && (address === '' || address === '.')) return 'is required'
  return recordTypeOf(type).validate(address, name === '@' ? domain : `${name}.${domain}`)
}

const validateMxPref = (pref: number | undefined) =>
  isBetween(pref, 0, 65_535) ? undefined : 'must be between 0 and 65535'

const isLabel = (label: string) => /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/.test(label)

const isBetween = (value: number | undefined, min: number, max: number) =>
  value === undefined || (value >= min && value <= max)
