import {
  contentOf,
  defaultMxPref,
  defaultTtl,
  type HostRecord,
  isWritable,
  type Row,
  toRecord,
  type Zone,
} from '../record.ts'
import { type Field, type FieldFault, type RecordPatch, toRow } from '../record-validation.ts'
import type { Candidate, Pointer } from './candidate.ts'

/** A live row with a patch applied. Values that the patch leaves alone stay byte for byte, and are not validated. */
export function patchCandidate(
  row: Row,
  patch: RecordPatch,
  context: { zone: Zone; pointer: Pointer },
): Candidate {
  const { zone, pointer } = context
  const before = toRecord(row, zone.domain)
  const after = mergePatch(before, patch)
  const wanted = toRow(after, zone.domain)
  const isChanged = (field: Field) => after[field] !== before[field]
  const next: Row = {
    ...row,
    ...(isChanged('name') ? { name: wanted.row.name } : {}),
    ...(isChanged('address') ? { address: wanted.row.address } : {}),
    ...(isChanged('ttl') ? { ttl: wanted.row.ttl } : {}),
    ...(isChanged('mx_pref') ? { mxPref: wanted.row.mxPref } : {}),
  }
  const isNew = contentOf(next, zone.domain) !== contentOf(row, zone.domain)
  const old = toRow(before, zone.domain).faults.map(String)
  const faults: FieldFault[] = [
    ...validateType(before.type, patch.type),
    ...wanted.faults.filter((fault) => isChanged(fault[0]) || !old.includes(String(fault))),
  ]
  return {
    row: isNew ? next : row,
    isNew,
    pointer,
    faults: faults.map(([field, message]) => ({ path: pointer(field), message })),
  }
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
