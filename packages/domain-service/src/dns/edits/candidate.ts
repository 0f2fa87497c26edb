import type { Fault } from '@domains-and-files/http'
import {
  contentOf,
  defaultMxPref,
  defaultTtl,
  type HostRecord,
  isWritable,
  keyOf,
  type Row,
  toRecord,
  type Zone,
} from '../record.ts'
import {
  type Field,
  type FieldFault,
  type RecordInput,
  type RecordPatch,
  toRow,
} from '../record-validation.ts'

/** The JSON pointer of a record's field in the request. */
export type Pointer = (field: Field) => string

/** A row of the zone to be. Only new rows are validated. */
export interface Candidate {
  row: Row
  isNew: boolean
  /** Undefined where the request does not name the row. */
  pointer: Pointer | undefined
  faults: Fault[]
}

/** A live row, which the request leaves alone or names as it is. */
export const untouched = (row: Row, pointer?: Pointer): Candidate => ({
  row,
  isNew: false,
  pointer,
  faults: [],
})

const toFaults = (faults: FieldFault[], pointer: Pointer): Fault[] =>
  faults.map(([field, message]) => ({ path: pointer(field), message }))

/**
 * A record that the request adds. Without `ttl` or `mx_pref`, it takes those of the live row with its name, type and
 * address, so that clients which know neither do not reset them.
 */
export function newCandidate(
  input: RecordInput,
  zone: Zone,
  pointer: Pointer,
  fallbackTtl = defaultTtl,
): Candidate {
  const { row, faults } = toRow(input, zone.domain)
  const key = keyOf(row, zone.domain)
  const live = zone.rows.find((each) => keyOf(each, zone.domain) === key)
  return {
    row: {
      ...row,
      ...(input.ttl === undefined ? { ttl: live?.ttl ?? String(fallbackTtl) } : {}),
      ...(live && input.mx_pref === undefined ? { mxPref: live.mxPref } : {}),
    },
    isNew: true,
    pointer,
    faults: toFaults(faults, pointer),
  }
}

/** A live row with a patch applied. Values that the patch leaves alone stay byte for byte, and are not validated. */
export function patchCandidate(
  row: Row,
  patch: RecordPatch,
  { zone: { domain }, pointer }: { zone: Zone; pointer: Pointer },
): Candidate {
  const before = toRecord(row, domain)
  const after = mergePatch(before, patch)
  const wanted = toRow(after, domain)
  const isChanged = (field: Field) => after[field] !== before[field]
  const next: Row = {
    ...row,
    ...(isChanged('name') ? { name: wanted.row.name } : {}),
    ...(isChanged('address') ? { address: wanted.row.address } : {}),
    ...(isChanged('ttl') ? { ttl: wanted.row.ttl } : {}),
    ...(isChanged('mx_pref') ? { mxPref: wanted.row.mxPref } : {}),
  }
  const isNew = contentOf(next, domain) !== contentOf(row, domain)
  const old = toRow(before, domain).faults.map(String)
  const faults = [
    ...validateType(before.type, patch.type),
    ...wanted.faults.filter((fault) => isChanged(fault[0]) || !old.includes(String(fault))),
  ]
  return { row: isNew ? next : row, isNew, pointer, faults: toFaults(faults, pointer) }
}

function mergePatch(record: HostRecord, patch: RecordPatch): HostRecord {
  const { name, address, ttl, mx_pref } = patch
  const pref = mx_pref === null ? defaultMxPref : (mx_pref ?? record.mx_pref)
  return {
    ...record,
    name: name ?? record.name,
    address: address ?? record.address,
    ttl: ttl === null ? defaultTtl : (ttl ?? record.ttl),
    ...(record.type === 'MX' && pref !== undefined ? { mx_pref: pref } : {}),
  }
}

function validateType(type: string, requested: string | undefined): FieldFault[] {
  if (!isWritable(type)) return [['type', `is ${type}: such records can be read, not written`]]
  return requested === undefined || requested.toUpperCase() === type
    ? []
    : [['type', `is ${type}, and cannot be changed: remove the record and add another`]]
}

/**
 * The live row that each record stands for, if any: first those that are written exactly as GET returns them, then
 * those that mean the same. Each live row is taken once.
 */
export function matchLive(records: RecordInput[], zone: Zone): (Row | undefined)[] {
  const { domain } = zone
  const taken = new Set<Row>()
  // The first free row whose TTL and MX preference are as given, or not given.
  const take = (record: RecordInput, rows: Row[] = []) => {
    const found = rows.find((row) => {
      const { ttl, mx_pref } = toRecord(row, domain)
      const isSamePref = mx_pref === undefined || (record.mx_pref ?? mx_pref) === mx_pref
      return !taken.has(row) && (record.ttl ?? ttl) === ttl && isSamePref
    })
    if (found) taken.add(found)
    return found
  }
  const written = Map.groupBy(zone.rows, (row) => textOf(toRecord(row, domain)))
  const exact = records.map((record) => take(record, written.get(textOf(record))))
  const meant = Map.groupBy(zone.rows, (row) => keyOf(row, domain))
  return records.map(
    (record, index) =>
      exact[index] ?? take(record, meant.get(keyOf(toRow(record, domain).row, domain))),
  )
}

const textOf = ({ name, type, address }: RecordInput) => JSON.stringify([name, type, address])
